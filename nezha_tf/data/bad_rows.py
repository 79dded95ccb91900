"""Bad rows of a data file: the first is an error, or all are counted; and blank lines."""

from nezha_tf.util.errors import UserError


class RowFault(Exception):
    """An error in a row; its text is one line that says what is wrong, without the place.

    Attributes:
      part: the part of the row that is faulty, where that is known; or None.
    """

    def __init__(self, text, part=None):
        super().__init__(text)
        self.part = part


class BadRows:
    """Collects the faults of rows, and counts blank lines, which are no fault.

    Attributes:
      count: number of skipped rows.
      first: the first fault, or None.
      num_blank: number of blank lines.
      first_blank: file and number of the first one, or None.
    """

    def __init__(self, skip=False):
        """Args:
        skip: whether bad rows are skipped; if False, the first one is an error.
        """
        self.count = 0
        self._skip = skip
        self.first = None
        self.num_blank, self.first_blank = 0, None

    def add(self, fault):
        """Adds a fault: one line of text with file and line number.

        Raises:
          UserError: bad rows are not skipped.
        """
        if not self._skip:
            raise UserError(fault)
        self.first = self.first or fault
        self.count += 1

    def pass_blank(self, place):
        """Counts a blank line, which is passed over; `place` names file and line."""
        self.num_blank += 1
        self.first_blank = self.first_blank or place

    def note(self):
        """Returns clauses on what was skipped or passed over for the end of a message, or ""."""
        return "".join(
            f"; {what}: {count:,} (the first: {first})"
            for what, count, first in (
                ("bad rows skipped", self.count, self.first),
                ("blank lines passed over", self.num_blank, self.first_blank),
            )
            if count
        )
