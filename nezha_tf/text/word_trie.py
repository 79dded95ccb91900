"""A dictionary as arrays: finds the words that begin at each character of a text, all at once."""

import itertools

import numpy as np

# Characters are numbers from 1 to this; 0 is none of the dictionary's.
_BITS_OF_CHARACTER = 16
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: Fibonacci hashing


class WordTrie:
    """A trie of words, whose edges are in a perfect hash table.

    A node is the number of a beginning of a word; that of a single character is its own. An edge,
    (node, character), has one slot in the table, which the shift of its bucket tells (hash and
    displace, Belazzougui et al., ESA 2009, §2): to follow an edge is one look.

    Args:
      characters: uint16, those of all words, one word after another.
      lengths: int64 [W], of the words.
      scores: float64 [W], finite.
      most: the highest number of a character.
    """

    def __init__(self, characters, lengths, scores, most):
        nodes, keys = _number_nodes(characters, lengths, most)
        self._scores = np.full(most + 1 + len(keys), -np.inf)
        self._scores[nodes] = scores
        self._goes_on = np.zeros(len(self._scores), bool)
        self._goes_on[keys >> _BITS_OF_CHARACTER] = True
        self.single_scores = self._scores[: most + 1].copy()  # [most + 1], -inf: no word
        self._make_table(keys, most + 1)

    def find(self, characters):
        """Yields (length, places, scores) of the words in a text for each length, from 2 on.

        `characters` is uint16 [N] and ends in a 0. `places` are those of the first characters,
        int64, in ascending order; `scores` float64.
        """
        places = np.flatnonzero(self._goes_on[characters])
        nodes = characters[places].astype(np.int64)
        for length in itertools.count(2):
            if not len(places):
                return
            keys = nodes << _BITS_OF_CHARACTER | characters[places + (length - 1)]
            slots = self._slots(keys)
            found = np.flatnonzero(self._keys[slots] == keys)
            places, nodes = places[found], self._nodes[slots[found]]
            scores = self._scores[nodes]
            words = np.flatnonzero(scores > -np.inf)
            yield length, places[words], scores[words]
            goes_on = np.flatnonzero(self._goes_on[nodes])
            places, nodes = places[goes_on], nodes[goes_on].astype(np.int64)

    def _make_table(self, keys, first_node):
        bits = max(4, len(keys).bit_length() + 1)  # at most half of the table is full
        self._to_slot = np.uint64(64 - bits)
        self._to_bucket = np.uint64(64 - bits + 3)  # with four edges in the mean at most
        self._shifts = np.zeros(2 ** (bits - 3), np.uint32)
        self._keys = np.full(2**bits, -1)
        self._nodes = np.zeros(2**bits, np.int32)
        self._place(keys)
        slots = self._slots(keys)
        self._keys[slots] = keys
        self._nodes[slots] = np.arange(first_node, first_node + len(keys))

    def _slots(self, keys):
        hashes = keys.view(np.uint64) * _MULTIPLIER
        return self._shifted(hashes, self._shifts[hashes >> self._to_bucket])

    def _shifted(self, hashes, shifts):
        return ((hashes ^ shifts) * _MULTIPLIER >> self._to_slot).view(np.int64)

    def _place(self, keys):
        """Finds shifts with which no two edges have the same slot."""
        hashes = keys.view(np.uint64) * _MULTIPLIER
        buckets = hashes >> self._to_bucket
        sizes = np.bincount(buckets.view(np.int64))[buckets]
        order = np.lexsort([buckets, -sizes])  # large buckets first, while there is room
        hashes, buckets, sizes = hashes[order], buckets[order], sizes[order]
        taken, owners = np.zeros(len(self._keys), bool), np.zeros(len(self._keys), np.int32)
        draws = np.random.default_rng(0)
        steps = np.flatnonzero(np.diff(sizes, prepend=-1, append=-1)).tolist()
        for start, end in itertools.pairwise(steps):
            size = sizes[start]
            left, edges = buckets[start:end:size], hashes[start:end].reshape(-1, size)
            while len(left):
                shifts = draws.integers(2**32, size=len(left), dtype=np.uint32)
                slots = self._shifted(edges, shifts[:, None])
                numbers = np.arange(len(left), dtype=np.int32)[:, None] * size
                numbers = numbers + np.arange(size, dtype=np.int32)
                owners[slots] = numbers  # of several edges at a slot, one owns it
                is_placed = (~taken[slots] & (owners[slots] == numbers)).all(1)
                self._shifts[left[is_placed]] = shifts[is_placed]
                taken[slots[is_placed]] = True
                left, edges = left[~is_placed], edges[~is_placed]


def _number_nodes(characters, lengths, most):
    """Returns (node of each word, sorted keys of the edges); edge i leads to node most + 1 + i."""
    firsts = np.cumsum(lengths) - lengths
    nodes = characters[firsts].astype(np.int64)
    edges, count = [np.empty(0, np.int64)], most + 1
    going_on = np.arange(len(lengths))
    for length in range(1, lengths.max(initial=0)):
        going_on = going_on[lengths[going_on] > length]
        keys = nodes[going_on] << _BITS_OF_CHARACTER | characters[firsts[going_on] + length]
        distinct, numbers = np.unique(keys, return_inverse=True)
        nodes[going_on] = count + numbers
        edges.append(distinct)
        count += len(distinct)
    return nodes, np.concatenate(edges)
