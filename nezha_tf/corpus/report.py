"""The program's output: the plan, a progress bar, tables and a line for each kind of anomaly."""

import collections
import contextlib
import time

from nezha_tf.corpus.assignment import HELD_OUT
from nezha_tf.corpus.documents import ANOMALIES
from nezha_tf.corpus.shard_files import write_entry
from nezha_tf.corpus.statistics import READING, STAGES
from nezha_tf.objectives.policies import POLICIES, UNMASKED
from nezha_tf.text.words import never_found, read_user_dictionary
from nezha_tf.util import console
from nezha_tf.util.language import translated

# There is a warning if a smaller share of a set's characters is in examples.
LEAST_USED = 0.9
# If a larger share of sentences is longer than an example, the warning names these as the cause.
MANY_LONG = 0.05


def print_plan(sets, wanted, workers, runner=""):
    """Prints what will be made: the `OutputSet`s, and a number of shards by workers or a runner."""
    for each in sets:
        count, length = each.documents
        console.tell(
            f"{each.output_file}: {console.plural(count, 'document')}, {_size(length)} of text, "
            f"in {console.plural(len(each.paths), 'shard')} of "
            f"{_size(length / len(each.paths))}"
            + (f"; {len(each.finished)} there already" if each.finished else ""),
            flush=True,
        )
    if wanted:
        by = runner or console.plural(workers, "worker")
        console.tell(f"{console.plural(wanted, 'shard')} to make, {by}", flush=True)


def warn_of_words(settings):
    """Prints warnings if words of the dictionary can have no effect; see `never_found`."""
    if not settings.user_dict:
        return
    spaced = []
    words = read_user_dictionary(settings.user_dict, spaced)
    if spaced:
        console.tell(
            f"warning: {console.plural(len(spaced), 'word')} of --user_dict with a space (the "
            f"first line: {spaced[0]!r}) passed over: jieba never finds such a word",
            flush=True,
        )
    if settings.masking == UNMASKED or POLICIES[settings.masking].of_entities:
        return
    lost = never_found(settings.segmenter, words)
    if lost:
        console.tell(
            f"warning: {console.plural(len(lost), 'word')} of --user_dict (the first: {lost[0]}) "
            f"cannot be found: {settings.segmenter} splits at characters such as · and kana; "
            "--masking=entity and --masking=none keep every word whole",
            flush=True,
        )


@contextlib.contextmanager
def progress(sets):
    """Shows a progress bar with documents, time left and instances per second, on terminals only.

    Yields:
      A function to call with the summary of each finished shard.
    """
    finished = sum(r["documents"] for each in sets for r in each.finished.values())
    total = sum(each.documents.count for each in sets) - finished
    started, instances = time.monotonic(), 0
    with console.progress(total=total, desc="making", unit="doc") as bar:

        def show(summary):
            nonlocal instances
            instances += summary["records"]
            rate = instances / (time.monotonic() - started)
            bar.set_postfix_str(translated(f"{rate:,.0f} instances/s"), refresh=False)
            bar.update(summary["documents"])

        yield show


def finish(sets, settings, identity, measured, vocab_size):
    """Writes the manifests, and prints a table for each finished set, and all anomalies.

    For the arguments see `OutputSet.entry`; `measured` is the `Measure`.
    """
    anomalies, empty = collections.Counter(), 0
    for each in sets:
        entry = each.entry(settings, identity, vocab_size, measured.inputs)
        write_entry(each.output_file, entry)
        anomalies.update(each.anomalies)
        empty += each.documents.count - each.statistics.documents
        console.tell(console.facts(each.output_file, each.statistics.rows(settings.pair)))
        _warn_of_loss(each, settings)
        _warn_of_pairs(each, settings)
    faults = [(anomalies[kind], "line", text) for kind, text in ANOMALIES.items()]
    faults += [
        (empty, "document", "without text"),
        (measured.blank_files, "file", "without text"),
        (measured.cut_documents, "document", "cut at 4 MiB"),
    ]
    for count, noun, text in faults:
        if count:
            console.tell(console.plural(count, noun), text)


def print_stages(spent, read, made):
    """Prints the seconds of stages (Counter), for the bytes of text that were read, and made."""
    rows = []
    for name in STAGES:
        length = read if name == READING else made
        rate = length / max(spent[name], 1e-9) / 1e6
        if spent[name]:
            rows.append((name, f"{spent[name]:.1f} s", f"{rate:,.1f} MB/s"))
    console.tell(console.facts("stages: seconds of all workers, text a second of one", rows))


def print_rate(made, seconds):
    """Prints the run's duration, and how many instances a second it has made."""
    rate = f", {made / seconds:,.0f} instances/s" if made else ""
    console.tell(f"{seconds:.0f} s{rate}")


def _warn_of_loss(each, settings):
    statistics = each.statistics
    if statistics.used_share >= LEAST_USED:
        return
    has_long = statistics.long_sentences > MANY_LONG * statistics.sentences
    if each.name == HELD_OUT and not has_long:
        return  # one pass over pairs loses so much, and the held-out set has no other
    why = "the ends of pairs that are too long are lost"
    if settings.masking == UNMASKED:
        why += "; a larger --max_seq_length loses less, and --pair=none nothing"
    else:
        why += "; each further repetition (--dupe_factor) cuts pairs at other places"
    if has_long:
        why = (
            f"{statistics.long_sentences:,} of {statistics.sentences:,} sentences are longer than "
            "an example; write one sentence per line, with a line feed at its end, or raise "
            "--max_seq_length"
        )
    console.tell(
        f"warning: {1 - statistics.used_share:.1%} of the characters for {each.output_file} are "
        f"in no example: {why}"
    )


def _warn_of_pairs(each, settings):
    alone = sum(record["documents"] == 1 for record in each.finished.values())
    if alone and settings.pair == "nsp" and settings.random_next_prob:
        of_all = "" if alone == 1 == len(each.paths) else f" in {console.plural(alone, 'shard')}"
        console.tell(
            f"warning: {each.output_file} has a single document{of_all}, so random next "
            "sentences come from the same document; part documents by blank lines, or pass "
            "--pair=none or a smaller --num_output_shards"
        )


def _size(length):
    return f"{length / 1e6:.1f} MB" if length >= 1e5 else f"{length / 1e3:.1f} kB"
