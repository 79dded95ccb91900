"""What the coordinator of data making costs: everything but the shards, which are stubbed.

python benchmarks/coordinator.py --documents=20000000 --shards=260000

Writes a corpus of short documents into a folder for temporary files. The tool plans it, hands out
its shards and writes the manifest; seconds and memory are told. More workers do not make this less.
"""

import argparse
import os
import resource
import tempfile
import time
from unittest import mock

import nezha_tf
from nezha_tf.corpus import create, shard_files, shard_writer
from nezha_tf.corpus.statistics import Statistics
from nezha_tf.util import files

VOCAB_FILE = os.path.join(os.path.dirname(nezha_tf.__file__), "resources", "vocab.txt")
SENTENCE = "楼下的早餐店已经开门，蒸笼里冒着热气。\n\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=2_000_000)
    parser.add_argument("--shards", type=int, default=260_000)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        corpus, output = (os.path.join(scratch, name) for name in ("corpus.txt", "train.tfrecord"))
        with files.whole_file(corpus) as path, open(path, "w", encoding="utf-8") as text:
            for start in range(0, flags.documents, 10_000):
                text.write(SENTENCE * min(10_000, flags.documents - start))
        length, before = os.path.getsize(corpus), peak()
        started = time.monotonic()
        with mock.patch.object(shard_writer, "shard_function", stub):
            create.create_pretraining_data(
                input_file=corpus,
                output_file=output,
                vocab_file=VOCAB_FILE,
                num_output_shards=flags.shards,
                num_workers=1,
                masking="none",
                pair="none",
            )
        seconds = time.monotonic() - started
        started = time.monotonic()
        shards = shard_files.shards_in(shard_files.manifest_name(output))
        opened = time.monotonic() - started
        size = os.path.getsize(shard_files.manifest_name(output))
    print(f"| documents | {flags.documents:,} ({length / 1e9:.2f} GB) in {len(shards):,} shards |")
    print("| --- | --- |")
    print(f"| seconds in all | {seconds:.0f} ({length / seconds / 1e6:,.0f} MB/s) |")
    print(f"| a document | {seconds / flags.documents * 1e6:.1f} µs |")
    print(f"| highest memory, of it before | {peak():,.0f} MB, {before:,.0f} MB |")
    print(f"| manifest | {size / 1e6:.0f} MB, opened in {opened:.2f} s |")


def stub(settings, identity):
    """Returns a function in the place of `shard_writer.shard_function` that makes no file."""
    summary = {"records": 1, "bytes": 100, "crc32c": "00000000", "anomalies": {}}
    summary["statistics"] = Statistics(documents=1, instances=1, tokens=1, capacity=1).to_dict()
    return lambda job: ({**summary, "documents": len(job.documents)}, {})


def peak():
    """Returns the highest memory of this process so far in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    main()
