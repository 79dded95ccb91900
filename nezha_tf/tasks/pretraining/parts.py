"""The parts of the examples with weights: `--input_file='news*.tfrecord:3,books*.tfrecord:1'`."""

import re
from fractions import Fraction
from typing import NamedTuple

from nezha_tf.corpus.shard_files import example_files
from nezha_tf.data.shares import Shares
from nezha_tf.util import console, parts
from nezha_tf.util.errors import UserError


class FilePart(NamedTuple):
    """The files of a pattern, and the weight behind it.

    Attributes:
      pattern: the name or glob.
      name: what is left of it for the names of results.
      weight: a `Fraction` above 0.
      files: a list of paths.
    """

    pattern: str
    name: str
    weight: Fraction
    files: list[str]


def weighted_parts(value, flag, taken=()):
    """Returns the list of `FilePart` of a flag; [] if there are no weights.

    A pattern without a weight among others with weights has the weight 1, as with --objectives.

    Args:
      value, flag: the flag's value and name.
      taken: names that no part may have.

    Raises:
      UserError: a weight is 0, stands behind the only pattern, or a file belongs to two parts; or
        as of `example_files`.
    """
    given, source = parts.parts_of(value), f"--{flag}={value}"
    if all(part.weight is None for part in given):
        return []
    if len(given) == 1:
        raise UserError(
            f"{source}: the weight of a single pattern does nothing; leave it out, or give the "
            "patterns of several parts, separated by commas"
        )
    found, owners = [], {}
    names = _names([part.pattern for part in given], taken)
    for (pattern, weight), name in zip(given, names, strict=True):
        if weight == 0:
            raise UserError(f"{source}: a weight must be above 0; leave {pattern} out")
        files = example_files(pattern, flag)
        for path in files:
            if path in owners:
                raise UserError(
                    f"{source}: {path} belongs to two parts, {owners[path]} and {pattern}; narrow "
                    "one of the patterns"
                )
            owners[path] = pattern
        found.append(FilePart(pattern, name, Fraction(1) if weight is None else weight, files))
    return found


def shares_of(found):
    """Returns the `Shares` of a list of `FilePart`."""
    return Shares([part.weight for part in found])


def notes_on_training(found, counts, num_examples):
    """Returns a line on each part that is trained on.

    Args:
      found: list of `FilePart`.
      counts: dict of file to number of records, of those whose number is known.
      num_examples: the number of examples of the whole run, or None, if the clock ends it.
    """
    shares = shares_of(found)
    given = [None] * len(found) if num_examples is None else shares.given(num_examples)
    return [
        _note(part, share, examples, counts)
        for part, share, examples in zip(found, shares.shares, given, strict=True)
    ]


def _note(part, share, examples, counts):
    name, files = part.pattern, console.plural(len(part.files), "file")
    if counts.keys() >= set(part.files):
        records = sum(counts[path] for path in part.files)
        if examples is None:
            return f"part {name} of --input_file: {share:.1%}; {files} with {records:,} records"
        return (
            f"part {name} of --input_file: {share:.1%} of the examples; {files} with {records:,} "
            f"records, each read {examples / records:.2f} times in this run"
        )
    if examples is None:
        return f"part {name} of --input_file: {share:.1%}; {files}, whose records are not counted"
    return (
        f"part {name} of --input_file: {share:.1%} of the examples, {examples:,} in this run; "
        f"{files}, whose records are not counted"
    )


def notes_on_evaluation(found):
    """Returns a line on each part that is evaluated; the arguments are as above."""
    return [
        f"part {part.pattern} of --eval_file: {share:.1%} of the mean results; "
        f"{console.plural(len(part.files), 'file')}, whose own results are NAME/{part.name}"
        for part, share in zip(found, shares_of(found).shares, strict=True)
    ]


def _names(patterns, taken):
    """Returns a name for each pattern: of its files, of what its path has alone, or the pattern."""
    words = [list(filter(None, map(_word, pattern.split("/")))) for pattern in patterns]
    if all(words):
        for names in ([each[-1] for each in words], map("/".join, _differing(words))):
            names = list(names)
            if len({*names, *taken}) == len(names) + len(taken):
                return names
    return patterns


def _word(text):
    """Returns a part of a path without an ending and wildcards."""
    text = re.sub(r"\.tfrecord.*", "", text)
    return re.sub(r"[*?\[\]]+", "", text).strip("-_.")


def _differing(words):
    """Returns lists without the words that all end or begin with; one word of each is left."""
    for place, others in ((-1, slice(-1)), (0, slice(1, None))):
        while min(map(len, words)) > 1 and len({each[place] for each in words}) == 1:
            words = [each[others] for each in words]
    return words
