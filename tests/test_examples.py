"""The small programs of examples/ that count: their figures of cases worked out by hand."""

import gzip
import itertools
import json
import lzma
import math
import random
import subprocess
import sys
import unittest.mock

import program_flags
import pytest
from absl import flags
from conftest import REPOSITORY, RESOURCES
from examples_programs import program
from hypothesis import given
from hypothesis import strategies as st

import nezha_tf
from nezha_tf.corpus.create import create_pretraining_data
from nezha_tf.data.corpus import read_documents, read_lines, write_documents
from nezha_tf.generation.fill import BlankFiller
from nezha_tf.util import files
from nezha_tf.util.errors import UserError

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def poetry():
    return program("poetry")


@pytest.fixture(scope="module")
def mini_corpus():
    return program("mini_corpus")


@pytest.fixture(scope="module")
def classical_corpus():
    with program_flags.forgotten_afterwards():
        return program("classical_corpus")


@pytest.fixture(scope="module")
def blanks():
    with program_flags.forgotten_afterwards():
        yield program("blanks")


QUIET_NIGHT = "床前明月光，疑是地上霜。举头望明月，低头思故乡。"
SEVEN = "朝辞白帝彩云间，千里江陵一日还。两岸猿声啼不住，轻舟已过万重山。"


@pytest.mark.parametrize(
    "text, form",
    (
        (QUIET_NIGHT, "五言绝句"),
        (QUIET_NIGHT * 2, "五言律诗"),
        (SEVEN, "七言绝句"),
        (SEVEN.replace("。", "！"), "七言绝句"),
        (SEVEN * 2, "七言律诗"),
    ),
)
def test_poems_fit_their_form_and_no_other(poetry, text, form):
    assert [name for name in poetry.FORMS if poetry.does_fit(text, name)] == [form]


@pytest.mark.parametrize(
    "text",
    (
        "",
        QUIET_NIGHT[:-1],  # the last mark is missing
        QUIET_NIGHT[1:],
        QUIET_NIGHT + "乡",
        QUIET_NIGHT.replace("光", "a"),
        QUIET_NIGHT.replace("，", ""),
        "《" + QUIET_NIGHT,
        QUIET_NIGHT[:12],
    ),
)
def test_what_fits_no_form(poetry, text):
    assert not any(poetry.does_fit(text, form) for form in poetry.FORMS)


def test_a_poem_is_a_document_and_its_beginning_a_prompt(poetry, tmp_path, capsys):
    poem = f'{{"form": "五言绝句", "title": "静夜思", "text": "{QUIET_NIGHT}"}}\n'
    (tmp_path / "poems.jsonl").write_text(poem * 2, encoding="utf-8")
    paths = [str(tmp_path / name) for name in ("poems.jsonl", "corpus.txt", "prompts.jsonl")]
    poetry.corpus(paths[0], paths[1])
    assert list(read_lines(paths[1])) == [f"五言绝句《静夜思》{QUIET_NIGHT}\n", "\n"] * 2
    poetry.prompts(paths[0], paths[2])
    found = next(iter(read_lines(paths[2])))
    assert found == f'{{"src": "五言绝句《静夜思》", "tgt": "{QUIET_NIGHT}"}}\n'


def test_not_all_forms_are_needed_and_another_form_is_refused(poetry, tmp_path, capsys):
    written = tmp_path / "written.jsonl"
    row = f'{{"src": "五言绝句《静夜思》", "prediction": "{QUIET_NIGHT}"}}\n'
    written.write_text(row, encoding="utf-8")
    poetry.fit(str(written))
    assert "all: 1 of 1 fit" in capsys.readouterr().out
    written.write_text(row + row.replace("五言绝句", "词"), encoding="utf-8")
    with pytest.raises(UserError, match=r"jsonl, line 2: src '词《静夜思》' does not begin with"):
        poetry.fit(str(written))


def write_json(path, **values):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")


def test_lines_at_even_distances(tmp_path):
    path, out = tmp_path / "lines.txt.gz", tmp_path / "out.txt"
    path.write_bytes(gzip.compress("".join(f"{n} 句\n" for n in range(10)).encode()))
    command = (
        sys.executable,
        str(REPOSITORY / "examples" / "sample_lines.py"),
        f"--input_file={path}",
        f"--output_file={out}",
    )
    for count, expected in ((1, [0]), (3, [0, 3, 6]), (4, [0, 2, 5, 7]), (10, range(10))):
        subprocess.run((*command, f"--count={count}"), check=True)
        assert out.read_text(encoding="utf-8") == "".join(f"{n} 句\n" for n in expected)
    out.unlink()
    ended = subprocess.run((*command, "--count=11"), capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and "has only 10 lines, not 11" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1 and not out.exists()


def test_what_copying_reaches(tmp_path):
    path = tmp_path / "pairs.jsonl"
    pairs = ("甲乙丙丁戊", "甲乙丙丁戊"), ("己", "庚辛壬癸"), ("子", "丑")
    lines = (json.dumps({"old": old, "new": new}) + "\n" for old, new in pairs)
    path.write_text("".join(lines), encoding="utf-8")
    command = (sys.executable, str(REPOSITORY / "examples" / "copy_baseline.py"))
    flags = (f"--input_file={path}", "--source_column=old", "--target_column=new")

    def measured(*more):
        ended = subprocess.run((*command, *flags, *more), capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        return dict(line.split(" = ") for line in ended.stdout.splitlines())

    assert measured("--count=1") == dict.fromkeys(("rouge_1", "rouge_2", "rouge_l"), "1.0000") | {
        "bleu": "100.0000",
        "chrf": "100.0000",
        "exact_match": "1.0000",
    }
    # Worked out by hand: of 7 tokens 5 are right, of runs of 2, 3 and 4 all (4, 3, 2); the
    # references have 10 tokens.
    found = measured()
    precision = (5 / 7) ** (1 / 4)
    assert float(found["bleu"]) == pytest.approx(100 * precision * math.exp(1 - 10 / 7), abs=1e-4)
    assert found["rouge_l"] == found["exact_match"] == "0.3333"
    ended = subprocess.run((*command, f"--input_file={path}"), capture_output=True, text=True)
    assert ended.returncode == 1 and "src" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_what_a_linear_model_reaches(tmp_path):
    def written(name, *rows):
        path = tmp_path / name
        path.write_text("".join(f"{text}\t{label}\n" for text, label in rows), encoding="utf-8")
        return str(path)

    def ended(*paths):
        command = (sys.executable, str(REPOSITORY / "examples" / "linear_baseline.py"))
        return subprocess.run((*command, *paths), capture_output=True, text=True)

    train = written("train.tsv", *[("好吃", "1"), ("好看", "1"), ("难吃", "0"), ("难看", "0")] * 3)
    # 好 and 难 decide, so that the last of four answers is wrong: F1 is 4/5 of one label (2 of 2
    # found, 3 given), and 2/3 of the other (1 of 2 found, 1 given).
    found = ended(train, written("dev.tsv", ("好", "1"), ("很好", "1"), ("难", "0"), ("真好", "0")))
    assert found.returncode == 0, found.stderr
    assert found.stdout == "accuracy = 0.7500\nmacro_f1 = 0.7333\n"
    bad = {
        "usage": [train],
        "missing.tsv": [train, str(tmp_path / "missing.tsv")],
        "empty.tsv has no line with an example": [train, written("empty.tsv")],
        "one.tsv: ": [written("one.tsv", ("好吃", "1"), ("好看", "1")), train],
        "rare.tsv: ": [written("rare.tsv", ("好", "1"), ("难", "0")), train],
    }
    for told, paths in bad.items():
        failed = ended(*paths)
        assert failed.returncode == 1 and told in failed.stderr
        assert len(failed.stderr.splitlines()) == 1


def test_the_text_of_mini(mini_corpus, tmp_path):
    def gzipped(name, *rows):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        path.write_bytes(gzip.compress(lines.encode()))

    def pair(doc, text):
        return {"doc": doc, "src": "古文", "tgt": text}

    chapters = ("史记/一", "甲。"), ("史记/一", "乙！丙。"), ("史记/二", "丁。")
    gzipped("classical_modern/train.jsonl.gz", *(pair(*each) for each in chapters))
    poem = {"form": "五言绝句", "title": "静夜思", "text": QUIET_NIGHT}
    gzipped("poetry/train.jsonl.gz", *[poem] * 12)
    questions = [{"id": str(n), "question": "谁？", "answers": []} for n in range(3)]
    paragraphs = [
        {"context": "他说：“走吧！”她没走。\n　完", "qas": questions[:2]},
        {"context": "戊。", "qas": questions[2:]},
    ]
    write_json(tmp_path / "cmrc2018" / "train.json", data=[{"paragraphs": paragraphs}])
    verses = ["五言绝句《静夜思》床前明月光，疑是地上霜。", "举头望明月，低头思故乡。"]
    assert list(mini_corpus.books(tmp_path)) == [
        ["甲。", "乙！丙。"],
        ["丁。"],
        ["他说：“走吧！”", "她没走。", "完"],
        ["戊。"],
        verses * 10,
        verses * 2,
    ]


def test_the_modern_text_of_mini_has_no_evaluation_text(mini_corpus, tmp_path):
    """One document for each form of a development set, and one that shares 19 characters."""

    def written(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    characters = [chr(0x4E00 + number) for number in range(160)]
    texts = ["".join(characters[start : start + 20]) for start in range(0, 160, 20)]
    paragraphs = [{"context": texts[0], "qas": [{"question": texts[1]}]}]
    written("cmrc2018/dev.json", json.dumps({"data": [{"paragraphs": paragraphs}]}, indent=1))
    written("c3/c3-d-dev.json", json.dumps([[[texts[2]], [], "1"]], ensure_ascii=False))
    lines = [{"sentence1": texts[3], "sentence2": "短"}, {"sentence1": texts[4]}]
    written("ocnli/dev.jsonl", "\n".join(map(json.dumps, lines)))
    written("fewclue/csl/dev_few_all.json", json.dumps({"abst": texts[5]}) + "\n")
    written("sentiment/dev.tsv", f"1\t短\n{texts[6]}\t0\n")
    written("people_daily_ner/dev.txt", "你 O\n\n" + "".join(f"{one} O\n" for one in texts[7]))
    kept = [texts[0][:10], texts[0][10:19], "别的。"]
    documents = [["前文。", f"他说{text[:6]}", f"{text[6:]}。"] for text in texts]
    path = tmp_path / "modern" / "train.txt.xz"
    path.parent.mkdir()
    path.write_bytes(lzma.compress("\n\n".join(map("\n".join, [*documents, kept])).encode()))
    assert list(mini_corpus.modern(tmp_path)) == [kept]
    for name in ("cmrc2018/dev.json", "ocnli/dev.jsonl", "sentiment/dev.tsv"):
        (tmp_path / name).unlink()
    left = [documents[number] for number in (0, 1, 3, 4, 6)]
    assert list(mini_corpus.modern(tmp_path)) == [*left, kept]
    written("ocnli/dev.jsonl", "{]")
    with pytest.raises(UserError, match="not JSON"):
        list(mini_corpus.modern(tmp_path))


@given(st.text("甲乙", max_size=8), st.lists(st.text("甲乙 \n", max_size=12), max_size=3))
def test_a_shared_stretch_is_found(mini_corpus, text, document):
    """Among all stretches, by brute force: at least twice STRETCH - 1 is found, less is not."""
    whole = "".join("".join(document).split())

    def common(length):
        return any(text[i : i + length] in whole for i in range(len(text) - length + 1))

    with unittest.mock.patch.object(mini_corpus, "STRETCH", 3):
        found = mini_corpus.shares(document, mini_corpus.stretches([text]))
    assert found or not common(5)
    assert common(3) or not found


@given(
    st.lists(
        st.tuples(st.sampled_from("史汉"), *[st.text("甲乙", min_size=1, max_size=3)] * 2),
        min_size=1,
    )
)
def test_both_sides_of_each_chapter(classical_corpus, tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("pairs") / "train.jsonl"
    lines = [json.dumps(dict(zip(("doc", "src", "tgt"), pair, strict=True))) for pair in pairs]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    classical, modern = [], []
    for number, document in enumerate(classical_corpus.documents(str(path))):
        (modern if number % 2 else classical).append(document)
    assert list(itertools.chain(*classical)) == [src for _, src, _ in pairs]
    assert list(itertools.chain(*modern)) == [tgt for _, _, tgt in pairs]
    assert [len(document) for document in classical] == [len(document) for document in modern]
    assert list(classical_corpus.documents(str(path), ("tgt",))) == modern
    changes = [before[0] != after[0] for before, after in itertools.pairwise(pairs)]
    assert len(classical) == 1 + sum(changes)


@pytest.mark.parametrize("name", ("classical.sh", "poetry.sh"))
def test_a_folder_of_results_that_would_not_be_read_is_refused(tmp_path, name):
    """The scripts read what the training has written in a folder of their own."""
    result = subprocess.run(
        ("bash", str(REPOSITORY / "examples" / name), str(tmp_path), "--output_dir=elsewhere"),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert result.stderr == (
        f"{name}: error: --output_dir=elsewhere: the results are in a folder of their own; leave "
        "it out\n"
    )


@pytest.mark.parametrize(
    "name, flags",
    (("sample_lines", ("--count=1",)), ("classical_corpus", ())),
)
def test_an_input_is_not_overwritten(tmp_path, name, flags):
    path = tmp_path / "a.jsonl"
    path.write_text('{"doc": "1", "src": "a", "tgt": "b"}\n' * 2)

    def told(output):
        command = (sys.executable, str(REPOSITORY / "examples" / f"{name}.py"), *flags)
        command += (f"--input_file={path}", f"--output_file={output}")
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 1 and result.stderr.count("\n") == 1
        return result.stderr

    assert "is also an input file and would be overwritten" in told(path)
    assert path.read_text().count("\n") == 2
    if name == "sample_lines":
        assert "is not packed; leave .gz out" in told(tmp_path / "b.jsonl.gz")


def test_what_mini_lacks_is_told_in_a_line_and_nothing_is_left(tmp_path):
    ended = subprocess.run(
        (
            sys.executable,
            str(REPOSITORY / "examples" / "mini_corpus.py"),
            f"--data={tmp_path}",
            f"--output_dir={tmp_path}",
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1 and len(ended.stderr.splitlines()) == 1, ended.stderr
    assert "classical_modern/train.jsonl.gz" in ended.stderr
    assert list(tmp_path.iterdir()) == []


SENTENCES = st.text("甲乙。a ", min_size=1).map(str.strip).filter(bool)


@given(st.lists(st.lists(SENTENCES, min_size=1)), st.sampled_from(("", ".gz")))
def test_documents_that_are_written_are_read_again(tmp_path_factory, documents, ending):
    path = str(tmp_path_factory.mktemp("corpus") / f"corpus.txt{ending}")
    write_documents(path, iter(documents))
    assert list(read_documents(path)) == documents
    again = path.replace("corpus.txt", "again.txt")
    write_documents(again, iter(documents))
    assert files.same_bytes(path, again)


@given(st.text("甲乙。！？”》 \n　", max_size=30))
def test_sentences_of_mini_lose_no_character(mini_corpus, text):
    found = mini_corpus.sentences(text)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() != "" for sentence in found)


def test_perplexities_by_the_length_of_the_memory(tmp_path, capsys):
    for run, length, value in (("with", 0, 9.0), ("with", 64, 7.0), ("without", 0, 8.0)):
        path = tmp_path / run / f"memory_{length}.json"
        write_json(path, next_token_perplexity=value)
    program("memory_lengths").main(tmp_path)
    assert capsys.readouterr().out.splitlines()[2:] == ["| 0 | 9.00 | 8.00 |", "| 64 | 7.00 | - |"]
    assert (tmp_path / "memory.png").read_bytes().startswith(b"\x89PNG")


def test_blanks_of_what_the_examples_leave_out(blanks, tmp_path):
    """The documents of --eval_share are those that the program which makes examples holds out."""
    corpus = RESOURCES / "sample_corpus.txt"
    create_pretraining_data(
        input_file=str(corpus),
        output_file=str(tmp_path / "train.tfrecord"),
        eval_output_file=str(tmp_path / "eval.tfrecord"),
        eval_share=0.3,
        vocab_file=str(RESOURCES / "vocab.txt"),
        masking="none",
        num_workers=1,
    )
    summary = json.loads((tmp_path / "eval.tfrecord.json").read_text(encoding="utf-8"))
    documents = list(read_documents(corpus))
    flags.FLAGS(["blanks.py", f"--input_file={corpus}", "--eval_share=0.3"])
    tokenizer = nezha_tf.FullTokenizer(RESOURCES / "vocab.txt")
    with unittest.mock.patch.object(blanks, "MOST_TOKENS", 10**6):  # a text is a whole document
        found = list(blanks.texts(tokenizer, str(corpus)))
    assert len(found) == summary["documents"] < len(documents)
    assert sum(map(len, found)) == summary["statistics"]["text_tokens"]


def test_blanks_are_filled_as_by_the_tool(blanks, tmp_path):
    """With the places of the program, the package's own filler has the same first choices."""
    text = "皇帝派使者前往京城。大臣们都不敢说话。他回到家里，把这件事告诉了母亲。"
    path = tmp_path / "texts.txt"
    sentences = text.replace("。", "。\n")
    path.write_text(f"{sentences}\n{sentences * 2}\n很短。\n", encoding="utf-8")
    flags.FLAGS(["blanks.py", f"--input_file={path}", "--eval_share=1"])
    tokenizer, model = nezha_tf.load("mini")
    filler, rng = BlankFiller(model, tokenizer, blanks.CHOICES), random.Random(1)
    right = []
    for whole in (text, text * 2):
        characters = [i for i, character in enumerate(whole) if character not in "，。"]
        places = sorted(rng.sample(characters, blanks.BLANKS))
        hidden = "".join("[MASK]" if i in places else one for i, one in enumerate(whole))
        found = [[token for token, _ in candidates] for candidates in filler(hidden)]
        right += [(whole[i], candidates) for i, candidates in zip(places, found, strict=True)]
    first = sum(one == candidates[0] for one, candidates in right)
    among = sum(one in candidates for one, candidates in right)
    assert 0 < first < among  # else the test could not tell much
    filled = blanks.filled(tokenizer, model, str(path))
    assert filled == pytest.approx((first / len(right), among / len(right), len(right)))
