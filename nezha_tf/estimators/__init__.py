"""A few lines for the commonest work: texts in memory to a trained model, and to its answers."""
