"""The language of the screen: the catalogue, how messages find their translation, and programs."""

import ast
import itertools
import re
import string
import sys
import textwrap
import time
import types

import commands
import messages
import pytest
from conftest import REPOSITORY
from hypothesis import assume, given
from hypothesis import strategies as st
from laws import examples
from terminals import Terminal
from waiting import TIME_LIMIT

from nezha_tf.pictures import fonts
from nezha_tf.util import console, language

TOOL = "tools/create_pretraining_data.py"
CATALOGUE = language.read_catalogue()
# What must be in the translation as it is in the message.
KEPT = re.compile(
    r"--\w+|`[^`]+`|(?<![\w{:])\d[\d.]*\b(?!})"
    r"|[\w.-]+\.(?:json|jsonl|txt|ckpt|tfrecord|npy|tsv|csv|py|png|onnx|tflite|bin|safetensors)\b"
)


@pytest.fixture
def chinese():
    language.use(language.CHINESE)
    yield
    language.use(language.ENGLISH)


@pytest.fixture
def english_afterwards():
    yield
    language.use(language.ENGLISH)


def fields(template):
    """Returns the names of a template's placeholders, in order."""
    return [name for _, name, _, _ in string.Formatter().parse(template) if name]


def test_the_catalogue_has_each_message_and_nothing_else():
    found = set(messages.messages())
    told = "python tests/messages.py writes them"
    assert not found - set(CATALOGUE), told
    assert not set(CATALOGUE) - found, told
    assert not [english for english, chinese in CATALOGUE.items() if not chinese.strip()], told


def test_translations_keep_placeholders_flags_names_and_numbers():
    faults = []
    for english, chinese in CATALOGUE.items():
        if sorted(fields(english)) != sorted(fields(chinese)):
            faults.append((english, "placeholders"))
        lost = [kept for kept in KEPT.findall(english) if kept.rstrip(".") not in chinese]
        faults += [(english, kept) for kept in lost]
        # Where nothing is between two values, the first may get the text of both.
        adjacent = re.findall(r"\{(\d)(?::n)?\}(?=\{(\d))", english)
        faults += [
            (english, pair) for pair in adjacent if "{{{}}}{{{}}}".format(*pair) not in chinese
        ]
    assert not faults


def test_translations_are_chinese_with_its_punctuation():
    shown = {e: re.sub(r"`[^`]*`|\{\{.*\}\}|\[.*[\])]", "", c) for e, c in CATALOGUE.items()}
    wide = "[\u4e00-\u9fff]"
    odd = [c for c in shown.values() if re.search(rf"{wide} ?[,;!?]|{wide}[.:](?!\w)", c)]
    assert not odd
    untranslated = [e for e, c in CATALOGUE.items() if not re.search(wide, c) and "token" not in c]
    assert [e for e in untranslated if re.search("[a-z]{3}", e) and e != "the CPU"] == []


def found_in(source):
    finder = messages._Finder()
    finder.visit(ast.parse(textwrap.dedent(source)))
    return [text for text, _ in finder.found]


@pytest.mark.parametrize(
    "source, expected",
    [
        ('"""A docstring of words."""\nx = "a file of words"', ["a file of words"]),
        ('f"{path} is " "empty; " f"write {what!r}"', ["{0} is empty; write {1}"]),
        ('"a word" + ("; two words" if x else f" of {y}")', ["a word; two words", "a word of {0}"]),
        ("f\"no {x or 'other file'} here\"", ["no {0} here", "no other file here"]),
        ('f"{len(x)} are left of {n:,}"', ["{0:n} are left of {1:n}"]),
        ('console.plural(len(x), "word")', ["{0:n} word", "{0:n} words"]),
        ('f"write {{}} of {x}"', ["write {{}} of {0}"]),
        ('f"{a} of words\\n{b} of files"', ["{0} of words", "{0} of files"]),
        ('x.split("of words"), re.compile("of words"), x == "of words"', []),
        ('raise NotImplementedError(f"{x} has no words")', []),
        ('rows = [("padding", f"{x}"), ("padding", y)]', ["padding"]),
        ("f\"{', '.join('of words' for _ in x)} have words\"", ["{0} have words", "of words"]),
    ],
)
def test_extraction(source, expected):
    assert found_in(source) == expected


@pytest.mark.parametrize(
    "english, expected",
    [
        ("a.txt: no text found; write one sentence per line", "a.txt：没有找到文本；请一行写一句"),
        ("a/b: No such file or directory", "a/b：没有这个文件或文件夹"),
        ("run/a: No space left on device; make room", "run/a：设备上没有空间；请腾出空间"),
        (
            "a.tsv, line 5: 2 columns separated by tabs, not 3 (text, label, id)",
            "a.tsv 第 5 行：用制表符分隔得到 2 列，而不是 3 列（text, label, id）",
        ),
        (
            "--crf does nothing with --pair=none; leave it out, or pass --pair=nsp",
            "有 --pair=none 时，--crf 不起作用；请去掉它，或者传入 --pair=nsp",
        ),
        (
            "12 texts; too long, so truncated: 3 sources and 2 targets; written to out.jsonl",
            "12 段文本；过长而被截断的：3 个源文本和 2 个目标文本；写入 out.jsonl",
        ),
        (
            "d.txt: 12 sentences with 5 entities (PER 3, LOC 2); 3 in several windows; blank lines "
            "passed over: 2 (the first: d.txt, line 3)",
            "d.txt：12 个句子，有 5 个实体（PER 3, LOC 2）；3 个分成几个窗口；"
            "略过的空行：2（第一处：d.txt 第 3 行）",
        ),
        (
            "a worker died (killed, perhaps out of memory: a smaller --num_workers needs less) "
            "while it made x; finished shards stay: the same command makes the rest",
            "一个工作进程终止了（被杀死，可能是内存不足：--num_workers 小一些，"
            "需要的内存就少一些），"
            "当时它正在制作 x；完成的分片保留：再次运行同一条命令即可制作其余的",
        ),
        (
            "nothing to do: pass --do_train or --do_eval",
            "没有要做的事：请传入 --do_train 或 --do_eval",
        ),
        ("12 s, 1,024 instances/s", "12 s，每秒 1,024 个样本"),
        (
            "a.tfrecord was made with another vocabulary than v.txt, so its ids mean other tokens; "
            "pass the --vocab_file that it was made with",
            "a.tfrecord 是用另一个词表制作的，而不是 v.txt，所以其中的编号对应另外的 token；"
            "请传入制作它时所用的 --vocab_file",
        ),
        ("{x} is empty", "{x} 是空的"),
        # No messages: what a user wrote, keys, and rows of tables.
        ("今天: xyz; and so on, in the end", "今天: xyz; and so on, in the end"),
        ("no_such_key", "no_such_key"),
        ("  padding  12.0%", "  padding  12.0%"),
        ("", ""),
    ],
)
def test_messages(chinese, english, expected):
    assert language.translated(english) == expected


def test_lines_are_translated_one_by_one(chinese):
    shown = language.translated("curves in a.png\n  curves in a.png\nthe text is empty")
    assert shown == "曲线图在 a.png\n  curves in a.png\n文本是空的"


def parts_of(template):
    """Returns (texts around the placeholders, their kinds)."""
    parsed = list(string.Formatter().parse(template))
    texts = re.split("\0", "".join(text + "\0" * bool(name) for text, name, _, _ in parsed))
    return texts, [kind for _, name, kind, _ in parsed if name]


TEMPLATES = {english: parts_of(english) for english in CATALOGUE if fields(english)}
FIXED = {e.format(): c.format() for e, c in CATALOGUE.items() if not fields(e)}
PATTERNS = {
    english: re.compile("(.*)".join(map(re.escape, texts)), re.DOTALL)
    for english, (texts, _) in TEMPLATES.items()
}


def length(template):
    return sum(map(len, TEMPLATES[template][0]))


def has_few_letters(template):
    texts, kinds = TEMPLATES[template]
    letters = sum(char.isalpha() or char in "-=" for char in "".join(texts))
    return letters + 3 * kinds.count("n") < 7


def is_balanced(text):
    brackets = re.sub("[^()]", "", text)
    while "()" in brackets:
        brackets = brackets.replace("()", "")
    return not brackets


def ways(text, texts):
    """Returns in how many ways a text can be divided into values between these texts."""
    first, *others = texts
    if not text.startswith(first):
        return 0
    places = {len(first): 1}
    for number, part in enumerate(others):
        found = {}
        for end in range(len(text) + 1):
            if text.startswith(part, end) and (
                number < len(others) - 1 or end + len(part) == len(text)
            ):
                count = sum(n for start, n in places.items() if start <= end)
                found[end + len(part)] = found.get(end + len(part), 0) + count
        places = found
    return places.get(len(text), 0)


# No message has only these letters; the rest means something to regular expressions or formats.
PLAIN = st.text("xyz今天，；:;,'\"-.*+?()[]{}\\^$| ", max_size=12).map(str.strip)
NUMBERS = st.integers(0, 10**7).map("{:,}".format) | st.floats(0, 9).map("{:.3g}".format)


@st.composite
def rendered(draw, depth=1):
    """Draws (an English message, its Chinese), whose values may be messages in turn."""
    template = draw(st.sampled_from(sorted(TEMPLATES)))
    texts, kinds = TEMPLATES[template]
    values, shown = [], []
    for kind in kinds:
        value = draw(NUMBERS if kind == "n" else PLAIN)
        translation = value
        if kind != "n" and depth and draw(st.booleans()):
            fixed = sorted(text for text in FIXED if " " in text)
            of_fixed = st.sampled_from(fixed).map(lambda text: (text, FIXED[text]))
            value, translation = draw(rendered(depth - 1) | of_fixed)
        values.append(value)
        shown.append(translation)
    text = "".join(part for pair in zip(texts, [*values, ""], strict=True) for part in pair)
    assume(not text.startswith("  ") and " " in text and text not in FIXED)
    assume(all(map(is_balanced, values)))
    assume(not (has_few_letters(template) and any(re.search(r"\s", value) for value in values)))
    assume(ways(text, texts) == 1)
    rivals = (t for t, pattern in PATTERNS.items() if t != template and pattern.fullmatch(text))
    assume(not any(length(rival) >= length(template) for rival in rivals))
    return text, CATALOGUE[template].replace(":n}", "}").format(*shown)


@examples(150)
@given(rendered())
def test_a_message_is_told_whatever_its_values_are(chinese, message):
    """Any values of any template come out in the Chinese, themselves translated.

    Excluded is what the text does not tell: where it can be divided in several ways, where another
    template with as much text of its own fits, and values with a bracket that is not closed; and
    values with blanks in templates such as `{0} in {1}`, which would fit nearly all texts.
    """
    english, expected = message
    assert language.translated(english) == expected


def test_english_costs_nothing(monkeypatch):
    monkeypatch.setattr(language, "_catalogue", None)
    text = "a.txt: no text found; write one sentence per line"
    assert language.translated(text) is text


def test_a_message_takes_less_than_a_moment(chinese):
    text = "; ".join(f"{n} of what no message says, in some place: {n}" for n in range(8))
    language.translated(text)
    started = time.perf_counter()
    language.translated(text)
    assert time.perf_counter() - started < 1


@pytest.mark.parametrize(
    "arguments, environment, is_terminal, expected",
    [
        ([], {}, True, "en"),
        ([], {"LANG": "zh_CN.UTF-8"}, True, "zh"),
        ([], {"LANG": "zh_CN.UTF-8"}, False, "en"),
        ([], {"LANG": "en_US.UTF-8", "LC_ALL": "zh_TW.UTF-8"}, True, "zh"),
        ([], {"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, True, "en"),
        ([], {"LANG": "zh_CN.UTF-8", "LANGUAGE": "en:zh"}, True, "en"),
        ([], {"LANG": "zh_CN.UTF-8", "LC_ALL": "", "LANGUAGE": ""}, True, "zh"),
        (["--language=zh"], {}, False, "zh"),
        (["--seed=1", "--language=en"], {"LANG": "zh_CN.UTF-8"}, True, "en"),
        (["--language=en", "--language=zh"], {}, False, "zh"),
        (["--language=fr"], {}, False, "en"),
    ],
)
def test_the_language_that_a_program_starts_with(
    monkeypatch, arguments, environment, is_terminal, expected
):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(getattr(sys, name), "isatty", lambda: is_terminal, raising=False)
    assert language.of_start(arguments, environment) == expected


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_one_output_that_is_no_terminal_is_enough_for_english(monkeypatch, name):
    for each in ("stdout", "stderr"):
        monkeypatch.setattr(getattr(sys, each), "isatty", lambda: True)
    monkeypatch.setattr(getattr(sys, name), "isatty", lambda: False)
    assert language.of_start([], {"LANG": "zh_CN.UTF-8"}) == "en"


def test_errors_are_a_line_in_the_language_of_the_flag(tmp_path, english_afterwards):
    arguments = ("--input_file=nothing.txt", "--output_file=a.tfrecord", "--vocab_file=v.txt")
    result = commands.run(TOOL, *arguments, folder=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "create_pretraining_data.py: error: --input_file: no file matches 'nothing.txt'; check the "
        "path\n"
    )
    result = commands.run(TOOL, "--language=zh", *arguments, folder=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "create_pretraining_data.py: 错误："
        "--input_file：没有文件与 'nothing.txt' 匹配；请检查路径\n"
    )


def test_errors_of_flags(tmp_path, english_afterwards):
    for arguments, told in (
        (("--pair=x",), "参数 --pair=x：值应为 <nsp|sop|none|stream|packed> 之一；见 --help"),
        (("--vocab_fil=a",), "未知的参数 'vocab_fil'（是不是 vocab_file？）；见 --help"),
        (("--dupe_factor=0",), "参数 --dupe_factor=0：0 不是正整数；见 --help"),
    ):
        result = commands.run(TOOL, "--language=zh", *arguments, folder=tmp_path)
        assert result.stderr == f"create_pretraining_data.py: 错误：{told}\n"


def test_a_flag_file_may_choose_the_language(tmp_path, english_afterwards):
    (tmp_path / "my.flags").write_text("--language=zh\n")
    result = commands.run(TOOL, "--flagfile=my.flags", folder=tmp_path)
    assert result.stderr.startswith("create_pretraining_data.py: 错误：需要 --")


def test_a_run_in_chinese(tmp_path, english_afterwards):
    result = commands.create_data(tmp_path, "--language=zh", "--num_workers=1")
    assert result.returncode == 0, result.stderr
    assert "要制作" in result.stdout and "平均长度" in result.stdout
    english = [
        line for line in result.stdout.splitlines() if not re.search("[\u4e00-\u9fff]", line)
    ]
    # Names of files and of stages.
    assert all(line.startswith(("train.tfrecord", "  ")) for line in english), english


def test_help(tmp_path, english_afterwards):
    english = commands.run(TOOL, "--help", folder=tmp_path).stdout
    result = commands.run(TOOL, "--language=zh", "--help", folder=tmp_path)
    assert result.returncode == 0 and result.stderr == ""
    assert result.stdout.startswith("由文本制作预训练用的 TFRecord。")
    assert "    文本文件、JSON lines 或 Parquet，可以压缩：" in result.stdout
    assert "    （默认：'10'）" in result.stdout
    assert "仅在有 --eval_output_file 时有效。" in result.stdout and "Only" not in result.stdout
    flag = re.compile(r"^  --\S+?:", re.MULTILINE)
    assert flag.findall(result.stdout) == flag.findall(english)
    assert "pairs" in english and not re.search("[\u4e00-\u9fff]", english.replace("。！？；", ""))
    helps = [line for line in result.stdout.splitlines() if line.startswith("    ")]
    assert max(map(console._columns, helps)) <= 80


def test_the_list_of_programs_and_an_unknown_one(tmp_path, english_afterwards, monkeypatch, capsys):
    from nezha_tf.programs import start

    for arguments in (["--help", "--language=zh"], ["--language=zh"]):
        monkeypatch.setattr(sys, "argv", ["nezha_tf", *arguments])
        start.choose()
        assert "由文本建立 WordPiece 词表。" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["nezha_tf", "run_nre", "--language=zh"])
    with pytest.raises(SystemExit):
        start.choose()
    assert "没有程序 'run_nre'；最接近的名字是 run_ner" in capsys.readouterr().err


@pytest.mark.processes
@pytest.mark.parametrize("name, told", [("zh_CN.UTF-8", "错误：需要 --"), ("C.UTF-8", "error: --")])
def test_a_terminal_speaks_the_language_of_its_environment(tmp_path, monkeypatch, name, told):
    monkeypatch.setenv("LANGUAGE", name)
    terminal = Terminal((sys.executable, str(REPOSITORY / TOOL)), tmp_path)
    assert terminal.process.wait(TIME_LIMIT) == 1
    assert told in terminal.shown()
    terminal.close()


def test_captions_are_chinese_if_a_font_is(monkeypatch, chinese):
    monkeypatch.setattr(fonts, "font_families", lambda text: ["some font"])
    assert fonts.caption("learning rate") == ("学习率", {"family": ["some font"]})
    monkeypatch.setattr(fonts, "font_families", lambda text: None)
    assert fonts.caption("learning rate") == ("learning rate", {})


def test_cards_and_readmes(chinese):
    from nezha_tf.serving import export
    from nezha_tf.training import model_card

    assert model_card._table(("metric", "value"), [("loss", 1)]).startswith("| 指标 | 值 |\n")
    about = "Gives vectors of texts; the signature `tokens` gives those of their tokens. Longer "
    about += "texts are cut to 128 tokens, `[CLS]` and `[SEP]` included."
    serving = types.SimpleNamespace(about=about, example="", meanings={})
    told = export.readme_text(serving, "vectors", "out/vectors", {})
    assert "较长的文本截到 128 个 token，包括 `[CLS]` 和 `[SEP]`。" in told
    assert "它只需要版本相同的 `tensorflow` 和 `tensorflow-text`" in told


@pytest.mark.parametrize(
    "content",
    [
        'msgid "a"\n',
        'msgid "a"\nmsgstr "b"\nmsgstr "c"',
        'msgid "a\nmsgstr "b"',
        'msgctxt "x"\nmsgid "a"\nmsgstr "b"',
    ],
)
def test_a_catalogue_of_another_form_is_no_catalogue(tmp_path, content):
    path = tmp_path / "zh.po"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError):
        language.read_catalogue(path)


def test_the_catalogue_is_as_the_script_writes_it():
    found = {text: (module, []) for text, (module, _) in messages.messages().items()}
    lines = messages.CATALOGUE.read_text(encoding="utf-8").splitlines()
    written = messages.written(found, CATALOGUE).splitlines()
    # The expressions of values are help for translators; they may be old.
    assert [line for line in lines if not line.startswith("#.")] == written


@examples(100)
@given(st.text("中文，。（）“” -ab", max_size=60), st.integers(4, 20))
def test_folded_text_is_whole_and_narrow(text, columns):
    assume(not re.search(r"\s[，。）”]", text))
    lines = console.folded(text, columns).split("\n")
    assert "".join("".join(lines).split()) == "".join(text.split())
    for before, line in itertools.pairwise(lines):
        assert not line.startswith(("，", "。", "）")) or not before
    words = [line for line in lines if console._columns(line) > columns]
    # Only what may not be divided is wider.
    assert all(not re.search(r"[\u4e00-\u9fff][\u4e00-\u9fffa-z]|\w ", line) for line in words)
