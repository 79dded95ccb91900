"""What is known of a set of TFRecord files, and how much damage in them is put up with."""

from nezha_tf.data import damage
from nezha_tf.errors import UserError

WHOLE_FILE = [damage.Stretch(offset=0, records=-1)]
NAMED_AT_ONCE = 5


class RecordFiles:
    """A set of files, of which some have been surveyed.

    A file that was not is taken to be undamaged, which reading it will prove or disprove.
    """

    def __init__(self, paths, max_corrupt_records):
        """Args:
        paths: TFRecord files.
        max_corrupt_records: damaged records to pass over, in all files together.
        """
        self.max_corrupt_records = max_corrupt_records
        self._paths = paths
        self._surveys = {}

    @property
    def corrupt_records(self):
        """How many damaged records have been found."""
        return len(self._damage(self._surveys))

    def stretches(self, paths):
        """Returns a list of (path, stretches that can be read)."""
        surveyed = {path: survey.stretches for path, survey in self._surveys.items()}
        return [(path, surveyed.get(path, WHOLE_FILE)) for path in paths]

    def count(self, paths):
        """Returns how many undamaged records there are in files that have been surveyed."""
        return sum(self._surveys[path].records for path in paths)

    def number_of(self, path, index):
        """Returns the number, from 1, of an undamaged record that is counted from 0."""
        number = index + 1
        for place in self._surveys[path].damage if path in self._surveys else ():
            number += place.record <= number
        return number

    def survey_new(self, paths):
        """Surveys the files that have not been so far, as `survey` does."""
        new = [path for path in paths if path not in self._surveys]
        return self.survey(new) if new else ""

    def survey(self, paths):
        """Reads files through.

        Returns:
          One line on damage that was not known before, or "".

        Raises:
          UserError: more records are damaged than may be, a file holds no other, or a file
            cannot be read.
        """
        surveys = {**self._surveys, **damage.survey(paths)}
        for path in paths:
            if not surveys[path].records:
                raise UserError(
                    f"{path} is no TFRecord file, or has no undamaged record: leave it out, or "
                    "make it again"
                )
        found = self._damage(surveys)
        if len(found) > self.max_corrupt_records:
            raise UserError(
                f"{found[0].place}: truncated, damaged or no TFRecord (corrupt records found: "
                f"{len(found)}); make the file again, or pass over as many with "
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
    return f"corrupt records passed over: {places}" + (f"; {more} more" if more > 0 else "")
