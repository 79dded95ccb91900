"""Pretraining data out of a corpus of many gigabytes: is the rate steady, and the memory flat?

  python large_corpus.py --text zh.txt --vocab vocab.txt --gigabytes 10 --folder /disk/large

The corpus is the text again and again, and no copy is like another: in each the documents are
shuffled, and other lines of them, one in twenty, are left out. The tool runs on it with all cores.
A row is a tenth of the shards: the rate in this tenth, and the memory and disk at its end. The
folder needs room for three and a half times the corpus; what the tool has made is there when the
program is given again, so it goes on, but then the rows are of the rest.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import time

from making_data import HERE, resident

LEFT_OUT = 0.05
ROWS = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", required=True, help="a sentence a line, an empty one after each")
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--folder", required=True, help="for the corpus and the examples")
    parser.add_argument("--segmenter", default="rjieba")
    options = parser.parse_args()
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    corpus = folder / "corpus.txt"
    if not corpus.exists():
        started = time.monotonic()
        write_copies(pathlib.Path(options.text), corpus, options.gigabytes * 1e9)
        print(f"corpus written in {time.monotonic() - started:.0f} s", flush=True)
    watch(command(corpus, options), folder, corpus.stat().st_size)


def write_copies(text, corpus, size):
    """Writes copies of a text, each changed, until there are so many bytes."""
    documents = [
        lines.split(b"\n") for lines in text.read_bytes().split(b"\n\n") if lines.strip(b"\n")
    ]
    chance = random.Random(1)
    unfinished = corpus.with_suffix(".tmp")
    with open(unfinished, "wb") as file:
        while file.tell() < size:
            chance.shuffle(documents)
            for lines in documents:
                kept = [line for line in lines if line and chance.random() >= LEFT_OUT]
                file.write(b"\n".join([*kept, b"", b""]))
                if file.tell() >= size:
                    break
    unfinished.rename(corpus)


def command(corpus, options):
    """Returns the arguments that start the tool: one pass, masked when it is read."""
    return [
        sys.executable,
        str(HERE.parent / "tools" / "create_pretraining_data.py"),
        f"--input_file={corpus}",
        f"--output_file={corpus.parent / 'train.tfrecord'}",
        f"--vocab_file={options.vocab}",
        f"--segmenter={options.segmenter}",
        "--masking=none",
    ]


def watch(arguments, folder, corpus_bytes):
    """Runs the tool, and prints a row whenever another tenth of the shards is there."""
    log = folder / "log.txt"
    started = then = time.monotonic()
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(arguments, stdout=file, stderr=file, start_new_session=True)
    print("share | s | MB/s of text | memory of all processes, MB | most so far | examples, GB")
    before = row = peak = 0
    while process.poll() is None:
        time.sleep(0.5)
        memory = resident(process.pid)
        peak = max(peak, memory)
        finished = list(folder.glob("train-*.tfrecord"))
        if not finished:  # it is planning
            then = time.monotonic()
            continue
        count = int(finished[0].stem.rpartition("-")[2])
        if len(finished) * ROWS >= (row + 1) * count:
            row, now = len(finished) * ROWS // count, time.monotonic()
            rate = (len(finished) - before) / count * corpus_bytes / (now - then) / 1e6
            made = sum(path.stat().st_size for path in finished)
            cells = f"{row / ROWS:.0%}", f"{now - started:.0f}", f"{rate:.2f}", f"{memory:.0f}"
            print(" | ".join([*cells, f"{peak:.0f}", f"{made / 1e9:.2f}"]), flush=True)
            before, then = len(finished), now
    seconds = time.monotonic() - started
    print(f"{corpus_bytes / 1e9:.2f} GB in {seconds:.0f} s, status {process.returncode}")
    print(log.read_text(encoding="utf-8"))
    sys.exit(process.returncode)


if __name__ == "__main__":
    main()
