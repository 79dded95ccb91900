"""Masking: which pieces of an example the model predicts, and what replaces them in its input."""
