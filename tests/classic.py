"""The original's way, one instance at a time and one draw after the other: what ours is held to.

Follows `create_masked_lm_predictions` of google-research/bert, with units and runs for single
pieces.
"""

import numpy as np

from nezha_tf.pretraining_data.pieces import ShardPieces


def units_of(is_text, begins):
    """Returns the units of a row as lists of places; no unit holds or crosses a special piece."""
    units, fresh = [], True
    for place, text in enumerate(is_text):
        if text and (fresh or begins[place]):
            units.append([])
        if text:
            units[-1].append(place)
        fresh = not text
    return units


def run_from(units, index, size):
    """Returns the places of a run of units, which ends where a special piece is in between."""
    run = list(units[index])
    for following in units[index + 1 : index + size]:
        if following[0] != run[-1] + 1:
            break
        run += following
    return run


def chosen_runs(units, order, sizes, budget):
    """Returns dict of anchor to the places of its run, in the order of their turns."""
    runs, chosen = {}, set()
    for index in order:
        run = run_from(units, index, sizes[index])
        if len(chosen) + len(run) > budget or not chosen.isdisjoint(run):
            continue
        runs[index] = run
        chosen.update(run)
    return runs


def mask_pieces(ids, is_text, budget, vocabulary, rng):
    """Masks single pieces with the draws of the original.

    Returns:
      (ids with replacements, places in rising order, the pieces that stood there).
    """
    order = [place for place, text in enumerate(is_text) if text]
    rng.shuffle(order)
    output = list(ids)
    chosen = order[:budget]
    for place in chosen:
        if rng.random() < 0.8:
            output[place] = vocabulary.mask_id
        elif rng.random() >= 0.5:
            output[place] = rng.randint(0, len(vocabulary) - 1)
    places = sorted(chosen)
    return output, places, [ids[place] for place in places]


def shard_pieces(documents, word_starts=None):
    """Returns `ShardPieces` of documents, lists of sentences, lists of ids."""
    ids, bounds, sentences = [], [0], []
    for number, document in enumerate(documents):
        sentences.append((number, len(bounds) - 1, len(bounds) - 1 + len(document)))
        for sentence in document:
            ids += sentence
            bounds.append(len(ids))
    starts = np.ones(len(ids), bool) if word_starts is None else np.array(word_starts, bool)
    return ShardPieces(np.array(ids, np.int32), starts, bounds, sentences, 0, None)


def random_documents(rng, count=30, most_sentences=15, longest=20):
    """Returns documents whose ids rise from one piece to the next, from 200 on."""
    number, documents = 200, []
    for _ in range(count):
        document = []
        for _ in range(rng.randint(1, most_sentences)):
            size = rng.randint(1, longest)
            document.append(list(range(number, number + size)))
            number += size
        documents.append(document)
    return documents
