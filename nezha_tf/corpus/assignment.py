"""Assigns documents to shards."""

from typing import NamedTuple

import google_crc32c

from nezha_tf.corpus.documents import CorpusChanged, draw_of, raw_documents
from nezha_tf.data.text_forms import PLAIN

# With --dupe_factor=10, this much text gives 140,000 examples of 128 tokens (110 MB of records).
SHARD_BYTES = 4 << 20

TRAINING, HELD_OUT = "training", "held_out"


class Shard(NamedTuple):
    """The documents of one shard.

    Attributes:
      set_name: `TRAINING` or `HELD_OUT`.
      index: its number in the set, from 0.
      documents: list of (number in the corpus, text as bytes).
    """

    set_name: str
    index: int
    documents: list


def default_shards(documents):
    """Returns the number of shards of a set: the lowest power of two for `SHARD_BYTES` each.

    There are fewer shards, powers of two too, if there are not enough documents for them. As no
    document is longer than `SHARD_BYTES`, a shard then has less than twice as much in the mean.

    Args:
      documents: the set's `Documents`.
    """
    shards = 1
    while shards * SHARD_BYTES < documents.bytes and 2 * shards <= documents.count:
        shards *= 2
    return shards


class Span(NamedTuple):
    """Where the documents of one shard are in the corpus; with it any machine can read them.

    Attributes:
      set_name: `TRAINING` or `HELD_OUT`.
      index: the shard's number in the set, from 0.
      file: index of the file in which its first document begins.
      offset: the place in that file, in bytes of the uncompressed text.
      first, last: numbers in the corpus of its first and its last document. The documents between
        them belong to the shard if they belong to its set.
      crc32c: `checksum_of` its documents, by which a machine knows that it reads the same text.
    """

    set_name: str
    index: int
    file: int
    offset: int
    first: int
    last: int
    crc32c: int


def checksum_of(documents, before=0):
    """Returns the CRC-32C, an int, of the documents' texts and borders.

    Args:
      documents: iterable of (number in the corpus, text as bytes).
      before: the checksum of the documents before them.
    """
    crc = before
    for _, text in documents:
        crc = google_crc32c.extend(google_crc32c.extend(crc, text), b"\n\n")
    return crc


class Assignment:
    """Divides a set into shards of consecutive documents with about the same number of bytes.

    Of n shards, the document that begins after b of the set's B bytes goes to shard
    floor(b n / B); if necessary another one is taken, so that each shard has a document. A
    document's shard depends only on the corpus and on n.
    """

    def __init__(self, documents, shards):
        """Args:
        documents: the `Documents` of the set.
        shards: number n of shards, at most the number of documents.
        """
        self._total = documents
        self._shards = shards
        self._place = 0
        self._bytes = 0
        self._shard = -1

    def shard_of(self, length):
        """Returns the shard of the next document, which has `length` bytes."""
        by_bytes = min(self._shards - 1, self._bytes * self._shards // self._total.bytes)
        needed = self._shards - (self._total.count - self._place)  # one for each later shard
        self._shard = min(max(by_bytes, needed, 0), self._shard + 1)
        self._place += 1
        self._bytes += length
        return self._shard


def shards_of(paths, measure, seed, shards, wanted, reading=PLAIN):
    """Reads a corpus and yields its `Shard`s, each when its last document has been read.

    Args:
      paths: the files of the corpus.
      measure: their `Measure`.
      seed: the random seed.
      shards: dict of set name to its number of shards.
      wanted: set of (set name, index) of the shards to yield.
      reading: `text_forms.Reading`, the same as for the measure.

    Raises:
      UserError: a file cannot be read.
      CorpusChanged: the corpus has changed since it was measured; that is known only at its end.
    """
    begun = {}
    for name, index, number, _, document in _assigned(paths, measure, seed, shards, reading):
        if name in begun and begun[name].index != index and begun[name].documents:
            yield begun.pop(name)
        if name not in begun or begun[name].index != index:
            begun[name] = Shard(name, index, [])
        if (name, index) in wanted:
            begun[name].documents.append((number, document.text))
    yield from (shard for shard in begun.values() if shard.documents)


def spans_of(paths, measure, seed, shards, wanted, reading=PLAIN):
    """Reads a corpus and yields the `Span`s of its shards; arguments as for `shards_of`."""
    begun = {}
    for name, index, number, file, document in _assigned(paths, measure, seed, shards, reading):
        span = begun.get(name)
        texts = [(number, document.text)]
        if span and span.index == index:
            begun[name] = span._replace(last=number, crc32c=checksum_of(texts, span.crc32c))
            continue
        if span and (name, span.index) in wanted:
            yield span
        crc = checksum_of(texts)
        begun[name] = Span(name, index, file, document.offset, number, number, crc)
    yield from (span for span in begun.values() if (span.set_name, span.index) in wanted)


def documents_of(span, paths, threshold, seed, reading=PLAIN):
    """Reads the documents of a shard from the corpus.

    Args:
      span: its `Span`.
      paths: the files of the corpus.
      threshold: as in `Measure`.
      seed: the random seed.
      reading: `text_forms.Reading`.

    Returns:
      List of (number in the corpus, text as bytes), as in `Shard`.

    Raises:
      UserError: a file cannot be read.
      CorpusChanged: it ends before the last document.
    """
    documents, number, start = [], span.first, span.offset
    for path in paths[span.file :]:
        for document in raw_documents(path, start, reading):
            if _set_of(number, threshold, seed) == span.set_name:
                documents.append((number, document.text))
            if number == span.last:
                return documents
            number += 1
        start = 0
    raise CorpusChanged(f"{paths[span.file]}: changed while being read; start again")


def _assigned(paths, measure, seed, shards, reading):
    """Yields (set, shard, number in the corpus, number of the file, `RawDocument`) in order."""
    totals = {TRAINING: measure.training, HELD_OUT: measure.held_out}
    assignments = {name: Assignment(totals[name], count) for name, count in shards.items()}
    number = crc = 0
    for file, path in enumerate(paths):
        for document in raw_documents(path, 0, reading):
            name = _set_of(number, measure.threshold, seed)
            yield name, assignments[name].shard_of(len(document.text)), number, file, document
            crc = checksum_of([(number, document.text)], crc)
            number += 1
    if f"{crc:08x}" != measure.crc32c:
        raise CorpusChanged(f"{', '.join(paths)}: changed while being read; start again")


def _set_of(number, threshold, seed):
    return HELD_OUT if threshold and draw_of(seed, number) < threshold else TRAINING
