"""Predictors that run the model of a folder, one for each of its abilities."""

from nezha_tf.checkpoints.task_table import TASKS, part
from nezha_tf.export.fill_mask import TOP_K
from nezha_tf.generation.fill import BlankFiller
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.objectives.uses import uses_of
from nezha_tf.pictures import attention_maps
from nezha_tf.pictures.visualize import encoder_of, objective_of
from nezha_tf.tasks.pretraining.predictor import writers_of


class AttentionPainter:
    """Draws the attention for a sentence or a pair: gives (matplotlib figure, a line or "")."""

    def __init__(self, folder, model):
        """Args:
        folder: `ModelFolder`.
        model: as returned by `folder.make_model`.
        """
        self._encoder, self._tokenizer = encoder_of(model), folder.tokenizer
        self._objective = objective_of(folder)
        config = folder.config
        self.num_layers, self.num_heads = config.num_hidden_layers, config.num_attention_heads

    def __call__(self, text, text_pair, layers, heads):
        """Arguments and errors as for `attention_maps.draw`."""
        return attention_maps.draw(
            self._encoder, self._tokenizer, text, text_pair, layers, heads, self._objective
        )


def predictors_of(folder):
    """Returns dict of ability to predictor, for all abilities of a `ModelFolder`.

    Raises:
      UserError: as for `ModelFolder.make_model`.
    """
    model, row = folder.make_model(), TASKS.get(folder.task["task"])
    own = part(row.predictor)(folder, model) if row and row.predictor else None
    found = {own.ability: own} if own else {}
    if own is None and isinstance(model, NezhaForMaskedLM):
        found |= writers_of(folder, model)
        if "fill_mask" in uses_of(folder.task):
            found["fill_mask"] = BlankFiller(model, folder.tokenizer, TOP_K)
    return {**found, "attention": AttentionPainter(folder, model)}
