"""A corpus to TFRecords: what `tools/create_pretraining_data.py` does."""

import os
import random
import time

from nezha_tf import console, files
from nezha_tf.data import schema, writer
from nezha_tf.data.corpus import read_documents
from nezha_tf.data.instances import InstanceMaker, Sentence
from nezha_tf.data.masking import Masking
from nezha_tf.errors import UserError, require_flag
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
    random_next_prob=0.5,
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
      short_seq_prob: how often a pass over a document aims at a random shorter length.
      random_next_prob: how often segment B is of another document; where a segment is a single
        sentence there is no choice, and it always is, as in the original.
      masking: "whole_word", "token" or "ngram", see `Masking`.
      eval_output_file: where given, whole documents are kept out of `output_file` and their
        examples go here.
      eval_share: share of the documents kept out, at least one on either side.

    Prints a table of what each set of files holds.

    Raises:
      UserError: bad input; nothing is left half-written.
    """
    lengths = schema.Lengths(max_seq_length, max_predictions_per_seq)
    tokenizer = FullTokenizer(vocab_file, do_lower_case)
    vocabulary = tokenizer.vocabulary
    inputs = files.expand(input_file, "input_file")
    outputs = require_flag(_names(output_file), "output_file")
    _check_outputs([*outputs, *_names(eval_output_file)], [*inputs, vocab_file])
    started = time.monotonic()
    documents = list(_documents(inputs, tokenizer, with_words=masking != "token"))
    held_out = []
    if eval_output_file:
        documents, held_out = _hold_out(documents, eval_share, random_seed)
    mask = Masking(vocabulary, masking, masked_lm_prob, max_predictions_per_seq)
    maker = InstanceMaker(
        mask,
        vocabulary.cls_id,
        vocabulary.sep_id,
        max_seq_length,
        short_seq_prob,
        random_next_prob,
    )
    rng = random.Random(random_seed)
    sets = [(maker.make(documents, dupe_factor, rng), outputs)]
    if held_out:
        sets.append((maker.make(held_out, 1, rng), _names(eval_output_file)))
    written = writer.write_sets(sets, lengths, vocabulary.mask_id)
    for (_, paths), source, statistics in zip(sets, (documents, held_out), written, strict=False):
        rows = [("documents", f"{len(source):,}"), ("sentences", f"{sum(map(len, source)):,}")]
        print(console.table(", ".join(paths), rows + statistics.rows()))
    print(f"{time.monotonic() - started:.0f} s")


def _names(text):
    return [name for name in (part.strip() for part in text.split(",")) if name]


def _check_outputs(outputs, inputs):
    """Raises a `UserError` where two of the files are one, or an output is a folder."""
    seen = {os.path.realpath(path) for path in inputs}
    for path in outputs:
        if os.path.isdir(path):
            raise UserError(f"output {path} is a folder; name a file in it")
        if os.path.realpath(path) in seen:
            raise UserError(f"output {path} is named twice or is an input; choose another name")
        seen.add(os.path.realpath(path))


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
    # A generator of its own: which documents are held out depends on the seed alone.
    chosen = set(random.Random(f"hold out {seed}").sample(range(len(documents)), count))
    kept = [document for index, document in enumerate(documents) if index not in chosen]
    return kept, [documents[index] for index in sorted(chosen)]
