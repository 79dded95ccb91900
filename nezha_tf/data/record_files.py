"""The known damage of a set of TFRecord files, and the limit on it."""

from nezha_tf.data import damage
from nezha_tf.util.errors import UserError

WHOLE_FILE = [damage.Stretch(offset=0, records=-1)]
NAMED_AT_ONCE = 5


class RecordFiles:
    """A set of files and the surveys of some of them.

    A file without a survey is assumed to be undamaged until reading it fails.
    """

    def __init__(self, paths, max_corrupt_records):
        """Args:
        paths: TFRecord files.
        max_corrupt_records: most damaged records to skip, in all files together.
        """
        self.max_corrupt_records = max_corrupt_records
        self._paths = paths
        self._surveys = {}

    @property
    def corrupt_records(self):
        """The number of damaged records that have been found."""
        return len(self._damage(self._surveys))

    def stretches(self, paths):
        """Returns a list of (path, list of the `Stretch`es that can be read)."""
        surveyed = {path: survey.stretches for path, survey in self._surveys.items()}
        return [(path, surveyed.get(path, WHOLE_FILE)) for path in paths]

    def count(self, paths):
        """Returns the number of undamaged records in files that have been surveyed."""
        return sum(self._surveys[path].records for path in paths)

    def number_of(self, path, index):
        """Returns a record's number in its file, from 1, given its index among undamaged ones."""
        number = index + 1
        for place in self._surveys[path].damage if path in self._surveys else ():
            number += place.record <= number
        return number

    def survey_new(self, paths):
        """Surveys the files that have no survey yet; see `survey`."""
        new = [path for path in paths if path not in self._surveys]
        return self.survey(new) if new else ""

    def survey(self, paths):
        """Reads files completely and stores their surveys.

        Returns:
          One line on damage that was not known before, or "".

        Raises:
          UserError: there are more damaged records than `max_corrupt_records`, a file has no
            undamaged record, or a file cannot be read.
        """
        surveys = {**self._surveys, **damage.survey(paths)}
        for path in paths:
            if not surveys[path].records:
                raise UserError(
                    f"{path} is not a TFRecord file, or has no undamaged record; leave it out, or "
                    "make it again"
                )
        found = self._damage(surveys)
        if len(found) > self.max_corrupt_records:
            raise UserError(
                f"{found[0].place}: truncated, damaged or not a TFRecord (corrupt records found: "
                f"{len(found)}); make the file again, or skip these records with "
                f"--skip_corrupt_records={len(found)}"
            )
        known = set(self._damage(self._surveys))
        self._surveys = surveys
        return _line([place for place in found if place not in known])

    def _damage(self, surveys):
        """Returns the damage in the files' order."""
        return [place for path in self._paths if path in surveys for place in surveys[path].damage]


def _line(damage):
    if not damage:
        return ""
    places = "; ".join(map(str, damage[:NAMED_AT_ONCE]))
    more = len(damage) - NAMED_AT_ONCE
    return f"corrupt records skipped: {places}" + (f"; {more} more" if more > 0 else "")
