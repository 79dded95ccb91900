"""Opens a model: a run's folder, a published one, or a checkpoint with the files beside it."""

import functools
import os
import sys

import keras

from nezha_tf.checkpoints import loading, published, run_folder, sentence_transformers
from nezha_tf.checkpoints.kinds import (
    ENCODER,
    POOLER,
    kind_of_architecture,
    kind_of_settings,
    listed,
)
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.checkpoints.places import locate
from nezha_tf.checkpoints.task_table import DISCRIMINATOR, MASKED_LM, PRETRAINING
from nezha_tf.resources import model_path
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.vocabulary import Vocabulary, check_vocabulary
from nezha_tf.util import console, storage
from nezha_tf.util.errors import UserError
from nezha_tf.util.files import read_object


def load(folder: str | os.PathLike[str]) -> tuple[FullTokenizer, keras.Model]:
    """Returns (`FullTokenizer`, Keras model with its weights) of a path; see `open_folder`."""
    opened = open_folder(folder)
    return opened.tokenizer, opened.make_model()


def open_folder(
    path: str | os.PathLike[str],
    do_lower_case: bool | None = None,
    config_file: str | os.PathLike[str] | None = None,
    vocab_file: str | os.PathLike[str] | None = None,
) -> "ModelFolder":
    """Opens a model; the weights are not loaded yet.

    Lines on stderr say what was assumed of a configuration that lacks keys.

    Args:
      path: the --output_dir of a run; that of several runs, which means the best of them; the
        folder of a published model: `bert_config.json` (or `albert_config.json`, or Hugging
        Face's `config.json`), weights and `vocab.txt`; "mini", the model of the package; the name
        of a model of a hub, such as "hf:OWNER/NAME"; or a checkpoint with these files beside it.
      do_lower_case, config_file, vocab_file: replace what is in the folder; None: the folder
        decides.

    Returns:
      `ModelFolder`.

    Raises:
      UserError: the folder does not exist, has no model, or a file in it is damaged.
    """
    path = model_path(path)
    if not storage.exists(path) and not storage.exists(f"{path}.index"):
        raise UserError(f"no model in {path}: it is not there; check the path")
    opened = ModelFolder(path, do_lower_case, config_file, vocab_file)
    for line in opened.notes:
        console.tell(line, file=sys.stderr)
    return opened


class ModelFolder:
    """A model and everything that belongs to it.

    Attributes:
      path: the folder.
      checkpoint: the path of its weights.
      config, config_file: `NezhaConfig`, and the path of its file.
      vocab_file: the path of the vocabulary, or None.
      task: dict, the contents of `task.json` (see `task_table.TASKS`). Without such a file, the
        result of `published.settings_of`: {"task": None} for a model without a task's head.
      has_task_file: whether there is a `task.json`.
      stated_case: `do_lower_case`, as the caller or a file says; None: nobody says it.
      do_lower_case: whether texts are lower-cased: the same, or True.
      architecture: the class of transformers that `config.json` names, or "".
      notes: list of lines that tell the user what was assumed of the configuration, and what of
        sentence-transformers' files is not computed here.
    """

    def __init__(self, path, do_lower_case=None, config_file=None, vocab_file=None):
        """Arguments and errors are those of `open_folder`."""
        self.path, self.checkpoint = locate(path)
        self.config_file = config_file or published.config_file_in(self.path, self.checkpoint)
        self.config, self.notes = published.read_config(self.config_file, self.checkpoint)
        self.vocab_file = vocab_file or run_folder.vocabulary_in(self.path)
        stored = run_folder.read_task(self.path)
        self.has_task_file = stored is not None
        case = published.do_lower_case(self.path) if do_lower_case is None else do_lower_case
        self.stated_case, self.do_lower_case = case, case is not False
        # Of another configuration, only that of Hugging Face names the class of the model.
        named_by = config_file or os.path.join(self.path, published.CONFIG_FILE)
        self.architecture = published.architecture_of(read_object(named_by) or {})
        self.task = stored or published.settings_of(
            self.path, self.config, self.checkpoint, config_file
        )
        if not self.has_task_file:
            self.notes += sentence_transformers.notes(self.path)

    @functools.cached_property
    def kind(self):
        """The `Kind` of the model by its task, or else by Hugging Face's config.json; or None."""
        if self.task and self.task["task"]:
            return kind_of_settings(self.task, self.config)
        return kind_of_architecture(self.architecture)

    @functools.cached_property
    def reader(self):
        """The reader of the weights by TF1 name, see `loading.open_checkpoint`."""
        return self._reader_of(kind_of_architecture(self.architecture))

    def _reader_of(self, kind):
        heads = kind.prefixes if kind else ()
        return loading.open_checkpoint(self.checkpoint, self.config, heads)[1]

    @functools.cached_property
    def vocabulary(self):
        """The `Vocabulary`; `UserError`: there is none, or one of another model."""
        if self.vocab_file is None:
            raise UserError(
                f"no {run_folder.VOCAB_FILE} in {self.path}; copy the vocabulary of the model's "
                "training there, or pass --vocab_file"
            )
        vocabulary = Vocabulary.from_file(self.vocab_file)
        try:
            check_vocabulary(self.config, vocabulary)
        except UserError as error:
            raise UserError(f"{self.vocab_file}: {error}") from error
        return vocabulary

    @functools.cached_property
    def tokenizer(self):
        """The `FullTokenizer`; lines on stderr say how it may differ from that of training."""
        tokenizer = FullTokenizer(None, self.do_lower_case, self.vocabulary)
        for line in self.reading_warnings():
            console.tell(line, file=sys.stderr)
        return tokenizer

    def reading_warnings(self):
        """Returns what `published.reading_warnings` says of this model."""
        case, is_stated = self.do_lower_case, self.stated_case is not None
        return published.reading_warnings(self.path, self.vocab_file, case, is_stated)

    def make_model(self):
        """Returns the task's Keras model, with the weights or with their moving averages.

        Without a task, the heads in the checkpoint decide: `NezhaForPreTraining`,
        `NezhaDiscriminator`, `NezhaForMaskedLM` or `NezhaEncoder`. A pooler that no head reads
        stays random if the checkpoint lacks it. A line on stderr names weights that are not in
        this model, such as those of another head. Weights of another model are a `UserError`.
        """
        if self.task["task"] is None:
            model, reads_pooler = self._model_of_names(), False
        else:
            # A regression model has no labels and one output.
            num_labels = max(1, len(self.task.get("labels", ())))
            length, layer_mix = self.task["max_seq_length"], self.task.get("layer_mix", False)
            model = self.kind.model(self.config, num_labels, length, layer_mix)
            reads_pooler = self.kind.reads_pooler
        report = self.load_into(model, () if reads_pooler else (POOLER,))
        if report.unused:
            theirs = f", a {self.architecture}," if self.architecture else ""
            console.tell(
                f"warning: {self.checkpoint}{theirs} is opened as {type(model).__name__}; there, "
                f"but not in this model: {listed(report.unused)}",
                file=sys.stderr,
            )
        return model

    def load_into(self, model, may_be_missing=()):
        """Loads the weights, or their moving averages, into a model as `loading.load` does."""
        averages = self.task.get("uses_averages", False)
        return loading.load(model, self.checkpoint, may_be_missing, averages=averages)

    def _model_of_names(self):
        """Returns the largest model with all heads; of ELECTRA's two, that of `config.json`."""
        named = kind_of_architecture(self.architecture)
        of_one_head = sorted((DISCRIMINATOR, MASKED_LM), key=lambda kind: kind is not named)
        for kind in (PRETRAINING, *of_one_head):
            names = set(self._reader_of(kind).get_variable_to_shape_map())
            model = kind.model(self.config)
            if {name for name in tf1_names(model) if name.startswith(kind.prefixes)} <= names:
                return model
        return ENCODER.model(self.config)
