"""Vocabulary, WordPiece tokenizers in Python and in the graph, and word segmentation."""
