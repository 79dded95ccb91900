"""What a task needs to be served: SavedModels that take raw text, and predictors for one text."""
