"""How pretrained models write texts: their input, its format, and the search."""

from typing import NamedTuple

from nezha_tf.generation.options import GenerationOptions
from nezha_tf.generation.target_format import TargetFormat
from nezha_tf.objectives.uses import uses_of
from nezha_tf.tasks.seq2seq.packing import Side
from nezha_tf.util.errors import UserError

# Most tokens to write; at most half of an example's length.
MAX_LENGTH = 64
# The assumed length of examples if the folder does not contain it.
MAX_SEQ_LENGTH = 512
# Beam search finds the most probable targets of a source. Continuations of a prompt are sampled,
# because the most probable ones repeat themselves (Holtzman et al., arXiv 1904.09751 §3).
SEARCHES = {
    "seq2seq": {"method": "beam", "length_penalty": 0.7, "min_length": 2},
    "left_to_right": {"method": "sample", "top_p": 0.9},
}


class Form(NamedTuple):
    """How a model writes.

    Attributes:
      side: the `Side` of its input: [CLS] source [SEP], or [CLS] prompt.
      target_format: `TargetFormat`.
      options: `GenerationOptions`.
    """

    side: Side
    target_format: TargetFormat
    options: GenerationOptions


def form_of(folder, ability, num_return_sequences=1):
    """Returns the `Form` in which the model of a pretraining run writes.

    Args:
      folder: its `ModelFolder`.
      ability: a key of `SEARCHES`.
      num_return_sequences: number of texts for each source or prompt.

    Raises:
      UserError: the model was not trained for this ability.
    """
    uses = uses_of(folder.task)
    if ability not in uses:
        raise UserError(
            f"the model in {folder.path} was not trained for {ability}; it serves as "
            f"{', '.join([*uses, 'features'])}"
        )
    use, longest = uses[ability], folder.task.get("max_seq_length") or MAX_SEQ_LENGTH
    max_length = max(1, min(MAX_LENGTH, longest // 2))
    target_format = TargetFormat(
        mode=ability, target_prediction=use.target_prediction, segment_ids=use.segment_ids
    )
    search = SEARCHES[ability]
    options = GenerationOptions(
        max_length=max_length,
        num_return_sequences=num_return_sequences,
        **{**search, "min_length": min(search.get("min_length", 1), max_length)},
    )
    is_source = ability == "seq2seq"
    side = Side(
        "source" if is_source else "prompt",
        2 if is_source else 1,
        longest - max_length,
        "tail" if is_source else "head",
    )
    side.check()
    return Form(side, target_format, options)
