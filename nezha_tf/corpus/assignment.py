"""Assigns documents to shards."""

from typing import NamedTuple

from nezha_tf.corpus.documents import CorpusChanged, checksum_of, draw_of, raw_documents
from nezha_tf.data.text_forms import PLAIN

# With --dupe_factor=10, this much text gives 140,000 examples of 128 tokens (110 MB of records).
SHARD_BYTES = 4 << 20

TRAINING, HELD_OUT = "training", "held_out"


def default_shards(documents):
    """Returns the number of shards of a set: the lowest power of two for `SHARD_BYTES` each.

    There are fewer if there are not enough documents (`Documents`) for them. As no document is
    longer than `SHARD_BYTES`, a shard then has less than twice as much in the mean.
    """
    shards = 1
    while shards * SHARD_BYTES < documents.bytes and 2 * shards <= documents.count:
        shards *= 2
    return shards


class Shard(NamedTuple):
    """The documents of one shard, a list of (number in the corpus, text as bytes).

    `set_name` is `TRAINING` or `HELD_OUT`, and `index` the shard's number in the set. Its first
    document begins in file number `file` at the byte `offset` of the uncompressed text.
    """

    set_name: str
    index: int
    file: int
    offset: int
    documents: list

    @property
    def span(self):
        first, last = self.documents[0][0], self.documents[-1][0]
        return Span(*self[:4], first, last, checksum_of(self.documents))


class Span(NamedTuple):
    """Where the documents of one shard are in the corpus; with it any machine can read them.

    `first` and `last` are the numbers in the corpus of its first and its last document; those
    between them belong to the shard if they belong to its set. By `crc32c`, `checksum_of` the
    documents, a machine knows that it reads the same text.
    """

    set_name: str
    index: int
    file: int
    offset: int
    first: int
    last: int
    crc32c: int


class Assignment:
    """Divides a set, of `Documents` in all, into shards of consecutive ones of about as many bytes.

    Of n shards, the document that begins after b of the set's B bytes goes to shard
    floor(b n / B); if necessary another one is taken, so that each shard has a document. A
    document's shard depends only on the corpus and on n, which is at most the number of documents.
    """

    def __init__(self, documents, shards):
        self._total, self._shards = documents, shards
        self._place = self._bytes = 0
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
      paths, measure, seed, reading: the files, their `Measure`, and what they were measured with.
      shards: dict of set name to its number of shards.
      wanted: set of (set name, index) of the shards to yield.

    Raises:
      UserError: a file cannot be read.
      CorpusChanged: the corpus has changed since it was measured; that is known only at its end.
    """
    totals = {TRAINING: measure.training, HELD_OUT: measure.held_out}
    assignments = {name: Assignment(totals[name], count) for name, count in shards.items()}
    begun, number, crc = {}, 0, 0
    for file, path in enumerate(paths):
        for document in raw_documents(path, 0, reading):
            crc = checksum_of([(number, document.text)], crc)
            name = _set_of(number, measure.threshold, seed)
            index = assignments[name].shard_of(len(document.text))
            if name in begun and begun[name].index != index and begun[name].documents:
                yield begun.pop(name)  # Its text is freed before the next shard's is read.
            if name not in begun or begun[name].index != index:
                begun[name] = Shard(name, index, file, document.offset, [])
            if (name, index) in wanted:
                begun[name].documents.append((number, document.text))
            number += 1
    if f"{crc:08x}" != measure.crc32c:
        raise CorpusChanged(f"{', '.join(paths)}: changed while being read; start again")
    yield from (shard for shard in begun.values() if shard.documents)


def documents_of(span, paths, threshold, seed, reading=PLAIN):
    """Reads the documents of a `Span` from a corpus, a list as in `Shard`.

    `threshold` is that of the `Measure`; the other arguments and errors are those of `shards_of`.
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


def _set_of(number, threshold, seed):
    return HELD_OUT if threshold and draw_of(seed, number) < threshold else TRAINING
