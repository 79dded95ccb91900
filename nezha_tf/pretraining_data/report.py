"""What a person sees of the making: the plan, a bar, tables and a line for each anomaly."""

import collections
import contextlib
import time

from nezha_tf import console
from nezha_tf.pretraining_data.lines import KINDS
from nezha_tf.pretraining_data.manifest import entry_of, write_manifest

# The share of the text's characters below which a set is warned of.
LEAST_USED = 0.9
# The share of sentences longer than an example above which they are what is told of.
MANY_LONG = 0.05


def tell_plan(sets, wanted, workers, runner=""):
    """Prints what is to be done.

    Args:
      sets: list of `OutputSet`.
      wanted: how many shards are to be made.
      workers: how many processes make them.
      runner: the runner of Apache Beam that makes them in their stead, or "".
    """
    for chosen in sets:
        count, length = chosen.documents
        print(
            f"{chosen.output_file}: {console.plural(count, 'document')}, {_size(length)} of text, "
            f"in {console.plural(len(chosen.paths), 'shard')} of "
            f"{_size(length / len(chosen.paths))}"
            + (f"; {len(chosen.finished)} there already" if chosen.finished else ""),
            flush=True,
        )
    if wanted:
        by = runner or console.plural(workers, "worker")
        print(f"{console.plural(wanted, 'shard')} to make, {by}", flush=True)


@contextlib.contextmanager
def progress(sets):
    """Shows a bar of documents with time left and instances a second, on a terminal only.

    Yields:
      A function that takes the record of each shard when it is made.
    """
    finished = sum(r["documents"] for chosen in sets for r in chosen.finished.values())
    total = sum(chosen.documents.count for chosen in sets) - finished
    started, instances = time.monotonic(), 0
    with console.progress(total=total, desc="making", unit="doc") as bar:

        def told(record):
            nonlocal instances
            instances += record["records"]
            rate = instances / (time.monotonic() - started)
            bar.set_postfix_str(f"{rate:,.0f} instances/s", refresh=False)
            bar.update(record["documents"])

        yield told


def tell_end(sets, settings, identity, found, vocab_size, made, seconds):
    """Writes the manifests; prints a table for each set and what was odd.

    Args:
      sets: list of `OutputSet`, all of whose shards are finished.
      settings: the `Settings`.
      identity: dict as of `identity_of`.
      found: the `Measure` of the corpus.
      vocab_size: pieces of the vocabulary.
      made: how many instances this run has made.
      seconds: how long it took.
    """
    anomalies, empty = collections.Counter(), 0
    for chosen in sets:
        entry = entry_of(settings, identity, vocab_size, found.inputs, chosen)
        write_manifest(chosen.output_file, entry)
        anomalies.update(chosen.anomalies)
        empty += chosen.documents.count - chosen.statistics.documents
        print(console.table(chosen.output_file, chosen.statistics.rows(settings.pair)))
        _warn_of_loss(chosen)
    told = [(anomalies[kind], text) for kind, text in KINDS.items()]
    told += [(empty, "document without text"), (found.blank_files, "file without text")]
    told += [(found.cut_documents, "document cut at 4 MiB")]
    for count, text in told:
        noun, _, rest = text.partition(" ")
        if count:
            print(f"{console.plural(count, noun)} {rest}")
    rate = f", {made / seconds:,.0f} instances/s" if made else ""
    print(f"{seconds:.0f} s{rate}")


def _warn_of_loss(chosen):
    """Prints a line where much of a set's text came into no example."""
    statistics = chosen.statistics
    if statistics.used_share >= LEAST_USED:
        return
    why = (
        "what is cut off a pair to make it fit is lost; each further repetition (--dupe_factor) "
        "cuts at other places"
    )
    if statistics.long_sentences > MANY_LONG * statistics.sentences:
        why = (
            f"{statistics.long_sentences:,} of {statistics.sentences:,} sentences are longer than "
            "an example; write one sentence a line, with a line feed at its end, or raise "
            "--max_seq_length"
        )
    print(
        f"warning: {1 - statistics.used_share:.1%} of the characters for {chosen.output_file} are "
        f"in no example: {why}"
    )


def _size(length):
    return f"{length / 1e6:.1f} MB" if length >= 1e5 else f"{length / 1e3:.1f} kB"
