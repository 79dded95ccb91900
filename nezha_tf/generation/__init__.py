"""Writes and scores texts with a trained model: decoding, beam search, sampling, scoring."""
