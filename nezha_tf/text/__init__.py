"""Text to pieces and words: vocabulary, WordPiece in Python and in the graph, segmentation."""
