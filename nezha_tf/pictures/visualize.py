"""Draws the picture that the flags of tools/visualize.py name."""

from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.checkpoints.kinds import form_of
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.pictures import attention_maps, attention_masks, fonts, relative_positions
from nezha_tf.pictures.settings import PICTURES
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.util.errors import UserError, require_flag
from nezha_tf.util.files import whole_file
from nezha_tf.util.settings import require_read


def visualize(settings):
    """Draws a picture as a PNG file; after an error there is no file.

    Args:
      settings: `VisualizeSettings`.

    Returns:
      Text to print: what was drawn, and where it is.

    Raises:
      UserError: matplotlib is not installed, or a mistake in the flags or in the model folder.
    """
    fonts.require_matplotlib()
    picture = require_flag(settings.picture, "picture")
    path = require_flag(settings.output_file, "output_file")
    if not path.endswith(".png"):
        raise UserError(f"--output_file={path} must end in .png; the picture is a PNG file")
    require_read(settings)
    figure, said = _DRAW[picture](settings)
    save(figure, path)
    return f"{picture} in {path}" + (f"; {said}" if said else "")


def save(figure, path):
    """Writes a figure as a PNG file; after an error there is no file."""
    with whole_file(path) as temporary:
        figure.savefig(temporary, dpi=100, format="png")


def _relative_positions(settings):
    """Returns (a matplotlib figure; a line for the user, or ""), as do the next two functions."""
    tables = relative_positions.functional_tables()
    if settings.model_folder:
        tables = relative_positions.tables_of(encoder_of(_open(settings).make_model()))
    return relative_positions.draw(tables), ""


def _attention_masks(settings):
    text = require_flag(settings.text, "text")
    if settings.model_folder:
        tokenizer = _open(settings).tokenizer
    else:
        vocab_file = settings.vocab_file
        if not vocab_file:
            raise UserError("--vocab_file or --model_folder is needed to cut the text into tokens")
        tokenizer = FullTokenizer(vocab_file, settings.do_lower_case is not False)
    return attention_masks.draw(tokenizer, text, settings.text_pair)


def _attention(settings):
    text = require_flag(settings.text, "text")
    folder = _open(settings)
    return attention_maps.draw(
        encoder_of(folder.make_model()),
        folder.tokenizer,
        text,
        settings.text_pair,
        settings.layers,
        settings.heads,
        settings.objective or objective_of(folder),
    )


_DRAW = dict(zip(PICTURES, (_relative_positions, _attention_masks, _attention), strict=True))


def objective_of(folder):
    """Returns the name of the objective in whose form the model of a `ModelFolder` reads text."""
    objectives = folder.task.get("objectives")
    if objectives is None:
        return form_of(folder.task["task"])
    return ObjectiveMixture.from_text(objectives, "objectives").first


def _open(settings):
    """Returns the `ModelFolder` of --model_folder."""
    path = require_flag(settings.model_folder, "model_folder")
    return open_folder(path, do_lower_case=settings.do_lower_case)


def encoder_of(model):
    """Returns the `NezhaEncoder` of a model; the model itself, if it is one."""
    return getattr(model, "encoder", model)
