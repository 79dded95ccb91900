"""Writes shards: a TFRecord file each, and a JSON summary beside the file.

A file with its final name is always complete. The summary is written before the file gets that
name, so every such file has a summary, and a summary without a file is ignored. Whenever a run is
killed, each of its shards is therefore either finished or made again.
"""

import collections
import contextlib
import itertools
import json
import os
from typing import NamedTuple

import google_crc32c

from nezha_tf.corpus import report
from nezha_tf.corpus.documents import CorpusChanged, sentences_of
from nezha_tf.corpus.output_set import remove_shard, remove_unfinished
from nezha_tf.corpus.pool import run_tasks
from nezha_tf.corpus.shard_files import SUMMARY_FORMAT, is_one_of_many, summary_name
from nezha_tf.corpus.statistics import EXAMPLES, READING, TOKENS, WRITING, Stopwatch
from nezha_tf.data.framing import frame
from nezha_tf.util import console, files, storage
from nezha_tf.util.errors import UserError

RECORDS_AT_ONCE = 256


class ShardJob(NamedTuple):
    """A worker's task: the TFRecord file to write, and its documents as in `Shard`.

    `repetitions` is the number of passes over each document.
    """

    path: str
    documents: list
    repetitions: int


def make_shards(shards, settings, identity, sets, workers):
    """Makes shards by processes of this machine and adds their summaries to the sets.

    Args:
      shards: iterable of the `Shard`s to make.
      settings, identity: the `Settings`, and see `identity_of`.
      sets: list of `OutputSet`.
      workers: number of processes; 1: this process makes the shards.

    Returns:
      (number of instances, bytes of text, Counter of stage to the seconds of all workers).

    Raises:
      CorpusChanged: the corpus is not the one that was measured; no new shard is left.
      UserError: a worker was killed.
    """
    clock = Stopwatch()
    new = [path for each in sets for path in each.paths if path not in each.finished]
    by_name = {each.name: each for each in sets}
    by_path = {path: each for each in sets for path in each.paths}
    jobs = (
        ShardJob(by_name[s.set_name].paths[s.index], s.documents, by_name[s.set_name].repetitions)
        for s in clock.each(READING, shards)
    )
    instances, length, seconds = 0, 0, collections.Counter()
    try:
        made = run_tasks(
            workers,
            shard_function,
            (settings, identity),
            jobs,
            lambda job: f"made {job.path}; finished shards stay: the same command makes the rest",
            lambda job, process_id: remove_unfinished(job.path, process_id),
        )
        with contextlib.closing(made), report.progress(sets) as show:
            for job, (summary, spent) in made:
                by_path[job.path].add(job.path, summary)
                instances += summary["records"]
                length += sum(len(text) for _, text in job.documents)
                seconds.update(spent)
                show(summary)
    except CorpusChanged:
        # Their summaries name the text that was measured.
        for path in new:
            remove_shard(path)
        raise
    return instances, length, seconds + clock.taken()


def shard_function(settings, identity):
    """Returns a worker's function, from a `ShardJob` to (its summary, its seconds by stage)."""
    from nezha_tf.corpus.shard_maker import ShardMaker

    maker = ShardMaker(settings)
    return lambda job: (make_shard(settings, maker, job, identity), maker.clock.taken())


def make_shard(settings, maker, job, identity):
    """Makes one shard and returns its summary, a dict; equal documents give equal bytes.

    Args:
      settings, maker: the `Settings` and their `ShardMaker`, whose clock gets the time of all
        stages but `READING`.
      job: the `ShardJob`.
      identity: dict of all that determines the bytes, see `identity_of`.

    Raises:
      UserError: the files cannot be written (no space, no permission), or there is no example.
      CorpusChanged: the text is not UTF-8, which was refused when it was measured.
    """
    anomalies = collections.Counter()
    with maker.clock.stage(TOKENS):
        documents = list(_split(job, settings.on_invalid, anomalies))
    try:
        with files.whole_file(job.path) as temporary:
            records = maker.make(documents, job.repetitions)
            written = _write(records, temporary, maker.clock)
            if not written["records"]:
                raise UserError(_without_example(job, documents, settings))
            summary = {
                "format": SUMMARY_FORMAT,
                "first_document": job.documents[0][0],
                "documents": len(job.documents),
                **written,
                "statistics": maker.statistics.to_dict(),
                "anomalies": {kind: count for kind, count in anomalies.items() if count},
                "identity": identity,
            }
            text = json.dumps(summary, ensure_ascii=False, indent=1) + "\n"
            files.write_text(summary_name(job.path), text)
    except OSError as error:
        with contextlib.suppress(OSError):
            storage.remove(summary_name(job.path))
        raise UserError(f"cannot write {job.path}: {error.strerror}") from error
    return summary


def _split(job, on_invalid, anomalies):
    """Yields (number, sentences) of the documents that have a sentence."""
    for number, text in job.documents:
        try:
            sentences = sentences_of(text, on_invalid, anomalies)
        except UnicodeDecodeError as error:
            # The text was UTF-8 when it was measured.
            raise CorpusChanged(
                f"--input_file, document {number + 1}: changed while being read; start again"
            ) from error
        if sentences:
            yield number, sentences


def _write(records, path, clock):
    """Writes a TFRecord file; returns a dict of `records`, `bytes` and `crc32c`."""
    count = length = crc = 0
    with storage.open_binary(path, "wb") as file:
        while True:
            with clock.stage(EXAMPLES):
                block = list(itertools.islice(records, RECORDS_AT_ONCE))
            if not block:
                break
            with clock.stage(WRITING):
                data = b"".join(map(frame, block))
                file.write(data)
                crc = google_crc32c.extend(crc, data)
            count += len(block)
            length += len(data)
        with clock.stage(WRITING):
            if not storage.is_remote(path):
                file.flush()
                os.fsync(file.fileno())  # complete even after a power failure
    return {"records": count, "bytes": length, "crc32c": f"{crc:08x}"}


def _without_example(job, documents, settings):
    # Of a single word no two segments can be made.
    what = "text of two words" if documents and settings.pair == "sop" else "text"
    advice = "add text" + (", or pass another --eval_share" if settings.eval_share else "")
    if is_one_of_many(job.path):
        advice = "pass a smaller --num_output_shards"
    count = console.plural(len(job.documents), "document")
    return f"{job.path} would hold no example: there is no {what} in its {count}; {advice}"
