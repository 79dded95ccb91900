"""The sample text and the vocabulary of the package; the project made them itself."""
