"""Writing and judging text with a trained model: decoding, beam search, sampling, scores."""
