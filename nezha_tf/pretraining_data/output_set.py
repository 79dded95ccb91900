"""One set of files while it is made: training, or held out."""

import collections

from nezha_tf.pretraining_data.statistics import Statistics


class OutputSet:
    """The shards of a set, and the sum of what is in those that are finished.

    Attributes:
      name: `TRAINING` or `HELD_OUT`.
      output_file: the name that the files are called by.
      documents: the `Documents` that go into it.
      repetitions: how often each of them is gone through.
      paths: its files, a shard each.
      finished: dict of file to what the manifest says of it: `documents`, `records`, `bytes` and
        `crc32c`.
      statistics: the `Statistics` of the finished shards.
      anomalies: their anomalies, a Counter of `lines.KINDS`.
    """

    def __init__(self, name, output_file, documents, repetitions, paths):
        """Args: as the attributes."""
        self.name = name
        self.output_file = output_file
        self.documents = documents
        self.repetitions = repetitions
        self.paths = paths
        self.finished = {}
        self.statistics = Statistics()
        self.anomalies = collections.Counter()

    def add(self, path, record):
        """Counts a finished shard.

        Args:
          path: its file.
          record: dict as of `make_shard`; it is not kept.
        """
        kept = ("documents", "records", "bytes", "crc32c")
        self.finished[path] = {key: record[key] for key in kept}
        self.statistics.add(Statistics.from_dict(record["statistics"]))
        self.anomalies.update(record["anomalies"])

    def wanted(self):
        """Returns (set, index) of the shards that are to be made, a set."""
        return {
            (self.name, index) for index, path in enumerate(self.paths) if path not in self.finished
        }
