"""Text files, and examples to batches: corpus, masking policies, schema, reader."""
