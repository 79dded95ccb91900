"""What a task needs to be served: SavedModels of raw text, and answers to one text at a time."""
