"""What a person sees while waiting and at the end: progress bars and tables."""

import sys
import unicodedata


def progress(iterable=None, **options):
    """A progress bar with rate and time left on a terminal; silent elsewhere."""
    from tqdm import tqdm

    return tqdm(iterable, disable=not sys.stderr.isatty(), dynamic_ncols=True, **options)


def table(title, rows):
    """Returns rows of (name, value) as aligned text under a title."""
    width = max((_columns(name) for name, _ in rows), default=0)
    lines = [title, *("  " + name + " " * (width - _columns(name)) + f"  {v}" for name, v in rows)]
    return "\n".join(lines)


def _columns(text):
    """Returns the columns of a terminal that a text takes: two for a Chinese character."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
