"""Text to examples to batches: corpus, instances, masking, schema, writer, reader."""
