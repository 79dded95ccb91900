"""From the flags of tools/visualize.py to a picture."""

from nezha_tf.errors import UserError, require_flag
from nezha_tf.files import whole_file
from nezha_tf.model_folder.folder import open_folder
from nezha_tf.model_folder.kinds import form_of
from nezha_tf.pictures import PICTURES, attention_maps, attention_masks, fonts, relative_positions
from nezha_tf.pretraining_objectives.mixture import ObjectiveMixture
from nezha_tf.text.tokenization import FullTokenizer


def visualize(flags):
    """Draws a picture as PNG; it appears whole or not at all.

    Args:
      flags: dict of the flags of tools/visualize.py.

    Returns:
      What to print.

    Raises:
      UserError: matplotlib is missing, or a mistake in the flags or in the model's folder.
    """
    fonts.require_matplotlib()
    picture = require_flag(flags["picture"], "picture")
    path = require_flag(flags["output_file"], "output_file")
    if not path.endswith(".png"):
        raise UserError(f"--output_file={path}: pictures are drawn as PNG, so name it {path}.png")
    figure, said = _DRAW[picture](flags)
    save(figure, path)
    return f"{picture} in {path}" + (f"; {said}" if said else "")


def save(figure, path):
    """Writes a figure as PNG; it appears whole or not at all."""
    with whole_file(path) as temporary:
        figure.savefig(temporary, dpi=100, format="png")


def _relative_positions(flags):
    if not flags["model_folder"]:
        return relative_positions.draw(relative_positions.functional_tables()), ""
    return relative_positions.draw(
        relative_positions.tables_of(encoder_of(_open(flags).make_model()))
    ), ""


def _attention_masks(flags):
    text = require_flag(flags["text"], "text")
    if flags["model_folder"]:
        tokenizer = _open(flags).tokenizer
    else:
        vocab_file = flags["vocab_file"]
        if not vocab_file:
            raise UserError("--vocab_file or --model_folder is needed, to cut the text into pieces")
        tokenizer = FullTokenizer(vocab_file, flags["do_lower_case"] is not False)
    return attention_masks.draw(tokenizer, text, flags["text_pair"])


def _attention(flags):
    text = require_flag(flags["text"], "text")
    folder = _open(flags)
    return attention_maps.draw(
        encoder_of(folder.make_model()),
        folder.tokenizer,
        text,
        flags["text_pair"],
        flags["layers"],
        flags["heads"],
        flags["objective"] or objective_of(folder),
    )


_DRAW = dict(zip(PICTURES, (_relative_positions, _attention_masks, _attention), strict=True))


def objective_of(folder):
    """Returns which objective's form a sentence gets in a `ModelFolder`: one it was trained for."""
    objectives = folder.task.get("objectives")
    if objectives is None:
        return form_of(folder.task["task"])
    return ObjectiveMixture.from_text(objectives, "objectives").first


def _open(flags):
    path = require_flag(flags["model_folder"], "model_folder")
    return open_folder(path, do_lower_case=flags["do_lower_case"])


def encoder_of(model):
    """Returns the `NezhaEncoder` of any model, or itself."""
    return getattr(model, "encoder", model)
