"""Pretraining as a task."""
