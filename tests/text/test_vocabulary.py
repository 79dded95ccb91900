"""The vocabulary object, the builder, and the bundled vocabulary."""

import pytest
from conftest import REPOSITORY, RESOURCES

from nezha_tf import FullTokenizer, Vocabulary
from nezha_tf.data.corpus import read_documents
from nezha_tf.text.graph_tokenizer import GraphTokenizer
from nezha_tf.text.vocabulary_builder import SPECIALS, UnitCounter, VocabularyBuilder
from nezha_tf.util.errors import UserError


def sentences(*names):
    for name in names:
        for document in read_documents(str(RESOURCES / name)):
            yield from document


def build(lines, *arguments, **options):
    """Returns what a builder builds from lines, which it gets one by one."""
    builder = VocabularyBuilder(*arguments, **options)
    counter = UnitCounter(options.get("do_lower_case", True))
    for line in lines:
        builder.add(*counter.count(line))
    return builder.build()


def test_a_vocabulary_without_mask_is_refused():
    with pytest.raises(UserError, match=r"lacks \[MASK\]"):
        Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])


def test_the_line_that_is_not_utf8_is_named(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("[PAD]\n中\n".encode() + "国\n".encode("gb18030"))
    with pytest.raises(UserError, match="line 3: not UTF-8"):
        Vocabulary.from_file(path)


def test_tokens_are_as_long_as_the_tokenizer_in_the_graph_takes_them(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*SPECIALS, "a" * 256]) + "\n", encoding="utf-8")
    assert GraphTokenizer(Vocabulary.from_file(path)).tokenize(["a"]).numpy().tolist()
    path.write_text("\n".join([*SPECIALS, "字" * 86]) + "\n", encoding="utf-8")
    with pytest.raises(UserError, match=f"line {len(SPECIALS) + 1}: a token has more than 256"):
        Vocabulary.from_file(path)


def test_shipped_vocabulary_is_what_the_builder_makes():
    """The command is in nezha_tf/resources/README.md."""
    include = list(sentences("latin_words.txt"))
    tokens, coverage = build(
        sentences("sample_corpus.txt", "latin_words.txt"),
        9500,
        common_characters=True,
        min_character_count=1,
        include=include,
    )
    assert tokens == Vocabulary.from_file(RESOURCES / "vocab.txt").tokens
    assert coverage == (1.0, 1.0)


def test_shipped_vocabulary():
    vocabulary = Vocabulary.from_file(RESOURCES / "vocab.txt")
    assert vocabulary.tokens[:104] == list(SPECIALS)
    assert vocabulary.ids_of(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]) == [
        0,
        *range(100, 104),
    ]
    assert len(set(vocabulary.tokens)) == len(vocabulary)
    tokenizer = FullTokenizer(vocabulary=vocabulary)
    text = "电脑電腦，龙龍台臺！Learning TensorFlow 3.5% 「你好」《书》……——"
    assert "[UNK]" not in tokenizer.tokenize(text)
    unknown = total = 0
    for sentence in sentences("sample_corpus.txt"):
        tokens = tokenizer.tokenize(sentence)
        unknown += tokens.count("[UNK]")
        total += len(tokens)
    assert unknown == 0 and total > 15_000


def test_tiny_config_fits_the_shipped_vocabulary():
    from nezha_tf import NezhaConfig

    config = NezhaConfig.from_json_file(REPOSITORY / "configs" / "nezha_tiny.json")
    assert config.vocab_size == len(Vocabulary.from_file(RESOURCES / "vocab.txt"))


def test_builder_orders_characters_by_frequency_and_bounds_the_size():
    text = ["好好好好的的的人人我"] * 2 + ["playing played player plays play"] * 5
    tokens, coverage = build(text, 300, min_character_count=3)
    assert tokens[104:107] == ["好", "的", "人"]
    assert coverage.chinese == pytest.approx(18 / 20) and coverage.other == 1.0
    assert "play" in tokens and "我" not in tokens
    assert len(tokens) <= 300
    assert not any(token.startswith("##") and "\u4e00" <= token[2] <= "\u9fff" for token in tokens)
    with pytest.raises(UserError, match="too small"):
        build(text, 150)
    with pytest.raises(UserError, match="no text"):
        build([], 300)


def test_rare_characters_leave_room_for_frequent_words():
    """As in pages of the web: words of common letters, and each emoji once."""
    emoji = [chr(0x1F300 + n) for n in range(600)]
    text = ["hello world"] * 50 + emoji
    always = len(build(["a"], 300)[0])
    tokens, coverage = build(text, always + 100)
    assert {"hello", "world"} <= set(tokens) and len(tokens) <= always + 100
    kept = len(set(tokens) & set(emoji))
    assert 0 < kept <= 25 and coverage == (None, (100 + kept) / 700)
    tokens, coverage = build(text, always + 1300)  # room for all of them, and their "##" tokens
    assert {"hello", "world", *emoji} <= set(tokens) and coverage == (None, 1.0)


def test_sample_corpus_is_as_large_as_promised():
    documents = list(read_documents(str(RESOURCES / "sample_corpus.txt")))
    lines = [line for document in documents for line in document]
    assert len(documents) >= 40 and len(lines) >= 300
    assert len(set(lines)) == len(lines)
