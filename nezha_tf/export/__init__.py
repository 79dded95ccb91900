"""Exports models as SavedModels that take raw text, and converts these for other runtimes."""
