"""The packed examples of all tasks on labelled texts."""

from typing import NamedTuple


class Examples(NamedTuple):
    """The packed examples of a part.

    Attributes:
      rows: what each was made of, a list.
      arrays: the arrays for `ArrayReader`; `label_ids` only if all examples are labelled.
      labels: for each its encoded label, or None.
    """

    rows: list
    arrays: dict
    labels: list
