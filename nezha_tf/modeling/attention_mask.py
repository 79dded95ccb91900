"""Attention masks for pretraining, fine-tuning and decoding.

Each token has an integer rank, and one rule fits all objectives: query i sees key j if j is not
padding and rank[j] <= rank[i]. A padding query has a rank above all others, so it sees every real
token, as in BERT, and no row of the softmax is empty. Where a row has several texts, which
`text_ids` tell, a token sees those of its own text alone.

`input_mask`, int [B, T], is 1 for tokens. Functions `..._ranks` return int [B, T]; the others
return bool [B, 1, T, T], True if the query (third axis) attends to the key (last axis).
"""

from keras import ops


def bidirectional(input_mask):
    """Every token sees every token (BERT, NEZHA)."""
    return from_ranks(bidirectional_ranks(input_mask), input_mask)


def left_to_right(input_mask):
    """A token sees itself and the tokens left of it (UniLM, arXiv 1905.03197 §2.3)."""
    return from_ranks(left_to_right_ranks(input_mask), input_mask)


def right_to_left(input_mask):
    """A token sees itself and the tokens right of it (UniLM §2.3)."""
    return from_ranks(right_to_left_ranks(input_mask), input_mask)


def seq2seq(input_mask, segment_ids):
    """The source sees the source; a target token sees the source, itself and the target before it.

    `segment_ids`, int [B, T], are odd in the target (UniLM §2.3).
    """
    return from_ranks(seq2seq_ranks(input_mask, segment_ids), input_mask)


def bidirectional_ranks(input_mask):
    """Returns 0 for all tokens."""
    return ops.zeros_like(input_mask)


def left_to_right_ranks(input_mask):
    """Returns 0, 1, 2 and so on."""
    positions = ops.arange(ops.shape(input_mask)[1], dtype=input_mask.dtype)
    return ops.broadcast_to(positions[None], ops.shape(input_mask))


def right_to_left_ranks(input_mask):
    """Returns T-1, T-2 and so on to 0."""
    return ops.shape(input_mask)[1] - 1 - left_to_right_ranks(input_mask)


def seq2seq_ranks(input_mask, segment_ids):
    """Returns 0 in the source and rising ranks in the target."""
    is_target = ops.cast(segment_ids % 2, input_mask.dtype)
    return is_target * (left_to_right_ranks(input_mask) + 1)


def from_ranks(ranks, input_mask, text_ids=None):
    """Returns the mask for the tokens' ranks, int [B, T].

    `text_ids`, int [B, T], are the numbers of the texts of a row, from 1, and 0 in padding, or None
    (block-diagonal masks: Krell et al., arXiv 2107.02027 §3).
    """
    is_token = ops.cast(input_mask, "bool")
    query_ranks = ops.where(is_token, ranks, ops.shape(input_mask)[1] + 1)
    # Indexing with None does not work here: TFLite lacks this slice for dynamic lengths.
    visible = ops.expand_dims(ranks, (1, 2)) <= ops.expand_dims(query_ranks, (1, 3))
    if text_ids is not None:
        of_queries = ops.expand_dims(text_ids, (1, 3))
        is_own = ops.equal(ops.expand_dims(text_ids, (1, 2)), of_queries)
        visible = ops.logical_and(visible, ops.logical_or(is_own, of_queries == 0))
    return ops.logical_and(visible, ops.expand_dims(is_token, (1, 2)))


def places_in_texts(text_ids):
    """Returns the place of each token in its text, from 0, int32 [B, T]; see `from_ranks`."""
    is_own = ops.equal(ops.expand_dims(text_ids, 1), ops.expand_dims(text_ids, 2))
    places = ops.arange(ops.shape(text_ids)[1], dtype="int32")
    # argmax finds the first token of the same text.
    return places - ops.cast(ops.argmax(ops.cast(is_own, "int32"), axis=-1), "int32")


def strictly_below(ranks, input_mask, positions):
    """Returns the mask for queries that see what ranks below their place, but not this token.

    The queries are at `positions`, int [B, P]; the mask is bool [B, 1, P, T].
    """
    below = ops.take_along_axis(ranks, positions, axis=1)
    visible = ranks[:, None, None, :] < below[:, None, :, None]
    return ops.logical_and(visible, ops.cast(input_mask, "bool")[:, None, None, :])


def with_blanks(ranks, input_mask, is_blank):
    """Returns the mask for tokens and for additional [MASK]s that share the places of tokens.

    Such a [MASK] sees itself and all tokens of lower rank; nothing else sees it. So one pass
    predicts every token of a target from the tokens before it.

    Args:
      ranks: int [B, T] or [1, T]; a [MASK] has the rank of the token at its place.
      is_blank: bool [T], True for those [MASK]s.
    """
    is_token = ops.cast(input_mask, "bool")
    below = ranks[:, None, None, :] < ranks[:, None, :, None]
    visible = ops.where(is_blank[:, None], below, from_ranks(ranks, input_mask))
    itself = ops.eye(ops.shape(input_mask)[1], dtype="bool")
    visible = ops.where(is_blank[None, :], itself, visible)
    return ops.logical_and(visible, is_token[:, None, None, :])


def of_beams(source_mask, ancestors, num_cached, num_queries):
    """Returns the mask for a step of beam search, where each target place has a token per beam.

    The keys are the S source tokens, the T cached places and the Q query places; the latter two,
    and the queries, in the order (place, beam). A query sees the source, the tokens of its
    hypothesis, and the queries of its own beam up to itself.

    Args:
      source_mask: int [B, S].
      ancestors: int [B, beams, T], the beam of a hypothesis's token at each cached place.
      num_cached: int scalar tensor, the number of cached places.
      num_queries: int, Q.

    Returns:
      bool [B, 1, Q * beams, S + (T + Q) * beams].
    """
    batch, beams, places = ops.shape(ancestors)
    queries = num_queries * beams
    source = ops.cast(source_mask, "bool")[:, None, None, :]
    source = ops.broadcast_to(source, (batch, 1, queries, ops.shape(source_mask)[1]))
    chosen = ancestors[..., None] == ops.arange(beams, dtype=ancestors.dtype)
    is_cached = ops.arange(places, dtype="int32") < num_cached
    cached = ops.reshape(
        ops.logical_and(chosen, is_cached[:, None]), (batch, 1, beams, places * beams)
    )
    cached = ops.tile(cached, (1, 1, num_queries, 1))
    index = ops.arange(queries, dtype="int32")
    is_own = ops.logical_and(
        index[None, :] % beams == index[:, None] % beams, index[None, :] <= index[:, None]
    )
    own = ops.broadcast_to(is_own, (batch, 1, queries, queries))
    return ops.concatenate([source, cached, own], axis=-1)
