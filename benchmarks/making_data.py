"""Pretraining data out of text: our tool against the classic way, on the same text in turns.

  python making_data.py --text zh.txt.gz --vocab vocab.txt
  python making_data.py --text ... --vocab ... --stages

Each side is a command in processes of its own, from its start to its end: imports, reading and
writing are in the figures. The classic way is `classic_data.py`, which is a stand-in for the
TF1 original written by us; README.md tells how the original compared.
"""

import argparse
import gzip
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import types

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
CLASSIC = "classic"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", required=True, help="a sentence a line; .gz too")
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--megabytes", type=float, default=4.9, help="of the text")
    parser.add_argument("--dupe_factor", type=int, default=5)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--predictions", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--masking", default="whole_word")
    parser.add_argument(
        "--sides",
        default="classic,jieba:1,jieba:2,rjieba:1,rjieba:2",
        help="the classic way, and segmenters with a number of workers",
    )
    parser.add_argument("--stages", action="store_true", help="CPU seconds of each stage instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder, "text.txt")
        text.write_bytes(beginning(options.text, options.megabytes))
        if options.stages:
            print_stages(text, options)
        else:
            print_sides(text, options, folder)


def beginning(path, megabytes):
    """Returns the first megabytes of a text, to the end of a line."""
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as file:
        return file.read(int(megabytes * 1e6)).rpartition(b"\n")[0] + b"\n"


def print_sides(text, options, folder):
    sides = options.sides.split(",")
    found = {side: [] for side in sides}
    for _ in range(options.rounds):
        for side in sides:
            with tempfile.TemporaryDirectory(dir=folder) as output:
                result = run(command(side, text, options, output))
                records = sum(map(count_records, pathlib.Path(output).glob("*.tfrecord")))
                found[side].append((*result, records))
    columns = ("seconds", "CPU seconds", "peak MB", "instances", "instances a second")
    print("  ".join(["side".ljust(10), *(name.rjust(18) for name in columns), "classic / it"]))
    for side in sides:
        seconds, cpu, memory, records = np.min(found[side], axis=0)
        values = (seconds, cpu, memory, records, records / seconds)
        line = [side.ljust(10), *(f"{value:,.1f}".rjust(18) for value in values)]
        if CLASSIC in found:
            ratios = [c[0] / ours[0] for c, ours in zip(found[CLASSIC], found[side], strict=True)]
            line.append(f"{np.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})")
        print("  ".join(line))


def command(side, text, options, output):
    """Returns the arguments that start a side."""
    path = os.path.join(output, "train.tfrecord")
    sizes = options.dupe_factor, options.length, options.predictions
    if side == CLASSIC:
        program = HERE / "classic_data.py"
        return [sys.executable, str(program), str(text), options.vocab, path, *map(str, sizes)]
    segmenter, _, workers = side.partition(":")
    return [
        sys.executable,
        str(HERE.parent / "tools" / "create_pretraining_data.py"),
        f"--input_file={text}",
        f"--output_file={path}",
        f"--vocab_file={options.vocab}",
        f"--segmenter={segmenter}",
        f"--num_workers={workers or 1}",
        f"--masking={options.masking}",
        f"--dupe_factor={options.dupe_factor}",
        f"--max_seq_length={options.length}",
        f"--max_predictions_per_seq={options.predictions}",
    ]


def run(arguments):
    """Runs a command; returns its seconds, its CPU seconds and its peak of memory in MB.

    CPU seconds are those of all its processes. Memory is the most that these held together
    whenever it was looked, ten times a second; what they share counts for each.
    """
    before = os.times()
    started = time.monotonic()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, start_new_session=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.1)
    seconds, after = time.monotonic() - started, os.times()
    if process.returncode:
        sys.exit(f"{' '.join(arguments)} ended with {process.returncode}")
    used = after.children_user + after.children_system
    return seconds, used - before.children_user - before.children_system, peak


def resident(session):
    """Returns the resident memory of all processes of a session, in MB."""
    pages = 0
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == session:
            pages += int(fields[21])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def count_records(path):
    """Returns the number of records of a TFRecord file, by their lengths."""
    count, place, data = 0, 0, path.read_bytes()
    while place < len(data):
        place += 16 + int.from_bytes(data[place : place + 8], "little")
        count += 1
    return count


def print_stages(text, options):
    """Prints what each stage takes of one core, on the whole text as one shard."""
    sys.path.insert(0, str(HERE.parent))
    for segmenter in ("jieba", "rjieba"):
        print(segmenter)
        found = [stage_seconds(segmenter, text, options) for _ in range(options.rounds)]
        total = sum(min(of[name] for of in found) for name in found[0])
        for name in found[0]:
            least = min(of[name] for of in found)
            print(f"  {name.ljust(40)}{least:6.2f} s {least / total:6.1%}")


def stage_seconds(segmenter, text, options):
    """Returns dict of stage to CPU seconds."""
    from nezha_tf.corpus import shard_maker
    from nezha_tf.corpus.settings import Settings
    from nezha_tf.corpus.statistics import Statistics
    from nezha_tf.data.corpus import read_documents

    seconds = {}

    def timed(name, function, *arguments):
        started = time.process_time()
        result = function(*arguments)
        seconds[name] = seconds.get(name, 0) + time.process_time() - started
        return result

    settings = Settings(
        vocab_file=options.vocab,
        segmenter=segmenter,
        masking=options.masking,
        max_seq_length=options.length,
        max_predictions_per_seq=options.predictions,
    )
    documents = timed("reading", lambda: list(enumerate(read_documents(str(text)))))
    maker = timed("vocabulary and dictionary", shard_maker.ShardMaker, settings)
    starts = maker._reader._segmenter.starts
    maker._reader._segmenter = types.SimpleNamespace(
        starts=lambda lines: timed("segmentation", starts, lines)
    )
    read = maker._reader.read
    maker._reader.read = lambda found: timed("tokenization and words", read, found)
    records = maker._records
    maker._records = lambda *of: timed("layout, masking, encoding", records, *of)
    look, check_rows = "a look at the rows", shard_maker.check_rows
    count, count_use = "what comes into examples", Statistics.count_use
    shard_maker.check_rows = lambda *of: timed(look, check_rows, *of)
    Statistics.count_use = lambda *of: timed(count, count_use, *of)
    try:
        timed("packing", lambda: sum(map(len, maker.make(documents, options.dupe_factor))))
    finally:
        shard_maker.check_rows, Statistics.count_use = check_rows, count_use
    seconds["packing"] -= seconds["tokenization and words"] + seconds["layout, masking, encoding"]
    seconds["packing"] -= seconds[count]
    seconds["layout, masking, encoding"] -= seconds[look]
    seconds["tokenization and words"] -= seconds["segmentation"]
    return seconds


if __name__ == "__main__":
    main()
