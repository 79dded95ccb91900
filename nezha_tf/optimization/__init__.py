"""Optimizers and learning-rate schedules of the TF1 originals, as Keras objects."""
