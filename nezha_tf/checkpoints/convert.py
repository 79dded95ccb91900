"""Converts a model from one layout to another: reads, checks, writes and compares it."""

import dataclasses
import os

from nezha_tf.checkpoints import (
    card_head,
    comparison,
    hugging_face,
    layouts,
    run_folder,
    sentence_transformers,
)
from nezha_tf.checkpoints.conversion_weights import (
    read_weights,
    rounded,
    with_layers,
    with_segments,
)
from nezha_tf.checkpoints.folder import ModelFolder
from nezha_tf.checkpoints.kinds import task_of
from nezha_tf.checkpoints.new_vocabulary import with_vocabulary
from nezha_tf.checkpoints.run_folder import VOCAB_FILE
from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.util import console, files, storage
from nezha_tf.util.errors import UserError, require_flag
from nezha_tf.util.language import translated

# By format: what opens the new folder, by the hubs' name, and what computes it.
_READERS = {
    "tf1": (None, "tensorflow"),
    layouts.OURS: ("nezha_tf", "tensorflow"),
    layouts.HUGGING_FACE: ("transformers", "pytorch"),
}


class SourceModel(ModelFolder):
    """The model to convert.

    Its `task` is None if neither a `task.json` nor the class of transformers that a config.json
    names says that the model belongs to a task.

    Attributes:
      of_vectors: the settings of a model whose use is vectors of texts, a dict with "pooling"; or
        None.
    """

    def __init__(self, path, do_lower_case=None, config_file=None, vocab_file=None):
        super().__init__(path, do_lower_case, config_file, vocab_file)
        if self.vocab_file is None:
            self.notes.append(
                f"no {os.path.join(self.path, VOCAB_FILE)}: the new folder has no vocabulary; to "
                "have one, pass --vocab_file"
            )
        self.tokens = self.vocabulary.tokens if self.vocab_file else []
        self.notes += self.reading_warnings()
        self.of_vectors = self.task if "pooling" in self.task else None
        is_known = self.has_task_file or self.architecture
        if is_known and self.task["task"] is not None:
            self.task = {**self.task, "do_lower_case": self.do_lower_case}
        else:
            self.task = None

    def write_with(self, vocabulary):
        """Takes another `Vocabulary` for the files that are written."""
        self.vocabulary, self.tokens = vocabulary, vocabulary.tokens

    @property
    def is_hugging_face(self):
        """Whether the weights have Hugging Face's layout."""
        return isinstance(self.reader, hugging_face.HuggingFaceReader)


def convert_checkpoint(settings):
    """Converts a model as `ConversionSettings` say, or writes nothing.

    Returns:
      A report as text: what was converted, what was left out, and the largest differences.
    """
    target = require_flag(settings.to, "to")
    # Of gs://bucket this would make a folder gs: here; a remote one is refused below.
    target = target if storage.is_remote(target) else os.path.normpath(target)
    if os.path.lexists(target):
        raise UserError(f"--to={target} exists already; name a new folder")
    with console.progress(total=3, bar_format="{desc} ({n}/{total}, {elapsed})") as steps:
        return _convert(settings, target, steps)


def _convert(settings, target, steps):
    steps.set_description(translated("reading"))
    source = SourceModel(
        require_flag(settings.source, "from"),
        settings.do_lower_case,
        settings.config_file,
        settings.vocab_file,
    )
    weights = read_weights(
        source,
        averages=settings.averages or bool(source.task and source.task["uses_averages"]),
        drop=settings.drop,
        allow_missing=settings.allow_missing,
    )
    changed, config, changes = _changed(source, weights, settings)
    before = rounded(changed, settings.dtype)
    after, segments = with_segments(before, config, settings.type_vocab_size)
    if segments:
        changes["segment rows"] = segments
        config = dataclasses.replace(config, type_vocab_size=settings.type_vocab_size)
    layouts.check_format(settings.format, after, config, settings.dtype)
    report = _report(source, weights, settings, changes)
    try:
        with files.whole_folder(target) as folder:
            steps.update()
            steps.set_description(translated("writing"))
            written = layouts.write(folder, settings.format, source, after, config)
            steps.update()
            steps.set_description(translated("comparing"))
            text = f"{report}\n{comparison.compare(source, before, config, written)}"
            card = _card(source, weights, folder, settings, text)
            files.write_text(os.path.join(folder, card_head.FILE_NAME), card)
            steps.update()
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}") from error
    return text


def _changed(source, weights, settings):
    """Returns (`Weights` and `NezhaConfig` with the layers and tokens asked for, {what: how})."""
    config, changes = source.config, {}
    weights, layers = with_layers(weights, config, settings.num_hidden_layers)
    if layers:
        changes["layers"] = layers
        config = dataclasses.replace(config, num_hidden_layers=settings.num_hidden_layers)
    if settings.new_vocab_file:
        new = Vocabulary.from_file(settings.new_vocab_file)
        old, case = source.vocabulary, source.do_lower_case
        weights, changes["tokens"] = with_vocabulary(weights, old, new, case)
        config = dataclasses.replace(config, vocab_size=len(new))
        source.write_with(new)
    return weights, config, changes


def _card(source, weights, folder, settings, report):
    """Returns the card of the new folder; its head has what the original's card says."""
    library, framework = _READERS[settings.format]
    if os.path.exists(os.path.join(folder, sentence_transformers.MODULES_FILE)):
        library = sentence_transformers.LIBRARY
    task = run_folder.read_task(folder)
    head = card_head.text_of(
        library=library,
        framework=framework,
        tag=_pipeline_tag(source, weights, task),
        tags=card_head.tags_of(source.config),
        base=card_head.base_of(settings.source),
    )
    # Results are those of the task's model.
    keys = (*card_head.OF_MODEL, *card_head.OF_RESULTS) if task else card_head.OF_MODEL
    name, made = files.folder_name(settings.to), "Made by `convert_checkpoint` of nezha_tf."
    text = f"{head}# {name}\n\n{made}\n\n```\n{report}\n```\n"
    return card_head.completed(text, source.path, keys)


def _pipeline_tag(source, weights, task):
    """Returns what the new model does, by its `task.json` or, without one, by its weights."""
    if task:
        return card_head.pipeline_tag(task)
    if source.of_vectors:
        return sentence_transformers.PIPELINE_TAG
    if "masked_lm_logits" in weights.kind.outputs:
        return card_head.pipeline_tag({"task": None})
    name = task_of(weights.kind)
    return (name and TASKS[name].pipeline_tag) or card_head.VECTORS


def _report(source, weights, settings, changes):
    parameters = sum(value.size for value in weights.values.values())
    rows = [
        ("model", f"{source.config.position_encoding}, {weights.kind.name.replace('_', ' ')}"),
        ("weights", f"{len(weights.values)} of {parameters:,} numbers, {settings.dtype}"),
    ]
    rows += changes.items()
    for what, names in weights.left_out:
        # There are so many of these that their number is enough.
        are_many = what in ("optimizer slots", "moving averages", "ELECTRA's other model")
        listed = "" if are_many else f": {', '.join(names)}"
        rows.append((f"left out, {what}", f"{len(names)}{listed}"))
    if weights.missing:
        rows.append(("missing", f"{len(weights.missing)}: {', '.join(weights.missing)}"))
    title = f"{source.checkpoint} to {settings.to} ({settings.format})"
    return "\n".join([console.facts(title, rows), *source.notes])
