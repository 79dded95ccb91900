"""Sequence to sequence with UniLM's method: one encoder reads the source and writes the target."""
