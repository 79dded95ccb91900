"""The cases of `tests/soak.py`: a module for each kind, and their common parts."""
