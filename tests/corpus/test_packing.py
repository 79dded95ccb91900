"""The sentences of examples: the original's, ALBERT's and RoBERTa's rules, on any shard.

In the property tests no token occurs twice in a shard, so tokens show where they come from."""

import itertools
import json
import random
from typing import NamedTuple

import classic
import laws
import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from nezha_tf import FullTokenizer, Vocabulary
from nezha_tf.corpus.packing import PairPacker, pack_full_sentences, pack_rows, pack_texts
from nezha_tf.corpus.tokens import ShardTokens
from nezha_tf.data.corpus import read_documents
from nezha_tf.objectives.policies import budgets


def test_instances_are_those_of_the_original(shared_golden):
    """With the original's generator, packing and a simple masking give exactly its instances."""
    figures = json.loads((shared_golden / "pretraining_data.json").read_text(encoding="utf-8"))
    vocabulary = Vocabulary.from_file(shared_golden / "vocab.txt")
    length, rng = figures["max_seq_length"], random.Random(figures["random_seed"])
    limits = budgets(length, figures["masked_lm_prob"], figures["max_predictions_per_seq"])
    tokenizer = FullTokenizer(vocabulary=vocabulary)
    documents = [
        [vocabulary.ids_of(tokenizer.tokenize(line)) for line in lines]
        for lines in read_documents(str(shared_golden / "sample_text.txt"))
    ]
    rng.shuffle(documents)
    tokens = classic.shard_tokens(documents)
    packer = PairPacker(tokens, "nsp", length, figures["short_seq_prob"], 0.5)
    instances = []
    for _ in range(figures["dupe_factor"]):
        for index in range(len(documents)):
            for ranges, label in packer.pack(index, rng):
                starts, ends = np.array(ranges).T
                rows = pack_rows(tokens, starts, ends, np.array([2]), vocabulary, length, "nsp")
                size = int(rows.lengths[0])
                ids, segment_ids = rows.ids[0, :size].tolist(), rows.segment_ids[0, :size].tolist()
                masked = classic.mask_tokens(ids, rows.is_text[0], limits[size], vocabulary, rng)
                instances.append((segment_ids, bool(label), *masked))
    rng.shuffle(instances)
    assert len(instances) == len(figures["instances"]) == 16
    for (segment_ids, is_random_next, ids, places, labels), expected in zip(
        instances, figures["instances"], strict=True
    ):
        assert expected == {
            "tokens": vocabulary.tokens_of(ids),
            "segment_ids": segment_ids,
            "is_random_next": is_random_next,
            "masked_lm_positions": places,
            "masked_lm_labels": vocabulary.tokens_of(labels),
        }


CLS, SEP, FIRST_TOKEN = 101, 102, 200  # of the bundled vocabulary; `classic` counts from 200 on
SHARES = st.sampled_from([0.0, 0.1, 0.5, 1.0])


class Shard(NamedTuple):
    """Documents, and examples' length T that their sizes have to do with.

    Attributes:
      documents: list of documents, lists of sentences, lists of tokens.
      tokens: the same as `ShardTokens`.
      length: T.
    """

    documents: list
    tokens: ShardTokens
    length: int

    def starts_word(self, token):
        return bool(self.tokens.word_starts[token - FIRST_TOKEN])

    def texts(self, ranges):
        """Returns the tokens of some ranges."""
        return [self.tokens.ids[start:end].tolist() for start, end in ranges]


def shard_of(sizes, length, word_starts=None):
    """Returns the `Shard` of documents whose sentences have the given numbers of tokens."""
    numbers = itertools.count(FIRST_TOKEN)
    documents = [
        [list(itertools.islice(numbers, size)) for size in sentences] for sentences in sizes
    ]
    return Shard(documents, classic.shard_tokens(documents, word_starts), length)


@st.composite
def shards(draw):
    """Draws shards with single tokens, sentences that exactly fill an example, and longer ones."""
    length = draw(st.integers(5, 30))
    lengths = st.integers(1, 3) | st.integers(max(1, length - 5), length) | st.integers(1, 70)
    document = st.lists(lengths, min_size=1, max_size=7)
    sizes = draw(st.lists(document, min_size=1, max_size=5))
    count = sum(map(sum, sizes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return shard_of(sizes, length, rng.random(count) < draw(SHARES))


def packed(shard, pair, short, share, seed):
    """Returns the instances of each document, with the generator's state after them."""
    rng = random.Random(seed)
    packer = PairPacker(shard.tokens, pair, shard.length, short, share)
    return [
        (list(packer.pack(index, rng)), rng.getstate()) for index in range(len(shard.documents))
    ]


def pairs_by_hand(shard, index, pair, short, share, rng):
    """Yields (A, B, label): the original's `create_instances_from_document`, with ALBERT's rule.

    Sentences are added one by one, and what is too long loses one token after the other.
    """
    document, most = shard.documents[index], shard.length - 3
    target = rng.randint(2, most) if rng.random() < short else most
    chunk, place = [], 0
    while place < len(document):
        chunk.append(document[place])
        if place == len(document) - 1 or sum(map(len, chunk)) >= target:
            split = rng.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
            first, second = (
                list(itertools.chain(*part)) for part in (chunk[:split], chunk[split:])
            )
            label = 0
            if pair == "sop":
                if len(chunk) == 1:
                    first, second = parted_at_a_word(shard, chunk[0], rng)
                if second and rng.random() < share:
                    first, second, label = second, first, 1
            elif len(chunk) == 1 or rng.random() < share:
                second, label = random_text(shard.documents, index, target - len(first), rng), 1
                place -= len(chunk) - split
            if second:
                shorten(first, second, most, rng)
                yield first, second, label
            chunk = []
        place += 1


def parted_at_a_word(shard, sentence, rng):
    """Returns both parts; the second is empty if there is only one word."""
    inner = [place for place in range(1, len(sentence)) if shard.starts_word(sentence[place])]
    if not inner:
        return sentence, []
    place = inner[rng.randint(0, len(inner) - 1)]
    return sentence[:place], sentence[place:]


def random_text(documents, index, wanted, rng):
    for _ in range(10):
        other = rng.randint(0, len(documents) - 1)
        if other != index:
            break
    start, text = rng.randint(0, len(documents[other]) - 1), []
    for sentence in documents[other][start:]:
        text += sentence
        if len(text) >= wanted:
            break
    return text


def shorten(first, second, most, rng):
    while len(first) + len(second) > most:
        longer = first if len(first) > len(second) else second
        longer.pop(0 if rng.random() < 0.5 else -1)


@laws.examples(150)
@given(shards(), st.sampled_from(["nsp", "sop"]), SHARES, SHARES, st.integers(0, 2**32))
def test_pairs_are_those_of_the_original(shard, pair, short, share, seed):
    """The same draws in the same order give the same pairs and use the same number of draws."""
    rng = random.Random(seed)
    for index, (instances, state) in enumerate(packed(shard, pair, short, share, seed)):
        found = [(*shard.texts(ranges), label) for ranges, label in instances]
        assert found == list(pairs_by_hand(shard, index, pair, short, share, rng))
        assert state == rng.getstate()


def full_by_hand(documents, length):
    """Returns rows of texts of one document each: a sentence goes into the last row if it fits."""
    rows, row = [], []
    for document in documents:
        goes_on = False  # the document's text in this row
        for sentence in document:
            while sentence:
                room = length - 1 - sum(len(text) + 1 for text in row) - (not goes_on)
                if len(sentence) > room and row:
                    rows.append(row)
                    row, goes_on = [], False
                    continue
                if not goes_on:
                    row.append([])
                row[-1] += sentence[:room]
                goes_on, sentence = True, sentence[room:]
    return [*rows, row] if row else rows


@st.composite
def shards_in_order(draw):
    """Draws (shard, an order of some or all of its documents)."""
    shard = draw(shards())
    places = list(range(len(shard.documents)))
    some = st.lists(st.sampled_from(places), unique=True)
    return shard, draw(st.permutations(places) | some)


@laws.examples(300)
@given(shards_in_order())
@example((shard_of([[3], [8]], 10), [1, 0]))  # the first document after a full row
@example((shard_of([[3], [7]], 10), [1, 0]))  # a row with room only for a [SEP]
def test_full_sentences_are_packed_as_one_by_one(case):
    shard, order = case
    instances = list(pack_full_sentences(shard.tokens, shard.length, order))
    documents = [shard.documents[index] for index in order]
    rows = [shard.texts(ranges) for ranges, _ in instances]
    assert rows == full_by_hand(documents, shard.length)
    # What is true for the result by hand: all text is there, in order and within the length.
    tokens = [token for row in rows for text in row for token in text]
    assert tokens == [token for document in documents for text in document for token in text]
    for row, (_, label) in zip(rows, instances, strict=True):
        assert 1 + sum(len(text) + 1 for text in row) <= shard.length and label == 0


def best_fit_by_hand(sizes, length):
    """Returns the rows' sizes: each text, the longest first, goes into the fullest row with room.

    With them comes the number of texts in each row.
    """
    rows, counts = [], []
    for size in sorted(sizes, reverse=True):
        fitting = [number for number, row in enumerate(rows) if row + size <= length]
        if fitting:
            best = max(fitting, key=lambda number: rows[number])
        else:
            best = len(rows)
            rows.append(0)
            counts.append(0)
        rows[best] += size
        counts[best] += 1
    return rows, counts


@laws.examples(300)
@given(shards())
@example(shard_of([[8], [8]], 10))  # texts that fill their rows
@example(shard_of([[9, 1], [1]], 10))  # a sentence that is longer than a row goes on
@example(shard_of([[1]] * 7, 10))  # three texts of one token have room, and a place is left
def test_every_document_is_in_rows_of_whole_texts(shard):
    instances = list(pack_texts(shard.tokens, shard.length))
    assert instances == list(pack_texts(shard.tokens, shard.length))
    room = shard.length - 2
    texts = sorted(text for ranges, _ in instances for text in shard.texts(ranges))
    # Each token is there once and in its order, as tokens are numbered; no text has two documents.
    in_order = [token for text in texts for token in text]
    assert in_order == shard.tokens.ids.tolist()
    of_texts = iter(texts)
    for document in shard.documents:
        left = [token for sentence in document for token in sentence]
        ends = {sentence[-1] for sentence in document}
        while left:
            text = next(of_texts)
            assert text == left[: len(text)] and len(text) <= room
            left = left[len(text) :]
            # A text is as long as it can be: to the last sentence end in reach, or to the row's.
            reach = [token for token in text + left[: room - len(text)] if token in ends]
            assert text[-1] == reach[-1] if reach else len(text) == room
    sizes = [[len(text) + 2 for text in shard.texts(ranges)] for ranges, _ in instances]
    assert {label for _, label in instances} <= {0}
    assert max(map(sum, sizes), default=0) <= shard.length
    # No two rows have room for each other's texts, as the later one would not have been begun.
    fullness = sorted(map(sum, sizes))
    assert len(sizes) < 2 or fullness[0] + fullness[1] > shard.length
    rows, counts = best_fit_by_hand(itertools.chain(*sizes), shard.length)
    assert sorted(rows) == fullness and sum(counts) == sum(map(len, sizes))


def instances_of(shard, pair, seed):
    if pair == "packed":
        return list(pack_texts(shard.tokens, shard.length))
    if pair == "none":
        order = range(len(shard.documents))
        return list(pack_full_sentences(shard.tokens, shard.length, order))
    return [found for part, _ in packed(shard, pair, 0.1, 0.5, seed) for found in part]


@laws.examples(150)
@given(shards(), st.sampled_from(["nsp", "sop", "none", "packed"]), st.integers(0, 2**32))
def test_rows_are_the_texts_between_special_tokens(vocabulary, shard, pair, seed):
    assert (vocabulary.cls_id, vocabulary.sep_id) == (CLS, SEP)
    instances = instances_of(shard, pair, seed)
    flat = [found for ranges, _ in instances for found in ranges]
    starts, ends = np.array(flat, np.int64).reshape(-1, 2).T
    counts = np.array([len(ranges) for ranges, _ in instances], np.int64)
    rows = pack_rows(shard.tokens, starts, ends, counts, vocabulary, shard.length, pair)
    for number, (ranges, _) in enumerate(instances):
        texts = [[*text, SEP] for text in shard.texts(ranges)]
        if pair == "packed":
            texts = [[CLS, *text] for text in texts]
            text_ids = [place for place, text in enumerate(texts, 1) for _ in text]
        else:
            texts[0].insert(0, CLS)
            text_ids = [1 for text in texts for _ in text]
        row = [token for text in texts for token in text]
        is_text = [token >= FIRST_TOKEN for token in row]
        begins = [
            text and (not before or shard.starts_word(token))
            for token, text, before in zip(row, is_text, [False, *is_text], strict=False)
        ]
        is_pair = pair in ("nsp", "sop")
        segments = [row[:place].count(SEP) * is_pair for place in range(len(row))]
        assert rows.lengths[number] == len(row) <= shard.length
        expected = (row, segments, is_text, begins, text_ids)
        for found, values in zip((*rows[:4], rows.text_ids), expected, strict=True):
            assert found[number].tolist() == values + [0] * (shard.length - len(row))
