"""Chooses among the choices: the most probable, or a different one for each blank of a passage."""

import numpy as np

from nezha_tf.modeling.finetuning import NO_CHOICE


def chosen(logits, groups=None):
    """Returns the index of the choice for each question, int [n].

    The blanks of a group get different choices: the pair of blank and choice with the highest
    score comes first, then the highest of the pairs that are left
    (`logits_matrix_to_array` of CLUE's program for ChID). Blanks for which no choice is left get
    their most probable one.

    Args:
      logits: float [n, C], `NO_CHOICE` where a question has no such choice.
      groups: for each question the number of its group, or None if it has none; None: no question
        has one.
    """
    best = np.argmax(logits, axis=-1)
    members = {}
    for index, group in enumerate(groups or ()):
        if group is not None:
            members.setdefault(group, []).append(index)
    for rows in members.values():
        if len(rows) > 1:
            best[rows] = _different(logits[rows], best[rows])
    return best


def _different(logits, best):
    """Returns different choices for the blanks of a group, int [m]."""
    found = best.copy()
    blanks, choices = set(range(len(logits))), set(range(logits.shape[1]))
    for place in np.argsort(-logits, axis=None, kind="stable"):
        blank, choice = divmod(int(place), logits.shape[1])
        if blank in blanks and choice in choices and logits[blank, choice] > NO_CHOICE:
            found[blank] = choice
            blanks.remove(blank)
            choices.remove(choice)
    return found
