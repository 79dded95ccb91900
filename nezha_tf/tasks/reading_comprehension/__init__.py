"""Reading comprehension: the stretch of a passage that answers a question."""
