"""This machine: its processes make the shards, which it reads from the corpus and hands to them."""

import collections
import contextlib
import functools

from nezha_tf.corpus import report
from nezha_tf.corpus.documents import CorpusChanged
from nezha_tf.corpus.output_set import remove_shard, remove_unfinished
from nezha_tf.corpus.pool import run_tasks
from nezha_tf.corpus.shard_writer import ShardJob, make_shard


def make_shards(shards, settings, identity, sets, workers):
    """Makes shards and adds their summaries to the sets.

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
    new = [path for each in sets for path in each.paths if path not in each.finished]
    by_name = {each.name: each for each in sets}
    by_path = {path: each for each in sets for path in each.paths}
    jobs = (
        ShardJob(by_name[s.set_name].paths[s.index], s.documents, by_name[s.set_name].repetitions)
        for s in shards
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
    return instances, length, seconds


def shard_function(settings, identity):
    """Returns a worker's function, from a `ShardJob` to (its summary, its seconds by stage)."""
    from nezha_tf.corpus.shard_maker import ShardMaker

    return functools.partial(_make_one, settings, ShardMaker(settings), identity)


def _make_one(settings, maker, identity, job):
    return make_shard(settings, maker, job, identity), maker.clock.taken()
