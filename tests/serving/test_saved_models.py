"""Exports in a process that has tensorflow and tensorflow-text, and none of our code."""

import functools
import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import REPOSITORY
from export_folders import INVALID, ODD_TEXTS, SETTINGS, VOCABULARY, Served, ask, real_texts
from waiting import read_line

from nezha_tf.serving.export import write

pytestmark = pytest.mark.processes

PRETRAINED = {"task": "pretraining", "max_seq_length": 24}
# Name of the export: the settings of its folder, what else than its task it does, its files.
EXPORTS = {
    "pairs": (SETTINGS["pairs"], None, {"labels.txt": "a\nb\nc\n"}),
    "names_crf": (
        SETTINGS["names_crf"],
        None,
        {"tags.txt": "".join(f"{tag}\n" for tag in SETTINGS["names_crf"]["labels"])},
    ),
    "questions": (SETTINGS["questions"], None, {}),
    "choices": (SETTINGS["choices"], None, {}),
    "titles": (SETTINGS["titles"], None, {}),
    "prompts": ({**PRETRAINED, "objectives": "left_to_right"}, None, {}),
    "blanks": ({**PRETRAINED, "objectives": "bidirectional"}, None, {}),
    "vectors": ({**PRETRAINED, "objectives": "bidirectional"}, "features", {}),
}
TEXTS = [*real_texts()[:4], *ODD_TEXTS, INVALID]
OTHERS = [*TEXTS[3:], *TEXTS[:3]]
INPUTS = {
    "text": TEXTS,
    "text_pair": OTHERS,
    "question": OTHERS,
    "passage": TEXTS,
    "context": [f"{text}#idiom#" if isinstance(text, str) else text for text in TEXTS],
    "choices": [[str(place), "好", ""] for place in range(len(TEXTS))],
}
# Before a text that is sent as bytes.
BYTES = "\ue001"


@functools.cache
def clean_process():
    """The process that answers; it ends with this one, whose end closes its input."""
    script = REPOSITORY / "tests" / "serving" / "clean_process.py"
    command = [sys.executable, "-I", str(script)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answered(*question):
    """Returns the clean process's answer, dict of name to array; see `clean_process.py`."""
    process = clean_process()
    print(json.dumps(question), file=process.stdin, flush=True)
    found = json.loads(read_line(process.stdout))
    return {name: np.array(values) for name, values in found.items()}


def sent(value):
    return f"{BYTES}{value.decode('latin-1')}" if isinstance(value, bytes) else value


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_says_without_our_code_what_it_says_with_it(tmp_path, name):
    """And its README runs as it stands, and its files are there."""
    settings, task, assets = EXPORTS[name]
    served, export = Served(tmp_path / name, settings, task), tmp_path / "export"
    write(served.serving, str(export))
    names = [spec.name for spec in served["serving_default"].input_signature]
    inputs = {name: INPUTS[name] for name in names}
    expected = ask(served, **inputs)
    inputs = {name: list(map(sent, values)) for name, values in inputs.items()}
    found = answered(str(export), "serving_default", inputs)
    assert set(found) == set(expected)
    for output, values in expected.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(found[output], values, rtol=1e-4, atol=1e-5)
        else:
            assert found[output].tolist() == values.tolist()
    readme = (export / "README.md").read_text(encoding="utf-8")
    program = readme.split("```python\n")[1].split("```")[0]
    assert set(answered(str(export), None, program)) == set(expected)
    assert all(f"## `{signature}`" in readme for signature in served)
    for file, text in {**assets, "vocab.txt": VOCABULARY.read_text()}.items():
        assert (export / "assets" / file).read_text() == text
