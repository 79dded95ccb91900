"""What the tools share: the model of their flags, its target format, and prompts as ids."""

import functools
import sys

import numpy as np

from nezha_tf.checkpoints import loading
from nezha_tf.config import NezhaConfig
from nezha_tf.errors import UserError, require_flag
from nezha_tf.generation.generator import check_room
from nezha_tf.generation.target_format import MODES, TargetFormat
from nezha_tf.model_folder.folder import open_folder, weights_of
from nezha_tf.model_folder.kinds import POOLER
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.pretraining_objectives.uses import uses_of
from nezha_tf.tasks.seq2seq.packing import Pairs, Side
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.vocabulary import check_vocabulary
from nezha_tf.training.start import differences

# What most uses of a model do not read, and Hugging Face's masked LMs do not have.
UNREAD_NAMES = (POOLER,)
FORM_DEFAULTS = {
    "target_prediction": "masked",
    "max_source_length": 128,
    "max_target_length": 64,
    "truncate_source": "tail",
}
# The flags that a bare checkpoint takes in place of --model_folder.
BARE_FLAGS = ("bert_config_file", "vocab_file", "init_checkpoint")


class BareCheckpoint:
    """A checkpoint, a configuration and a vocabulary, with the interface of a `ModelFolder`.

    Attributes:
      config: `NezhaConfig`.
      task: as of a folder of no task.
    """

    def __init__(self, flags):
        """Args:
          flags: dict of `BARE_FLAGS` and `do_lower_case`; that is on where it is None.

        Raises:
          UserError: a flag is missing, or a bad configuration.
        """
        config_file, self._vocab_file, self._checkpoint = (
            require_flag(flags[name], name) for name in BARE_FLAGS
        )
        self._do_lower_case = flags["do_lower_case"] is not False
        self.config = NezhaConfig.from_json_file(config_file)
        self.task = {"task": None}

    @functools.cached_property
    def tokenizer(self):
        """The `FullTokenizer`; `UserError` where the vocabulary is not the model's."""
        tokenizer = FullTokenizer(self._vocab_file, self._do_lower_case)
        check_vocabulary(self.config, tokenizer.vocabulary)
        return tokenizer

    def load_into(self, model, may_be_missing=()):
        """As `ModelFolder.load_into`; what lies beside the weights and differs is told on stderr.

        In the folder of a run with --ema_decay the weights are the moving averages.
        """
        checkpoint, averages = weights_of(self._checkpoint)
        for line in differences(checkpoint, self._vocab_file, self._do_lower_case):
            print(line, file=sys.stderr)
        loading.load(model, checkpoint, may_be_missing, averages=averages)


def open_model(flags):
    """Opens the model that the flags name; its weights are not loaded yet.

    Args:
      flags: dict of `model_folder`, `BARE_FLAGS` and `do_lower_case`.

    Returns:
      `ModelFolder` or `BareCheckpoint`.

    Raises:
      UserError: both ways to a model are given, or neither; or one that leads to none.
    """
    given = [f"--{name}" for name in BARE_FLAGS if flags[name]]
    if not flags["model_folder"]:
        if not given:
            raise UserError(
                "--model_folder is needed; or for a bare checkpoint "
                f"{', '.join(f'--{name}' for name in BARE_FLAGS)}"
            )
        return BareCheckpoint(flags)
    if given:
        raise UserError(
            f"--model_folder={flags['model_folder']} holds a whole model; leave out "
            f"{', '.join(given)}"
        )
    return open_folder(flags["model_folder"], flags["do_lower_case"])


def load_model(
    opened,
    check=lambda config: None,
    model_class=NezhaForMaskedLM,
    may_be_missing=UNREAD_NAMES,
):
    """Loads the model and the tokenizer of what `open_model` has opened.

    The weights are those that the folder's model has: of a run with --ema_decay the moving
    averages.

    Args:
      opened: `ModelFolder` or `BareCheckpoint`.
      check: function of the configuration that raises `UserError` where the model is no good.
      model_class: what to make of the configuration.
      may_be_missing: as for `checkpoints.load`.

    Returns:
      (the model, `FullTokenizer`).

    Raises:
      UserError: files are damaged, or do not belong together.
    """
    check(opened.config)
    tokenizer, model = opened.tokenizer, model_class(opened.config)
    opened.load_into(model, may_be_missing)
    return model, tokenizer


def settled(flags, opened, defaults):
    """Returns the flags with values for those that were not given.

    Args:
      flags: dict; None stands for a flag that was not given.
      opened: as of `open_model`.
      defaults: dict of the names of flags to their values where the folder says none.
    """
    found = {name: opened.task.get(name, default) for name, default in defaults.items()}
    return flags | {name: value for name, value in found.items() if flags[name] is None}


def settled_mode(flags, opened):
    """Returns the flags with the mode in which the model was trained to write, if none is given.

    Where its objective says so, its segments and what it predicts are those of the objective too.
    """
    uses = uses_of(opened.task)
    mode = flags["mode"] or next((mode for mode in MODES if mode in uses), MODES[0])
    if mode not in uses:
        return {**flags, "mode": mode}
    return {
        **flags,
        "mode": mode,
        "segment_ids": flags["segment_ids"] or list(map(str, uses[mode].segment_ids)),
        "target_prediction": flags["target_prediction"] or uses[mode].target_prediction,
    }


def settled_form(flags, opened):
    """As `settled`, of the flags of `flags.define_form`."""
    if flags["truncate_source"] is None and flags["mode"] != "seq2seq":
        # What the folder says is of sources; what is nearest to a prompt's continuation stays.
        flags = {**flags, "truncate_source": "head"}
    return settled(flags, opened, FORM_DEFAULTS)


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
