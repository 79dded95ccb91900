"""A corpus to TFRecords, shard by shard: settings, corpus, shards, workers, manifest."""
