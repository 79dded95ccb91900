"""Bad rows of a data file: the first is an error, or all are counted and skipped."""

from nezha_tf.errors import UserError


class RowFault(Exception):
    """An error in a row; its text is one line that says what is wrong, without the place.

    Attributes:
      part: the part of the row that is faulty, where that is known; or None.
    """

    def __init__(self, text, part=None):
        super().__init__(text)
        self.part = part


class BadRows:
    """Collects the faults of rows.

    Attributes:
      count: number of skipped rows.
      first: the first fault, or None.
    """

    def __init__(self, skip=False):
        """Args:
        skip: whether bad rows are skipped; if False, the first one is an error.
        """
        self.count = 0
        self._skip = skip
        self.first = None

    def add(self, fault):
        """Adds a fault: one line of text with file and line number.

        Raises:
          UserError: bad rows are not skipped.
        """
        if not self._skip:
            raise UserError(fault)
        self.first = self.first or fault
        self.count += 1

    def note(self):
        """Returns a clause on the skipped rows for the end of a message, or ""."""
        return f"; bad rows skipped: {self.count:,} (the first: {self.first})" if self.count else ""
