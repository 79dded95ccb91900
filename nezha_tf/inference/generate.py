"""Targets for the sources of a file, or what goes on from a prompt."""

from nezha_tf import console, files
from nezha_tf.data.rows import Row, read_rows
from nezha_tf.errors import UserError
from nezha_tf.inference.loading import (
    check_form,
    load_model,
    open_model,
    pack_prompts,
    settled,
    settled_form,
    settled_mode,
    target_format_of,
)
from nezha_tf.tasks.seq2seq.packing import Packing
from nezha_tf.tasks.seq2seq.settings import SEARCH_DEFAULTS
from nezha_tf.tasks.seq2seq.writing import TargetWriter, options_of, write_predictions
from nezha_tf.text.vocabulary import UNK


def generate_text(flags):
    """Writes texts, and shows them or writes them to a file.

    Args:
      flags: dict of the flags of tools/generate_text.py.

    Returns:
      What to print.

    Raises:
      UserError: a mistake in the flags or in the files.
    """
    rows = _read(flags)
    opened = open_model(flags)
    flags = settled_form(settled_mode(flags, opened), opened)
    flags = settled(flags, opened, SEARCH_DEFAULTS)
    target_format = target_format_of(flags)
    model, tokenizer = load_model(opened, check_form(target_format, flags))
    if target_format.mode == "left_to_right":
        # With no source to fill it in from, an [UNK] is of no use.
        flags = {**flags, "banned_words": [*flags["banned_words"], UNK]}
        pairs = pack_prompts(rows, tokenizer, flags["max_source_length"], flags["truncate_source"])
    else:
        lengths = (flags["max_source_length"], flags["max_target_length"])
        packing = Packing(tokenizer, *lengths, flags["truncate_source"])
        pairs = packing.pack([row._replace(values={"src": row.values["src"]}) for row in rows])
    writer = TargetWriter(
        model,
        tokenizer,
        target_format,
        options_of(flags, tokenizer),
        min(flags["predict_batch_size"], len(rows)),
        flags["seed"],
        flags["jit_compile"],
    )
    written = writer(rows, pairs)
    done = f"{console.plural(len(rows), 'text')}{pairs.truncation()}"
    if flags["output_file"]:
        write_predictions(flags["output_file"], rows, written)
        return f"{done}; written to {flags['output_file']}"
    tables = [
        console.table(row.values["src"], [(f"{h.score:.3f}", h.text) for h in hypotheses])
        for row, hypotheses in zip(rows, written, strict=True)
    ]
    return "\n".join([*tables, done])


def _read(flags):
    """Returns the sources of --prompt or of --input_file."""
    if bool(flags["prompt"]) == bool(flags["input_file"]):
        raise UserError("one of --prompt and --input_file is needed")
    if flags["prompt"]:
        return [Row({"src": flags["prompt"]}, "--prompt", 1)]
    # A target may stand there too, as in the files of run_seq2seq.py, and is passed on.
    paths = files.expand(flags["input_file"], "input_file")
    if flags["output_file"]:
        files.require_other(flags["output_file"], "output_file", paths)
    return [row for path in paths for row in read_rows(path, ("src", "tgt"), ("tgt",))]
