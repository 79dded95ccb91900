"""Regular Chinese poems as texts to pretrain on, and whether written poems fit their form.

  python examples/poetry.py corpus train.jsonl.gz corpus.txt
  python examples/poetry.py prompts dev.jsonl prompts.jsonl
  python examples/poetry.py fit written.jsonl

A line of the first two inputs is a poem, {"form": ..., "title": ..., "text": ...}. The corpus has a
poem a line, as 五言绝句《静夜思》床前明月光，疑是地上霜。举头望明月，低头思故乡。 A prompt is its
beginning, up to 》. `fit` reads what tools/generate_text.py wrote for the prompts.
"""

import json
import re
import sys

try:
    from nezha_tf.data.rows import read_rows
    from nezha_tf.util import console, files
    from nezha_tf.util.errors import UserError
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

# The regular forms: (number of lines, characters of a line).
FORMS = {"五言绝句": (4, 5), "七言绝句": (4, 7), "五言律诗": (8, 5), "七言律诗": (8, 7)}
_LINE = re.compile(r"([\u3400-\u9fff]+)[，。！？；、]")


def corpus(poems, output_file):
    """Writes a corpus in which each poem is a document of one line."""
    rows = rows_of(poems, ("form", "title", "text"), "form")
    files.write_text(output_file, "".join(f"{prompt_of(row)}{row['text']}\n\n" for row in rows))


def prompts(poems, output_file):
    """Writes the prompts of poems, with the poems as targets."""
    rows = rows_of(poems, ("form", "title", "text"), "form")
    lines = ({"src": prompt_of(row), "tgt": row["text"]} for row in rows)
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    files.write_text(output_file, text)


def fit(written):
    """Prints how many of the written poems fit their form, and the first one of each form."""
    rows = list(rows_of(written, ("src", "prediction"), "src"))
    fits = [(row["src"][:4], does_fit(row["prediction"], row["src"][:4])) for row in rows]
    for name in (*FORMS, "all"):
        found = [is_fit for form, is_fit in fits if name in (form, "all")]
        print(
            f"{name}: {sum(found):,} of {len(found):,} fit, {sum(found) / max(len(found), 1):.1%}"
        )
    for form in FORMS:
        for row in [row for row in rows if row["src"].startswith(form)][:1]:
            print(*row.values(), sep="")


def rows_of(path, columns, column):
    """Yields the columns of a file's rows as dicts; one of them begins with a regular form.

    Raises:
      UserError: the file cannot be read, or a row has another form.
    """
    for row in read_rows(path, columns):
        if not row.values[column].startswith(tuple(FORMS)):
            raise UserError(
                f"{row.place}: {column} {row.values[column]!r} does not begin with one of "
                f"{', '.join(FORMS)}; remove the row, or add its form to FORMS in poetry.py"
            )
        yield row.values


def prompt_of(row):
    """Returns the beginning of a poem's text: its form and title."""
    return f"{row['form']}《{row['title']}》"


def does_fit(text, form):
    """Returns whether a text has the lines of a form, each followed by a mark, and nothing else."""
    number, length = FORMS[form]
    lines = _LINE.findall(text)
    is_all = "".join(_LINE.split(text)[::2]) == ""
    return is_all and [len(line) for line in lines] == [length] * number


if __name__ == "__main__":
    console.show_anything()
    JOBS = {"corpus": (corpus, 2), "prompts": (prompts, 2), "fit": (fit, 1)}
    job, count = JOBS.get(sys.argv[1] if len(sys.argv) > 1 else "", (None, 0))
    if not job or len(sys.argv) != 2 + count:
        sys.exit(
            "usage: python examples/poetry.py corpus|prompts POEMS OUTPUT\n"
            "       python examples/poetry.py fit WRITTEN"
        )
    try:
        job(*sys.argv[2:])
    except (UserError, OSError) as error:
        sys.exit(f"poetry.py: error: {error}")
