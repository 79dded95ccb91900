"""A corpus to TFRecords, shard by shard.

In the order in which the modules are best read:

- what is asked for: `settings`, `identity` (what determines the bytes);
- the corpus: `corpus` (documents), `lines` (sentences), `assignment` (of documents to shards);
- a shard: `pieces`, `packing` (sentences to examples), `layout` (examples as rows), `shard_maker`,
  `row_check`, `encoding` (rows to records), `statistics`, `shard_files`;
- the whole: `create`, `output_set`, `pool` (worker processes), `beam`, `manifest`, `leftovers`,
  `report`;
- reading what was made: `provenance`, `record_check`, `inspection`, `example_text`.

Masking is in `nezha_tf.data.corruption`.
"""
