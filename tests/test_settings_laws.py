"""The law of flag files: what is written is what absl reads back, or it is refused before."""

import dataclasses
import os

import laws
import pytest
from absl import flags
from any_texts import ANY_CHARACTER, texts
from hypothesis import example, given
from hypothesis import strategies as st

from nezha_tf import cli
from nezha_tf.util import settings
from nezha_tf.util.errors import UserError

TEXTS = texts(ANY_CHARACTER | st.sampled_from('"#,\\ '), max_parts=4)


@dataclasses.dataclass(frozen=True)
class Settings:
    output_dir: str = settings.flag("", "A text.")
    vocab_file: str | None = settings.flag(None, "A text, or none.")
    labels: tuple[str, ...] = settings.flag((), "A list.")
    seed: int = settings.flag(1, "A whole number.")
    rate: float = settings.flag(0.1, "A number.")
    do_train: bool = settings.flag(True, "A truth.")


ANY = st.builds(
    Settings,
    TEXTS,
    st.none() | TEXTS,
    st.lists(TEXTS, max_size=3).map(tuple),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
)


@pytest.fixture(scope="module")
def flag_file(tmp_path_factory):
    return tmp_path_factory.mktemp("flags") / "run.flags"


@laws.examples(100)
@given(ANY)
@example(Settings("run\nnew", "a", ()))
@example(Settings("run "))
@example(Settings("run\u3000"))
@example(Settings(" #run", "//"))
@example(Settings(labels=('a,b"', '"', "")))
@example(Settings(labels=("",)))
@example(Settings(labels=("", "")))
@example(Settings(labels=(" a",)))
@example(Settings(os.fsdecode(b"\xd6\xd0"), "a", ()))
def test_what_is_written_is_read_back_or_refused(flag_file, given_settings):
    try:
        lines = settings.flag_lines(settings.flags_of(given_settings))
    except UserError as error:
        assert str(error).startswith("--") and "\n" not in str(error)
        texts = [given_settings.output_dir, given_settings.vocab_file or "", *given_settings.labels]
        assert any(t != t.strip() or set("\r\n\udcd6") & set(t) for t in texts)  # not too much
        return
    flag_file.write_bytes("".join(lines).encode())
    assert read(flag_file) == given_settings


def read(path):
    """Returns the settings that a program with this flag file would have."""
    values = flags.FlagValues()
    settings.define(Settings, values)
    cli.parse(["program", f"--flagfile={path}"], values)
    return settings.from_flags(Settings, values)


@pytest.mark.parametrize(
    "content, found",
    [
        ("--output_dir=中文\n".encode(), "中文"),
        ("\ufeff# 注\r\n--output_dir=中\r\n".encode(), "中"),
        ("--output_dir=中文\n".encode("gb18030"), "run.flags is not UTF-8; convert it"),
    ],
)
def test_flag_files_are_utf8(flag_file, content, found):
    flag_file.write_bytes(content)
    if "UTF-8" in found:
        with pytest.raises(flags.Error, match=found):
            read(flag_file)
    else:
        assert read(flag_file).output_dir == found
