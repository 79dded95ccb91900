"""What the tools share: the model of their flags, its target format, and prompts as ids."""

import sys

import numpy as np

from nezha_tf.checkpoints import loading
from nezha_tf.config import NezhaConfig
from nezha_tf.errors import UserError, require_flag
from nezha_tf.generation.generator import check_room
from nezha_tf.generation.target_format import TargetFormat
from nezha_tf.model_folder.folder import weights_of
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.tasks.seq2seq.packing import Pairs, Side
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.vocabulary import check_vocabulary
from nezha_tf.training.start import differences

# What most uses of a model do not read, and Hugging Face's masked LMs do not have.
UNREAD_NAMES = ("bert/pooler/",)


def load_model(
    flags,
    check=lambda config: None,
    model_class=NezhaForMaskedLM,
    may_be_missing=UNREAD_NAMES,
):
    """Loads the model and the tokenizer of the flags.

    The weights are those of the folder's model, so of a run with --ema_decay the moving averages.
    A vocabulary or a case beside them that is another than that of the flags is told on stderr.

    Args:
      flags: dict of `bert_config_file`, `vocab_file`, `do_lower_case` and `init_checkpoint`.
      check: function of the configuration that raises `UserError` where the model is no good.
      model_class: what to make of the configuration.
      may_be_missing: as for `checkpoints.load`.

    Returns:
      (the model, `FullTokenizer`).

    Raises:
      UserError: a flag or a file is missing, or they do not belong together.
    """
    names = ("bert_config_file", "vocab_file", "init_checkpoint")
    config_file, vocab_file, checkpoint = (require_flag(flags[name], name) for name in names)
    config = NezhaConfig.from_json_file(config_file)
    check(config)
    tokenizer = FullTokenizer(vocab_file, flags["do_lower_case"])
    check_vocabulary(config, tokenizer.vocabulary)
    model = model_class(config)
    checkpoint, averages = weights_of(checkpoint)
    for line in differences(checkpoint, vocab_file, flags["do_lower_case"]):
        print(line, file=sys.stderr)
    loading.load(model, checkpoint, may_be_missing, averages=averages)
    return model, tokenizer


def target_format_of(flags):
    """Returns the `TargetFormat` of `mode`, `target_prediction` and `segment_ids`.

    Raises:
      UserError: --segment_ids are not two numbers.
    """
    segment_ids = flags["segment_ids"]
    if segment_ids is not None:
        if len(segment_ids) != 2 or not all(part.isdecimal() for part in segment_ids):
            raise UserError(f"--segment_ids={','.join(segment_ids)} must be two numbers, as in 0,1")
        segment_ids = tuple(map(int, segment_ids))
    return TargetFormat(
        mode=flags["mode"],
        target_prediction=flags["target_prediction"],
        segment_ids=segment_ids,
    )


def check_form(target_format, flags):
    """Returns the check of a configuration: that it has the segments, and room for both sides."""

    def check(config):
        target_format.check(config)
        check_room(config, np.array([flags["max_source_length"]]), flags["max_target_length"])

    return check


def pack_prompts(rows, tokenizer, max_length, truncate):
    """Packs prompts as [CLS] prompt.

    Args:
      rows: list of `data.rows.Row` with `src`.
      tokenizer: `FullTokenizer`.
      max_length: most pieces, [CLS] counted.
      truncate: "tail" or "head": which end of a longer prompt is cut off.

    Returns:
      `Pairs` without targets.

    Raises:
      UserError: a prompt of which no piece is left.
    """
    side = Side("prompt", 1, max_length, truncate)
    packed, truncated = [], 0
    for row in rows:
        whole = ids_of(row, "src", tokenizer)
        ids = side.cut(whole)
        truncated += len(ids) < len(whole)
        packed.append(np.array([tokenizer.vocabulary.cls_id, *ids], np.int32))
    return Pairs(packed, [len(ids) for ids in packed], {"prompt": truncated})


def ids_of(row, column, tokenizer):
    """Returns the ids of a row's text; raises UserError where no piece is left of it."""
    ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(row.values[column]))
    if not ids:
        raise UserError(f"{row.place}: {column} holds no piece of text")
    return ids
