"""Makes the records of a shard from its documents, and checks them before they are written."""

import array

import numpy as np

from nezha_tf.corpus.encoding import encode_block
from nezha_tf.corpus.packing import (
    PACKED,
    SINGLE,
    PairPacker,
    pack_full_sentences,
    pack_rows,
    pack_texts,
)
from nezha_tf.corpus.row_check import check_rows
from nezha_tf.corpus.statistics import TOKENS, Statistics
from nezha_tf.corpus.tokens import TokenReader
from nezha_tf.data import draws, schema
from nezha_tf.objectives.array_masking import ArrayMasking
from nezha_tf.objectives.policies import POLICIES, UNMASKED
from nezha_tf.text.vocabulary import Vocabulary

# Examples that are packed, masked and encoded together; at length 128 they take about 15 MB.
ROWS_AT_ONCE = 512


class ShardMaker:
    """Makes the records of one shard after another.

    Sentences are split into tokens and words once. Draws for a document depend on the seed, its
    number and the repetition. Draws for the shard (the order of the records, and with `pair="none"`
    the order of the documents) depend on the seed and the number of its first document. So the same
    documents give the same bytes in any process.

    `statistics` are those of the latest shard, complete when its iterator has ended; `clock` is a
    `Stopwatch` with the time of `SEGMENTATION` and `TOKENS`.
    """

    def __init__(self, settings):
        """Raises a `UserError` if vocabulary or dictionary are bad, or the segmenter is missing."""
        self._settings = settings
        self._vocabulary = Vocabulary.from_file(settings.vocab_file)
        self._reader = TokenReader(settings, self._vocabulary)
        self.clock = self._reader.clock
        self._of_pairs = settings.pair not in SINGLE
        self._is_stream = settings.pair == "stream"
        self._is_packed = settings.pair == PACKED
        self._masking = None
        if settings.masking != UNMASKED:
            self._masking = ArrayMasking(
                self._vocabulary,
                POLICIES[settings.masking],
                schema.Lengths(settings.max_seq_length, settings.max_predictions_per_seq),
                settings.masked_lm_prob,
            )
        self.statistics = Statistics()

    def make(self, documents, repetitions):
        """Yields the records of a shard, serialized `tf.train.Example`s in random order.

        `documents` are (number in the corpus, list of sentences); each is gone through
        `repetitions` times.
        """
        self.statistics = Statistics()
        with self.clock.stage(TOKENS):
            tokens = self._reader.read(documents)
        special = 3 if self._of_pairs else 2
        self.statistics.count_text(tokens, self._settings.max_seq_length - special)
        if not tokens.documents:
            return
        instances = _Instances()
        rng = self._generator("shard", documents[0][0])
        if self._is_packed:
            pack = self._pack_texts
        else:
            pack = self._pack_pairs if self._of_pairs else self._pack_full_sentences
        pack(tokens, repetitions, instances, rng)
        instances.close()
        self.statistics.count_use(tokens, instances.all_ranges)
        key = np.uint64(rng.getrandbits(64))
        shuffle = draws.bits(key, np.arange(len(instances.labels)))
        order = np.argsort(shuffle, kind="stable")
        if self._is_stream:
            order = np.arange(len(order))
        for first in range(0, len(order), ROWS_AT_ONCE):
            yield from self._records(tokens, instances, order[first : first + ROWS_AT_ONCE])

    def _generator(self, *names):
        return draws.generator(self._settings.random_seed, *names)

    def _pack_pairs(self, tokens, repetitions, instances, rng):
        settings = self._settings
        packer = PairPacker(
            tokens,
            settings.pair,
            settings.max_seq_length,
            settings.short_seq_prob,
            settings.random_next_prob,
        )
        for repetition in range(repetitions):
            for index, (number, _, _) in enumerate(tokens.documents):
                rng = self._generator(number, repetition)
                for ranges, label in packer.pack(index, rng):
                    instances.add(ranges, label, rng.getrandbits(64))

    def _pack_full_sentences(self, tokens, repetitions, instances, rng):
        for _ in range(repetitions):
            order = list(range(len(tokens.documents)))
            if not self._is_stream:
                rng.shuffle(order)
            length = self._settings.max_seq_length
            for ranges, label in pack_full_sentences(tokens, length, order):
                instances.add(ranges, label, rng.getrandbits(64))

    def _pack_texts(self, tokens, repetitions, instances, rng):
        for _ in range(repetitions):
            for ranges, label in pack_texts(tokens, self._settings.max_seq_length):
                instances.add(ranges, label, rng.getrandbits(64))

    def _records(self, tokens, instances, chosen):
        starts, ends, counts = instances.ranges(chosen)
        labels = instances.labels[chosen]
        rows = pack_rows(
            tokens,
            starts,
            ends,
            counts,
            self._vocabulary,
            self._settings.max_seq_length,
            self._settings.pair,
        )
        values = {
            "input_ids": rows.ids,
            "input_mask": np.arange(rows.ids.shape[1]) < rows.lengths[:, None],
            "segment_ids": rows.segment_ids,
            "word_starts": rows.word_starts,
            "next_sentence_labels": labels[:, None],
        }
        if self._is_packed:
            values[schema.TEXT_IDS.name] = rows.text_ids
        self.statistics.count_examples(rows, labels)
        features = schema.features(bool(self._masking), self._is_packed)
        if self._masking:
            masked = self._masking(rows, instances.keys[chosen])
            self.statistics.count_predictions(masked, self._vocabulary.mask_id)
            values |= {
                "input_ids": masked.ids,
                "masked_lm_positions": masked.positions,
                "masked_lm_ids": masked.labels,
                "masked_lm_weights": masked.weights,
            }
        # The tokens of the ranges, a [SEP] after each, and a [CLS] before each row or packed text.
        num_tokens = (ends - starts).sum() + counts.sum()
        num_tokens += counts.sum() if self._is_packed else len(chosen)
        check_rows(values, num_tokens, self._vocabulary)
        return encode_block(features, values)


class _Instances:
    """The instances of a shard before packing, in flat arrays of about 60 bytes each."""

    def __init__(self):
        self._ranges = array.array("q")  # start, end, start, end ...
        self._counts, self.labels = array.array("q"), array.array("q")
        self.keys = array.array("Q")

    def add(self, ranges, label, key):
        for start_and_end in ranges:
            self._ranges.extend(start_and_end)
        self._counts.append(len(ranges))
        self.labels.append(label)
        self.keys.append(key)

    def close(self):
        """Converts what was added to NumPy arrays."""
        self.all_ranges = np.array(self._ranges).reshape(-1, 2)  # int64 [R, 2]
        self._counts, self.labels = np.array(self._counts), np.array(self.labels)
        self.keys = np.array(self.keys)
        self._firsts = np.cumsum(self._counts) - self._counts

    def ranges(self, chosen):
        """Returns (starts, ends, counts) of the ranges of the chosen instances."""
        counts = self._counts[chosen]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        where = within + np.repeat(self._firsts[chosen], counts)
        return *self.all_ranges[where].T, counts
