"""What the understanding tasks share: reading, evaluation and prediction on one training loop."""
