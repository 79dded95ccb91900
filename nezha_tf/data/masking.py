"""Which pieces of a sequence are predicted, and what stands in their place."""

POLICIES = ("whole_word", "token", "ngram")


class Masking:
    """Chooses the pieces to predict and replaces them: 80 % [MASK], 10 % random, 10 % kept.

    The units of the choice are single pieces (`token`, BERT arXiv 1810.04805 §3.1), words
    (`whole_word`, NEZHA arXiv 1909.00204 §3.2) or, of ten anchors, eight words and two runs of
    two or three words (`ngram`, UniLM arXiv 1905.03197 §2.3, with words for its tokens).
    Units are shuffled; one that would overrun the budget is passed over. The order of the
    random draws is that of `create_masked_lm_predictions` of google-research/bert, so that
    `token` gives the same instances as the original from the same generator.
    """

    def __init__(self, vocabulary, policy, masked_lm_prob, max_predictions_per_seq):
        """Args:
        vocabulary: a `Vocabulary`.
        policy: one of `POLICIES`.
        masked_lm_prob: share of the sequence, special pieces counted, that is predicted.
        max_predictions_per_seq: bound on the number of predictions.
        """
        self._policy = policy
        self._masked_lm_prob = masked_lm_prob
        self._max_predictions = max_predictions_per_seq
        self._mask_id = vocabulary.mask_id
        self._special_ids = {vocabulary.cls_id, vocabulary.sep_id}
        self._vocab_size = len(vocabulary)

    def __call__(self, ids, word_starts, rng):
        """Masks one sequence.

        Args:
          ids: list of int, [CLS] A [SEP] B [SEP].
          word_starts: list of bool, whether a piece begins a word.
          rng: a `random.Random`; every draw comes from it.

        Returns:
          (ids with replacements, masked_lm_positions in rising order, masked_lm_ids).
        """
        units = self._units(ids, word_starts)
        order = list(range(len(units)))
        rng.shuffle(order)
        budget = max(1, round(len(ids) * self._masked_lm_prob))
        budget = min(self._max_predictions, budget)
        output = list(ids)
        chosen = set()
        for index in order:
            if len(chosen) >= budget:
                break
            positions = self._span(units, index, rng)
            if len(chosen) + len(positions) > budget or not chosen.isdisjoint(positions):
                continue
            for position in positions:
                chosen.add(position)
                output[position] = self._replacement(ids[position], rng)
        positions = sorted(chosen)
        return output, positions, [ids[position] for position in positions]

    def _units(self, ids, word_starts):
        """Returns the units as lists of positions; no unit holds or crosses [CLS] or [SEP]."""
        units = []
        after_special = True
        for position, piece in enumerate(ids):
            if piece in self._special_ids:
                after_special = True
                continue
            if after_special or word_starts[position] or self._policy == "token":
                units.append([])
            units[-1].append(position)
            after_special = False
        return units

    def _span(self, units, index, rng):
        """Returns the positions masked at one anchor: its unit, or a run of units from it."""
        span = units[index]
        if self._policy != "ngram" or rng.random() >= 0.2:
            return span
        size = rng.randint(2, 3)
        for following in units[index + 1 : index + size]:
            if following[0] != span[-1] + 1:  # [SEP] lies between
                break
            span = span + following
        return span

    def _replacement(self, piece, rng):
        if rng.random() < 0.8:
            return self._mask_id
        if rng.random() < 0.5:
            return piece
        return rng.randint(0, self._vocab_size - 1)
