"""What a model makes of texts: vectors of pieces, characters and texts, and likeness of pairs."""
