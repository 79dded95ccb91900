"""A corpus to TFRecords: what `tools/create_pretraining_data.py` does."""

import os
import random
import time

from nezha_tf import console, files
from nezha_tf.data import schema, writer
from nezha_tf.data.corpus import read_documents
from nezha_tf.data.instances import InstanceMaker, Sentence
from nezha_tf.data.masking import Masking
from nezha_tf.errors import UserError
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.word_segmentation import word_starts


def create_pretraining_data(
    *,
    input_file,
    output_file,
    vocab_file,
    do_lower_case=True,
    max_seq_length=128,
    max_predictions_per_seq=20,
    random_seed=12345,
    dupe_factor=10,
    masked_lm_prob=0.15,
    short_seq_prob=0.1,
    masking="whole_word",
    eval_output_file="",
    eval_share=0.05,
):
    """Writes the examples of a corpus; the same arguments give the same bytes.

    Args:
      input_file: names or globs of text files, `.gz` too, separated by commas.
      output_file: TFRecord files to write, separated by commas; instances go to them in turn.
      vocab_file: the vocabulary.
      do_lower_case: as for `FullTokenizer`.
      max_seq_length: length T of an example, in pieces.
      max_predictions_per_seq: most predictions P of an example.
      random_seed: seed of the one generator that every draw comes from.
      dupe_factor: how often each document is gone through, masked anew each time; held-out
        documents are gone through once.
      masked_lm_prob: share of the pieces that is predicted.
      short_seq_prob: share of the packs that aim at a random shorter length.
      masking: "whole_word", "token" or "ngram", see `Masking`.
      eval_output_file: where given, whole documents are kept out of `output_file` and their
        examples go here.
      eval_share: share of the documents kept out, in (0, 1).

    Prints a table of what each set of files holds.

    Raises:
      UserError: bad input; nothing is left half-written.
    """
    lengths = schema.Lengths(max_seq_length, max_predictions_per_seq)
    tokenizer = FullTokenizer(vocab_file, do_lower_case)
    vocabulary = tokenizer.vocabulary
    outputs = [path for path in output_file.split(",") if path]
    for path in (*outputs, eval_output_file):
        if os.path.isdir(path):
            raise UserError(f"output {path} is a folder; name a file in it")
    started = time.monotonic()
    documents = list(
        _documents(files.expand(input_file, "input_file"), tokenizer, masking != "token")
    )
    held_out = []
    if eval_output_file:
        documents, held_out = _hold_out(documents, eval_share, random_seed)
    sets = [(outputs, documents, dupe_factor)]
    if held_out:
        sets.append(([eval_output_file], held_out, 1))
    mask = Masking(vocabulary, masking, masked_lm_prob, max_predictions_per_seq)
    maker = InstanceMaker(
        mask, vocabulary.cls_id, vocabulary.sep_id, max_seq_length, short_seq_prob
    )
    rng = random.Random(random_seed)
    for paths, chosen, times in sets:
        instances = maker.make(chosen, times, rng)
        statistics = writer.write_instances(instances, paths, lengths, vocabulary.mask_id)
        source = [("documents", f"{len(chosen):,}"), ("sentences", f"{sum(map(len, chosen)):,}")]
        print(console.table(", ".join(paths), source + statistics.rows()))
    print(f"{time.monotonic() - started:.0f} s")


def _documents(paths, tokenizer, with_words):
    """Yields the documents of the files as lists of `Sentence`; empty ones are left out.

    Raises:
      UserError: the files hold no text.
    """
    found = False
    vocabulary = tokenizer.vocabulary
    for path in paths:
        for lines in console.progress(read_documents(path), desc=f"reading {path}", unit="doc"):
            document = []
            for line in lines:
                pieces = tokenizer.tokenize_with_offsets(line)
                if pieces:
                    starts = word_starts(line, pieces) if with_words else [True] * len(pieces)
                    ids = vocabulary.ids_of([piece.text for piece in pieces])
                    document.append(Sentence(ids, starts))
            if document:
                found = True
                yield document
    if not found:
        raise UserError(f"{', '.join(paths)}: no text in it; write one sentence a line")


def _hold_out(documents, share, seed):
    """Parts the documents in (kept for training, kept out), at least one document each."""
    if len(documents) < 2:
        raise UserError("--eval_output_file needs a corpus of at least 2 documents")
    count = min(len(documents) - 1, max(1, round(len(documents) * share)))
    # A generator of its own, so that the training data draw the same numbers with and without.
    chosen = set(random.Random(f"hold out {seed}").sample(range(len(documents)), count))
    kept = [document for index, document in enumerate(documents) if index not in chosen]
    return kept, [documents[index] for index in sorted(chosen)]
