"""What is counted while shards are made: their contents, and the seconds of stages."""

import collections
import contextlib
import dataclasses
import time

import numpy as np

from nezha_tf.corpus.packing import PACKED

MOST_FREQUENT_SHOWN = 10
READING, SEGMENTATION, TOKENS, EXAMPLES, WRITING = STAGES = (
    "reading",
    "segmentation",
    "tokens",
    "examples",
    "writing",
)


@dataclasses.dataclass
class Statistics:
    """Counts over the text of a shard, and over its examples."""

    documents: int = 0  # that have a token
    sentences: int = 0  # that have a token
    characters: int = 0  # of the text, white space included
    text_tokens: int = 0  # of the text in one pass
    token_characters: int = 0  # of the text, that belong to tokens
    used_characters: int = 0  # whose tokens are in at least one example
    # Those for which the vocabulary has no token.
    unknown_characters: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    long_sentences: int = 0  # with more tokens than an example has room for
    instances: int = 0  # examples
    texts: int = 0  # in rows of packed texts; otherwise as many as examples
    label_1: int = 0  # examples whose B is random ("nsp"), or with A and B swapped ("sop")
    tokens: int = 0  # of the examples, without special ones
    length: int = 0  # tokens with special ones, without padding
    capacity: int = 0  # tokens with special ones and padding
    masked: int = 0  # predicted tokens that became [MASK],
    replaced: int = 0  # that became another token,
    kept: int = 0  # or that stayed

    def count_text(self, tokens, room):
        """Counts the text of a shard (`ShardTokens`); `room` is that of an example in tokens."""
        self.documents += len(tokens.documents)
        self.sentences += len(tokens.bounds) - 1
        self.characters += tokens.characters
        self.text_tokens += len(tokens.ids)
        self.unknown_characters.update(tokens.unknown_characters)
        lengths = zip(tokens.bounds, tokens.bounds[1:], strict=False)
        self.long_sentences += sum(end - start > room for start, end in lengths)

    def count_use(self, tokens, ranges):
        """Counts the text in examples: `ranges` of its tokens, int64 [R, 2], starts and ends."""
        steps = np.zeros(len(tokens.ids) + 1, np.int64)
        np.add.at(steps, ranges[:, 0], 1)
        np.add.at(steps, ranges[:, 1], -1)
        is_used = np.cumsum(steps[:-1]) > 0
        self.token_characters += int(tokens.sizes.sum(dtype=np.int64))
        self.used_characters += int(tokens.sizes[is_used].sum(dtype=np.int64))

    @property
    def used_share(self):
        """The share of the text's characters that are in at least one example; 1 if unknown."""
        return self.used_characters / self.token_characters if self.token_characters else 1.0

    def count_examples(self, rows, labels):
        """Counts examples: `PackedRows` and their `next_sentence_labels`, int [B]."""
        self.instances += len(rows.ids)
        self.texts += int(rows.text_ids.max(axis=1, initial=0).sum())
        self.label_1 += int(labels.sum())
        self.tokens += int(rows.is_text.sum())
        self.length += int(rows.lengths.sum())
        self.capacity += rows.ids.size

    def count_predictions(self, masked, mask_id):
        """Counts what is predicted in examples (`Masked` of `ArrayMasking`)."""
        is_predicted = masked.weights > 0
        tokens, places = masked.labels[is_predicted], masked.positions[is_predicted]
        new_ids = masked.ids[is_predicted.nonzero()[0], places]
        is_masked, is_kept = new_ids == mask_id, new_ids == tokens
        self.masked += int(is_masked.sum())
        self.kept += int((is_kept & ~is_masked).sum())
        self.replaced += int((~is_masked & ~is_kept).sum())

    def add(self, other):
        for field in dataclasses.fields(self):
            mine, others = getattr(self, field.name), getattr(other, field.name)
            setattr(self, field.name, mine + others)

    def to_dict(self):
        """Returns the counts as JSON values, with unknown characters by frequency."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**values, "unknown_characters": dict(self._unknown())}

    @classmethod
    def from_dict(cls, values):
        """Returns the `Statistics` for the values that `to_dict`, of any version, returned."""
        known = {f.name: values[f.name] for f in dataclasses.fields(cls) if f.name in values}
        known["unknown_characters"] = collections.Counter(values["unknown_characters"])
        return cls(**known)

    def rows(self, pair="nsp"):
        """Returns a list of (name, value) rows for a table; `pair` is the kind of examples."""
        label_1 = {"nsp": "random next sentence", "sop": "swapped segments"}.get(pair)
        unknown = self.unknown_characters.total()
        unknown_text = f"{unknown:,} ({unknown / (self.characters or 1):.2%})"
        if unknown:
            most = [_shown(char) for char, _ in self._unknown()[:MOST_FREQUENT_SHOWN]]
            unknown_text += f": {' '.join(most)}"
        instances, tokens, capacity = self.instances or 1, self.tokens or 1, self.capacity or 1
        shares = [
            ("masked characters", f"{self.masked / tokens:.2%}"),
            ("randomly replaced characters", f"{self.replaced / tokens:.2%}"),
            ("predicted but kept characters", f"{self.kept / tokens:.2%}"),
        ]
        rows = [
            ("documents", f"{self.documents:,}"),
            ("sentences", f"{self.sentences:,}"),
            ("instances", f"{self.instances:,}"),
            *([("texts", f"{self.texts:,}")] if pair == PACKED else ()),
            ("characters that are in an example", f"{self.used_share:.1%}"),
            (label_1, f"{self.label_1 / instances:.1%}"),
            *(shares if self.masked + self.replaced + self.kept else ()),
            ("mean length", f"{self.length / instances:.1f}"),
            ("padding", f"{1 - self.length / capacity:.1%}"),
            ("sentences longer than an example", f"{self.long_sentences:,}"),
            ("characters outside the vocabulary", unknown_text),
        ]
        return [row for row in rows if row[0]]

    def _unknown(self):
        return sorted(self.unknown_characters.items(), key=lambda item: (-item[1], item[0]))


def _shown(char):
    """Returns a character, or its code point if it is not printable."""
    return char if char.isprintable() else "+".join(f"U+{ord(part):04X}" for part in char)


class Stopwatch:
    """Adds up the seconds of stages; those of a stage inside another count for the inner one."""

    def __init__(self):
        self._seconds = collections.Counter()
        self._inner = 0.0  # seconds of the stages inside the one that is open

    @contextlib.contextmanager
    def stage(self, name):
        """Counts the time of the block for a stage, one of `STAGES`."""
        started, outer, self._inner = time.perf_counter(), self._inner, 0.0
        try:
            yield
        finally:
            spent = time.perf_counter() - started
            self._seconds[name] += spent - self._inner
            self._inner = outer + spent

    def each(self, name, items):
        """Yields the items of an iterable; getting each of them is timed as a stage."""
        items, end = iter(items), object()
        while True:
            with self.stage(name):
                item = next(items, end)
            if item is end:
                return
            yield item

    def taken(self):
        """Returns a Counter of stage to seconds since the last call."""
        taken, self._seconds = self._seconds, collections.Counter()
        return taken
