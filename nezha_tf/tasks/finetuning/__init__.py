"""The common parts of the understanding tasks: reading, evaluation and prediction."""
