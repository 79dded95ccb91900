"""Reads the pairs of source and target of files."""

from nezha_tf.data.rows import read_rows, renamed
from nezha_tf.util.errors import UserError

COLUMNS = ("src", "tgt")


def read_pairs(paths, columns=COLUMNS, optional=(), bad_rows=None):
    """Returns the pairs of files: list of `data.rows.Row` with the values "src" and "tgt".

    Args:
      paths: files as for `read_rows`. The columns of a `.tsv` or `.txt` file are `src` and `tgt`,
        in this order, unless its first line names them; if `columns` has other names, it must.
      columns: the names of the columns of sources and of targets in the files.
      optional: ("tgt",) if targets may be missing.
      bad_rows: as for `read_rows`.

    Raises:
      UserError: both columns have one name, or as `read_rows`.
    """
    names = dict(zip(columns, COLUMNS, strict=True))
    if len(names) < len(COLUMNS):
        raise UserError(
            f"--source_column and --target_column are both {columns[0]}; name another one"
        )
    optional = tuple(name for name, role in names.items() if role in optional)
    file_columns = COLUMNS if set(columns) == set(COLUMNS) else ()

    def rows_of(path):
        return read_rows(path, tuple(names), optional, file_columns, bad_rows=bad_rows)

    return [row for path in paths for row in renamed(rows_of(path), names)]
