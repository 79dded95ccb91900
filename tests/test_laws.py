"""The examples of property tests: the same in each quick run."""

import importlib.util
import sys

import laws
import pytest
from hypothesis import given
from hypothesis import strategies as st


def test_examples_do_not_depend_on_what_is_imported(tmp_path):
    """Hypothesis would draw the constants of a new module in one of twenty draws."""
    if laws.is_long():
        pytest.skip("a long search draws other examples each time")
    drawn = []

    @laws.examples(250)
    @given(st.lists(st.integers(), min_size=5), st.lists(st.text(), min_size=5))
    def draw(numbers, texts):
        drawn.append((numbers, texts))

    draw()
    first = drawn.copy()
    path = tmp_path / "constants.py"
    path.write_text("".join(f"A{n} = {n * 7919}\nB{n} = 'constant {n}'\n" for n in range(200)))
    spec = importlib.util.spec_from_file_location("constants_of_a_test", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        drawn.clear()
        draw()
    finally:
        del sys.modules[spec.name]
    assert drawn == first and len(first) == 100
