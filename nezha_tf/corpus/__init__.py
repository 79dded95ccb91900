"""Makes a vocabulary and TFRecord files from a corpus; the files shard by shard.

The modules, in a good order for reading:

- `vocabulary` (counts a corpus and builds a vocabulary, before all else);
- the request: `settings`, `provenance` (what determines the bytes, and how examples were made);
- the corpus: `documents` (and their sentences), `assignment` (documents to shards);
- a shard: `tokens`, `packing` (sentences to instances, instances to rows), `shard_maker` (rows to
  records, by `row_check` and `encoding`), `statistics`, `shard_writer`;
- the whole run: `create`, `output_set`, `pool` (processes of this machine), `runners` (engines on
  others), `shard_files` (names, summaries, the manifest), `report`;
- reading the files: `inspection` (as text), `record_check`.

Masking is in `nezha_tf.objectives.array_masking`.
"""
