"""Sequence to sequence in UniLM's way: one body reads the source and writes the target."""
