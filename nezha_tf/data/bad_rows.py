"""Rows of a data file that are no good: an error, or counted and passed over."""

from nezha_tf.errors import UserError


class BadRows:
    """Takes the faults of rows.

    Attributes:
      count: rows that were passed over.
      first: the first fault, or None.
    """

    def __init__(self, skip=False):
        """Args:
        skip: whether bad rows are passed over; else the first of them is an error.
        """
        self.count = 0
        self._skip = skip
        self.first = None

    def add(self, fault):
        """Takes a fault, one line with file and line number.

        Raises:
          UserError: bad rows are not passed over.
        """
        if not self._skip:
            raise UserError(fault)
        self.first = self.first or fault
        self.count += 1

    def note(self):
        """Returns a few words on what was passed over, or ""."""
        return f"; bad rows passed over: {self.count:,} ({self.first})" if self.count else ""
