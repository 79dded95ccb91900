"""SavedModels that take raw text: the model with its tokenizer inside."""
