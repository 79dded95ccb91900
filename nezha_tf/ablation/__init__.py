"""Ablations: programs run with several settings and seeds, and what came out side by side."""
