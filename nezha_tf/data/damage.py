"""Damaged records of TFRecord files: where they are, what can still be read, how many may be.

After a damaged record, reading continues at the next frame. After a damaged length, or where the
file is truncated, the start of the next frame is unknown, so the rest of the file is lost.
"""

from typing import NamedTuple

from nezha_tf.data.framing import WRONG_CHECKSUM, read_frames
from nezha_tf.util import console
from nezha_tf.util.errors import UserError

NAMED_AT_ONCE = 5


class Damage(NamedTuple):
    """A damaged record, numbered from 1; `lost_bytes` if the rest of the file is lost too."""

    path: str
    record: int
    lost_bytes: int = 0

    @property
    def place(self):
        """File and record number, for messages."""
        return f"{self.path}, record {self.record}"

    def __str__(self):
        rest = f" and the rest ({self.lost_bytes:,} bytes)" if self.lost_bytes else ""
        return self.place + rest


class Survey(NamedTuple):
    """What a file holds, two lists in its order.

    Attributes:
      stretches: runs of undamaged records: (byte of the first, how many).
      damage: the `Damage`s.
    """

    stretches: list
    damage: list

    @property
    def records(self):
        """The number of undamaged records."""
        return sum(count for _, count in self.stretches)


# A file without a survey is assumed to be undamaged until reading it fails; -1 means all records.
WHOLE_FILE = [(0, -1)]


def survey(path):
    """Reads a file completely and returns its `Survey`; `UserError`: it cannot be read."""
    stretches, damage, offset, begin, count = [], [], 0, 0, 0
    for number, frame, fault in read_frames(path):
        offset += len(frame)
        if not fault:
            count += 1
            continue
        damage.append(Damage(path, number, 0 if fault == WRONG_CHECKSUM else len(frame)))
        stretches += [(begin, count)] * (count > 0)
        begin, count = offset, 0
    return Survey(stretches + [(begin, count)] * (count > 0), damage)


class RecordFiles:
    """A set of files, the surveys of some of them, and the limit on their damage."""

    def __init__(self, paths, max_corrupt_records):
        """`max_corrupt_records`: most damaged records to skip, in all files together."""
        self.max_corrupt_records = max_corrupt_records
        self._paths = paths
        self._surveys = {}

    @property
    def corrupt_records(self):
        """The number of damaged records that have been found."""
        return len(self._damage(self._surveys))

    def stretches(self, paths):
        """Returns a list of (path, the stretches that can be read)."""
        surveyed = {path: survey.stretches for path, survey in self._surveys.items()}
        return [(path, surveyed.get(path, WHOLE_FILE)) for path in paths]

    def number_of(self, path, index):
        """Returns a record's number in its file, from 1, given its index among undamaged ones."""
        number = index + 1
        for place in self._surveys[path].damage if path in self._surveys else ():
            number += place.record <= number
        return number

    def count(self, paths):
        """Returns (number of undamaged records, `survey` of the files that had none yet)."""
        new = [path for path in paths if path not in self._surveys]
        message = self.survey(new) if new else ""
        return sum(self._surveys[path].records for path in paths), message

    def survey(self, paths):
        """Reads files completely; returns one line on damage that was not known before, or "".

        Raises:
          UserError: there are more damaged records than `max_corrupt_records`, a file has no
            undamaged record, or a file cannot be read.
        """
        surveys = dict(self._surveys)
        for path in console.progress(paths, desc="reading through", unit="file"):
            surveys[path] = survey(path)
            if not surveys[path].records:
                raise UserError(
                    f"{path} is not a TFRecord file, or has no undamaged record; leave it out, or "
                    "make it again"
                )
        damage = self._damage(surveys)
        if len(damage) > self.max_corrupt_records:
            raise UserError(
                f"{damage[0].place}: truncated, damaged or not a TFRecord (corrupt records found: "
                f"{len(damage)}); make the file again, or skip these records with "
                f"--skip_corrupt_records={len(damage)}"
            )
        known = self._damage(self._surveys)
        self._surveys = surveys
        return _message([place for place in damage if place not in known])

    def _damage(self, surveys):
        """Returns the damage in the files' order."""
        return [place for path in self._paths if path in surveys for place in surveys[path].damage]


def _message(damage):
    if not damage:
        return ""
    places = "; ".join(map(str, damage[:NAMED_AT_ONCE]))
    more = len(damage) - NAMED_AT_ONCE
    return f"corrupt records skipped: {places}" + (f"; {more} more" if more > 0 else "")
