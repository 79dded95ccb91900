"""jieba's hidden Markov model of words that its dictionary lacks, for many runs at a time."""

import numpy as np

FIRST, LAST = 0x4E00, 0x9FD5  # the ideographs of the model
# The states of a character: it begins a word, ends one, is in the middle of one, or is one.
_STATES = "BEMS"
_B, _E, _M, _S = range(4)
# The two states from which each state is reached. Of two as probable, jieba takes the second.
_FROM = np.array([[_E, _B, _B, _E], [_S, _M, _M, _S]])
# A longer run is taken alone, in Python: a step in NumPy takes ten times as long as one there.
_LONGEST_TOGETHER = 512


class NameModel:
    """Finds the most probable states of characters, as `jieba.finalseg` (0.42) does.

    The same sums of float64 in the same order, so equal states; the time is linear in the length of
    a run (jieba copies the path so far at each character).
    """

    def __init__(self):
        from jieba import finalseg

        self._emissions = np.full((4, LAST + 1 - FIRST), finalseg.MIN_FLOAT)
        for state, row in zip(_STATES, self._emissions, strict=True):
            for char, value in finalseg.emit_P[state].items():
                if FIRST <= ord(char) <= LAST:
                    row[ord(char) - FIRST] = value
        self._starts = np.array([finalseg.start_P[state] for state in _STATES])
        steps = [[finalseg.trans_P[a].get(b, 0.0) for b in _STATES] for a in _STATES]
        self._steps = np.array(steps)[_FROM, range(4)]

    def word_starts(self, ideographs, lengths):
        """Returns whether each character begins a word, bool [N].

        Args:
          ideographs: int64 [N], code points less `FIRST`, those of one run after another.
          lengths: int64 [R], of the runs, each at least 1.
        """
        starts = np.empty(len(ideographs), bool)
        firsts = np.cumsum(lengths) - lengths
        is_long = lengths > _LONGEST_TOGETHER
        for first, length in zip(firsts[is_long].tolist(), lengths[is_long].tolist(), strict=True):
            run = slice(first, first + length)
            starts[run] = self._starts_of_run(ideographs[run])
        order = np.argsort(-lengths, kind="stable")[np.count_nonzero(is_long) :]
        if len(order):
            self._starts_together(ideographs, firsts[order], lengths[order], starts)
        starts[firsts] = True
        return starts

    def _starts_together(self, ideographs, firsts, lengths, starts):
        """A step for each character of the longest run; `lengths` must fall."""
        # The runs that have a character at each step: the first so many.
        active = np.searchsorted(-lengths, -np.arange(lengths[0])).tolist()
        values = self._starts[:, None] + self._emissions[:, ideographs[firsts]]
        states, seconds = np.empty(len(firsts), np.int64), []
        for step, count in enumerate([*active[1:], 0], start=1):
            states[count : values.shape[1]] = np.where(values[_S] >= values[_E], _S, _E)[count:]
            if count:
                emissions = self._emissions[:, ideographs[firsts[:count] + step]]
                one, two = (
                    values[before, :count] + steps[:, None] + emissions
                    for before, steps in zip(_FROM, self._steps, strict=True)
                )
                seconds.append(two >= one)
                values = np.maximum(one, two)
        numbers = np.arange(len(firsts))
        for step in range(lengths[0] - 1, -1, -1):
            here = states[: active[step]]
            starts[firsts[: len(here)] + step] = (here == _B) | (here == _S)
            if step:
                is_second = seconds[step - 1][here, numbers[: len(here)]]
                here[:] = _FROM[is_second.view(np.int8), here]

    def _starts_of_run(self, ideographs):
        """The same for one run, with the states unrolled; returns a list of bool."""
        (eb, be, bm, es), (sb, me, mm, ss) = self._steps.tolist()
        characters = self._emissions[:, ideographs].T.tolist()
        b, e, m, s = map(sum, zip(self._starts.tolist(), characters[0], strict=True))
        before = []
        for of_b, of_e, of_m, of_s in characters[1:]:
            from_e, from_s = e + eb + of_b, s + sb + of_b
            new_b, before_b = (from_s, _S) if from_s >= from_e else (from_e, _E)
            from_b, from_m = b + be + of_e, m + me + of_e
            new_e, before_e = (from_m, _M) if from_m >= from_b else (from_b, _B)
            from_b, from_m = b + bm + of_m, m + mm + of_m
            new_m, before_m = (from_m, _M) if from_m >= from_b else (from_b, _B)
            from_e, from_s = e + es + of_s, s + ss + of_s
            s, before_s = (from_s, _S) if from_s >= from_e else (from_e, _E)
            b, e, m = new_b, new_e, new_m
            before.append((before_b, before_e, before_m, before_s))
        state = _S if s >= e else _E
        states = [state]
        for row in reversed(before):
            state = row[state]
            states.append(state)
        return [state in (_B, _S) for state in reversed(states)]
