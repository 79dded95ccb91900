"""A set of files while it is made: the training set or the held-out set."""

import collections

from nezha_tf.corpus.statistics import Statistics


class OutputSet:
    """The shards of a set, and the counts of its finished shards.

    Attributes:
      name: `TRAINING` or `HELD_OUT`.
      output_file: the set's file name, before the numbers of shards are added.
      documents: the `Documents` of the set.
      repetitions: number of passes over each document.
      paths: the files of its shards.
      finished: dict of file to the shard's part of the manifest: `documents`, `records`, `bytes`
        and `crc32c`.
      statistics: the sum of the `Statistics` of finished shards.
      anomalies: the sum of their anomalies, a Counter of `lines.KINDS`.
    """

    def __init__(self, name, output_file, documents, repetitions, paths):
        """See the attributes."""
        self.name = name
        self.output_file = output_file
        self.documents = documents
        self.repetitions = repetitions
        self.paths = paths
        self.finished = {}
        self.statistics = Statistics()
        self.anomalies = collections.Counter()

    def add(self, path, record):
        """Adds a finished shard.

        Args:
          path: its file.
          record: its summary, a dict; see `make_shard`.
        """
        kept = ("documents", "records", "bytes", "crc32c")
        self.finished[path] = {key: record[key] for key in kept}
        self.statistics.add(Statistics.from_dict(record["statistics"]))
        self.anomalies.update(record["anomalies"])

    def wanted(self):
        """Returns a set of (set name, index) of the shards to make."""
        return {
            (self.name, index) for index, path in enumerate(self.paths) if path not in self.finished
        }
