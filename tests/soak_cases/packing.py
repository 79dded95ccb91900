"""Checks that rows are made of the text: nothing added or lost, and cut at the right places."""

import collections
import itertools

import numpy as np

from soak_cases import corpora


def check_rows(case, name, files, settings, tokens):
    """Holds the rows of a set to the corpus.

    Args:
      case: the `Case`.
      name: of the set.
      files: for each file a list of `Row`.
      settings: the flags.
      tokens: `corpora.Tokens` of the whole corpus.
    """
    check = {"nsp": _check_next, "sop": _check_order, "none": _check_full}[settings["pair"]]
    for number, of_file in enumerate(files):
        for place, row in enumerate(of_file, start=1):
            told = f"{name}, file {number}, record {place}: {row.ids}, label {row.label}"
            check(case, row, settings, tokens, told)


def _check_next(case, row, settings, tokens, told):
    if row.label:
        stands = [_stands(tokens, segment, row.is_full) for segment in row.segments]
        case.law("random next sentences are of the text", all(stands), told)
        return
    first, second = row.segments
    if row.is_full:  # perhaps cut, so some may be missing in between
        holds = tokens.are_in_order(first, second)
    else:
        holds = any(
            {place, place + len(first), place + len(first + second)} <= tokens.bounds
            for place in tokens.places(first + second)
        )
    case.law("next sentences follow", holds, told)


def _check_order(case, row, settings, tokens, told):
    first, second = reversed(row.segments) if row.label else row.segments
    if row.is_full:
        holds = tokens.are_in_order(first, second)
    else:  # a single sentence is split anywhere
        holds = _stands(tokens, first + second, False)
    case.law("segments are in the order that the label tells", holds, told)


def _stands(tokens, text, may_be_cut):
    """Whether a sequence is somewhere in the text, as whole sentences if it is not cut."""
    if may_be_cut:
        return text in tokens.text
    return any({p, p + len(text)} <= tokens.bounds for p in tokens.places(text))


def _check_full(case, row, settings, tokens, told):
    case.law("full sentences have the label 0", row.label == 0, told)
    stretches = list(enumerate(row.segments))
    for number, text in stretches:
        is_first, is_last = number == 0, number == len(stretches) - 1
        holds = any(
            _fits(tokens, place, place + len(text), is_first, is_last, row, settings)
            for place in tokens.places(text)
        )
        case.law("full sentences are of the text, cut where they must be", holds, told)


def _fits(tokens, start, end, is_first, is_last, row, settings):
    """Whether a sequence of a row may come from these places of the text."""
    length = settings["max_seq_length"]
    if not is_first and start not in tokens.first:
        return False
    if not is_last and end not in tokens.last:
        return False
    if is_first and start not in tokens.bounds and not _is_in_long(tokens, start, length):
        return False
    if end in tokens.last:
        return True
    if end in tokens.bounds:  # the next sentence would not have fitted
        return len(row.ids) + tokens.next_length[end] > length
    return is_first and row.is_full and _is_in_long(tokens, end, length)


def _is_in_long(tokens, place, length):
    """Whether a place is inside a sentence that is longer than an example."""
    before = max(bound for bound in tokens.bounds if bound < place)
    return tokens.next_length.get(before, 0) > length - 2


def check_whole(case, sets, settings, tokens):
    """Without pairs, each token of the text occurs as often as there are passes over documents."""
    if settings["pair"] != "none":
        return
    total = collections.Counter()
    covered = np.zeros(len(tokens.text))
    is_certain = True
    for name, files in sets.items():
        # Held-out documents have one pass, the others --dupe_factor passes.
        weight = settings["dupe_factor"] if name == settings.get("eval_output_file") else 1
        for text in (text for of_file in files for row in of_file for text in row.segments):
            for token in text:
                total[token] += weight
            places = list(itertools.islice(tokens.places(text), 2))
            is_certain &= len(places) == 1
            if len(places) == 1:
                covered[places[0] : places[0] + len(text)] += weight
    wanted = collections.Counter(tokens.text.replace(corpora.BORDER, ""))
    wanted = {token: count * settings["dupe_factor"] for token, count in wanted.items()}
    case.law(
        "each token is there --dupe_factor times", total == wanted, _first_difference(total, wanted)
    )
    is_text = np.array([token != corpora.BORDER for token in tokens.text])
    most = covered[is_text].max(initial=0) <= settings["dupe_factor"]
    case.law("no sentence is there too often", most, covered)
    if is_certain:
        every = (covered[is_text] == settings["dupe_factor"]).all()
        case.law("each sentence is there --dupe_factor times", every, covered)


def _first_difference(found, wanted):
    for token in found.keys() | wanted.keys():
        if found.get(token, 0) != wanted.get(token, 0):
            return f"{found.get(token, 0)} of token {ord(token) - 1}, not {wanted.get(token, 0)}"
    return ""
