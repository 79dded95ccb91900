"""Training: one step, one loop, checkpoints and the log of a run."""
