"""Makes a vocabulary and TFRecord files from a corpus; the files shard by shard.

The modules, in a good order for reading:

- `vocabulary` (counts a corpus and builds a vocabulary, before all else);
- the request: `settings`, `identity` (what determines the bytes);
- the corpus: `corpus` (documents), `lines` (sentences), `assignment` (documents to shards);
- a shard: `tokens`, `packing` (sentences to instances), `layout` (instances to rows),
  `shard_maker`, `row_check`, `encoding` (rows to records), `statistics`, `shard_files`;
- the whole run: `create`, `output_set`, `pool` (worker processes), `runners` (engines on other
  machines), `manifest`, `leftovers`,
  `stopwatch`, `report`;
- reading the files: `provenance`, `record_check`, `inspection`, `example_text`.

Masking is in `nezha_tf.data.corruption`.
"""
