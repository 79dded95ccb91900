"""Checks that rows are made of the text: nothing added or lost, and cut at the right places."""

import collections
import itertools

import numpy as np

from soak_cases import corpora


def check_rows(case, name, files, settings, pieces):
    """Holds the rows of a set to the corpus.

    Args:
      case: the `Case`.
      name: of the set.
      files: for each file a list of `Row`.
      settings: the flags.
      pieces: `corpora.Pieces` of the whole corpus.
    """
    check = {"nsp": _check_next, "sop": _check_order, "none": _check_full}[settings["pair"]]
    for number, of_file in enumerate(files):
        for place, row in enumerate(of_file, start=1):
            told = f"{name}, file {number}, record {place}: {row.ids}, label {row.label}"
            check(case, row, settings, pieces, told)


def _check_next(case, row, settings, pieces, told):
    if row.label:
        stands = [_stands(pieces, segment, row.is_full) for segment in row.segments]
        case.law("random next sentences are of the text", all(stands), told)
        return
    first, second = row.segments
    if row.is_full:  # perhaps cut, so some may be missing in between
        holds = pieces.are_in_order(first, second)
    else:
        holds = any(
            {place, place + len(first), place + len(first + second)} <= pieces.bounds
            for place in pieces.places(first + second)
        )
    case.law("next sentences follow", holds, told)


def _check_order(case, row, settings, pieces, told):
    first, second = reversed(row.segments) if row.label else row.segments
    if row.is_full:
        holds = pieces.are_in_order(first, second)
    else:  # a single sentence is split anywhere
        holds = _stands(pieces, first + second, False)
    case.law("segments are in the order that the label tells", holds, told)


def _stands(pieces, text, may_be_cut):
    """Whether a sequence is somewhere in the text, as whole sentences if it is not cut."""
    if may_be_cut:
        return text in pieces.text
    return any({p, p + len(text)} <= pieces.bounds for p in pieces.places(text))


def _check_full(case, row, settings, pieces, told):
    case.law("full sentences have the label 0", row.label == 0, told)
    stretches = list(enumerate(row.segments))
    for number, text in stretches:
        is_first, is_last = number == 0, number == len(stretches) - 1
        holds = any(
            _fits(pieces, place, place + len(text), is_first, is_last, row, settings)
            for place in pieces.places(text)
        )
        case.law("full sentences are of the text, cut where they must be", holds, told)


def _fits(pieces, start, end, is_first, is_last, row, settings):
    """Whether a sequence of a row may come from these places of the text."""
    length = settings["max_seq_length"]
    if not is_first and start not in pieces.first:
        return False
    if not is_last and end not in pieces.last:
        return False
    if is_first and start not in pieces.bounds and not _is_in_long(pieces, start, length):
        return False
    if end in pieces.last:
        return True
    if end in pieces.bounds:  # the next sentence would not have fitted
        return len(row.ids) + pieces.next_length[end] > length
    return is_first and row.is_full and _is_in_long(pieces, end, length)


def _is_in_long(pieces, place, length):
    """Whether a place is inside a sentence that is longer than an example."""
    before = max(bound for bound in pieces.bounds if bound < place)
    return pieces.next_length.get(before, 0) > length - 2


def check_whole(case, sets, settings, pieces):
    """Without pairs, each piece of the text occurs as often as there are passes over documents."""
    if settings["pair"] != "none":
        return
    total = collections.Counter()
    covered = np.zeros(len(pieces.text))
    is_certain = True
    for name, files in sets.items():
        # Held-out documents have one pass, the others --dupe_factor passes.
        weight = settings["dupe_factor"] if name == settings.get("eval_output_file") else 1
        for text in (text for of_file in files for row in of_file for text in row.segments):
            for piece in text:
                total[piece] += weight
            places = list(itertools.islice(pieces.places(text), 2))
            is_certain &= len(places) == 1
            if len(places) == 1:
                covered[places[0] : places[0] + len(text)] += weight
    wanted = collections.Counter(pieces.text.replace(corpora.BORDER, ""))
    wanted = {piece: count * settings["dupe_factor"] for piece, count in wanted.items()}
    case.law(
        "each piece is there --dupe_factor times", total == wanted, _first_difference(total, wanted)
    )
    is_text = np.array([piece != corpora.BORDER for piece in pieces.text])
    most = covered[is_text].max(initial=0) <= settings["dupe_factor"]
    case.law("no sentence is there too often", most, covered)
    if is_certain:
        every = (covered[is_text] == settings["dupe_factor"]).all()
        case.law("each sentence is there --dupe_factor times", every, covered)


def _first_difference(found, wanted):
    for piece in found.keys() | wanted.keys():
        if found.get(piece, 0) != wanted.get(piece, 0):
            return f"{found.get(piece, 0)} of piece {ord(piece) - 1}, not {wanted.get(piece, 0)}"
    return ""
