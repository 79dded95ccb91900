"""One step, one loop, checkpoints and the record of a run."""
