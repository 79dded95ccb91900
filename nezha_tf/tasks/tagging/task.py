"""The task of `run_ner.py`: named entities."""

import collections

from nezha_tf.data import brat
from nezha_tf.data.entity_files import read_entity_file
from nezha_tf.data.entity_tags import SCHEMES, TagSet
from nezha_tf.data.lines import BadRows
from nezha_tf.tasks.finetuning.task import FineTuning, labels_of_run
from nezha_tf.tasks.tagging import metrics
from nezha_tf.tasks.tagging.data import (
    SPECIAL_TOKENS,
    WindowedSentences,
    write_exports,
    write_predictions,
)
from nezha_tf.tasks.tagging.loss import CrfTaggingLoss, TaggingLoss
from nezha_tf.util import console, files, storage
from nezha_tf.util.errors import UserError, require_flag

REPORT_FILE = "ner_report.tsv"
EXPORTS = "predictions"


class NamedEntities(FineTuning):
    """Fine-tuning on sentences with entities, with `TaggingSettings`."""

    def __init__(self, settings):
        self._stride = _stride_of(settings)
        if settings.crf and settings.label_smoothing:
            raise UserError("--label_smoothing does not work with --crf; leave one of them out")
        if settings.do_eval:
            metrics.require_library()
        self._tag_set, self._files = None, {}
        self.rate_factors = {"/crf/": settings.crf_learning_rate_factor}
        super().__init__(settings)

    def read(self, part):
        """Returns the `WindowedSentences` of a part."""
        bad_rows = BadRows(self.settings.skip_bad_rows)
        patterns = getattr(self.settings, f"{part}_file")
        names = _input_files(patterns, f"{part}_file")
        if self._tag_set is None and part != "train":
            self._tag_set = self._tags_of_folder()
        # The labels of training are those of its files.
        labels = None if part == "train" else self._tag_set.labels
        entity_files = {
            name: read_entity_file(name, part != "predict", labels, bad_rows) for name in names
        }
        sentences = [sentence for file in entity_files.values() for sentence in file.sentences]
        if part == "train":
            self._tag_set = self._tags_of_training(entity_files, bad_rows)
        if not sentences:
            raise UserError(f"--{part}_file={patterns} has no valid sentence{bad_rows.note()}")
        self._files[part] = entity_files
        length = self.settings.max_seq_length
        examples = WindowedSentences(sentences, self.reader, self._tag_set, length, self._stride)
        self.notes += _notes(patterns, entity_files.values(), examples, bad_rows)
        return examples

    def task_file_settings(self):
        return {
            "task": "tagging",
            "labels": self._tag_set.tags,
            "scheme": self._tag_set.scheme,
            "crf": self.settings.crf,
            "window_stride": self._stride,
        }

    @property
    def num_labels(self):
        return len(self._tag_set)

    def make_objective(self, label_smoothing):
        return CrfTaggingLoss() if self.settings.crf else TaggingLoss(label_smoothing)

    def measure(self, part, outputs):
        if any(sentence.entities is None for sentence in self.examples[part].sentences):
            return {}
        scores = self._scores(part, outputs)[metrics.ALL]
        return {name: getattr(scores, name) for name in metrics.NAMES}

    def report(self, outputs):
        scores = self._scores("eval", outputs)
        rows = [
            [label, *(f"{value:.4f}" for value in row[:-1]), str(row.support)]
            for label, row in scores.items()
        ]
        rows.insert(0, ["label", *metrics.Scores._fields])
        text = "".join("\t".join(row) + "\n" for row in rows)
        files.write_text(self.path(REPORT_FILE), text)
        shown = [(row[0], "".join(f"{value:>10}" for value in row[1:])) for row in rows]
        return console.table("entities, by label", shown).splitlines()

    def write_predictions(self, outputs):
        examples = self.examples["predict"]
        path = self.path(f"predictions.{self.settings.predictions_format}")
        found, entity_files = examples.entities(outputs), self._files["predict"]
        lines, characters = [], []
        for file in entity_files.values():
            lines += file.lines
            characters += file.characters or [sentence.text for sentence in file.sentences]
        write_predictions(path, lines, characters, found, self._tag_set.scheme)
        write_exports(self.path(EXPORTS), entity_files, found)

    def _scores(self, part, outputs):
        examples = self.examples[part]
        found = [[f.entity for f in entities] for entities in examples.entities(outputs)]
        return metrics.measure(examples.sentences[: len(found)], found)

    def _tags_of_folder(self):
        path, tags = labels_of_run(self.settings.output_dir, "tagging")
        if not tags:
            raise UserError(f"the tags are unknown: there is no {path}; train first")
        tag_set, scheme = TagSet.checked(tags, path), self.settings.scheme
        if scheme not in ("auto", tag_set.scheme):
            raise UserError(
                f"--scheme={scheme}: the tags of the run in {path} are {tag_set.scheme}; leave "
                "--scheme out"
            )
        return tag_set

    def _tags_of_training(self, entity_files, bad_rows):
        sentences = [sentence for file in entity_files.values() for sentence in file.sentences]
        labels = {entity.label for sentence in sentences for entity in sentence.entities}
        if not labels:
            raise UserError(
                f"--train_file={self.settings.train_file} has no entities{bad_rows.note()}"
            )
        scheme = self.settings.scheme
        if scheme == "auto":
            # A file of JSON has no tags.
            schemes = (file.scheme or "BIO" for file in entity_files.values())
            scheme = max(schemes, key=list(SCHEMES).index)
        tag_set = TagSet.of_labels(labels, scheme)
        path, stored = labels_of_run(self.settings.output_dir, "tagging")
        if stored and stored != tag_set.tags:
            raise UserError(
                f"the tags of --train_file are {' '.join(tag_set.tags)}, but those of the run in "
                f"{path} are {' '.join(stored)}; pass another --output_dir, or the data and "
                "--scheme of that run"
            )
        return tag_set


def _input_files(patterns, flag):
    """Returns the files of a flag; a folder stands for brat's annotations in it."""
    names = files.expand(require_flag(patterns, flag), flag, True, brat.ENDING)
    texts = {brat.text_path(name) for name in names if name.endswith(brat.ENDING)}
    names = [name for name in names if name not in texts]
    # A text without entities has an empty file of annotations.
    sizes = storage.sizes([name for name in names if not name.endswith(brat.ENDING)])
    files.require_content(sizes, flag)
    return names


def _stride_of(settings):
    """Returns --window_stride, or half the length of a window."""
    size = settings.max_seq_length - SPECIAL_TOKENS
    stride = settings.window_stride or max(1, size // 2)
    if stride > size:
        raise UserError(
            f"--window_stride={stride} leaves gaps between windows of {size} tokens "
            f"(--max_seq_length={settings.max_seq_length} counts [CLS] and [SEP])"
        )
    return stride


def _notes(name, entity_files, examples, bad_rows):
    """Returns lines on the files' contents, and on entities that cannot be used as they are."""
    sentences = examples.sentences
    counts = collections.Counter(e.label for s in sentences for e in s.entities or ())
    by_label = ", ".join(f"{label} {number:,}" for label, number in sorted(counts.items()))
    line = f"{name}: {console.plural(len(sentences), 'sentence')}" + (
        f" with {counts.total():,} entities ({by_label})" if counts else ""
    )
    line += f"; {examples.num_cut:,} in several windows" if examples.num_cut else ""
    lines = [line + bad_rows.note()]
    mended = sum(file.mended for file in entity_files)
    if mended:
        lines.append(
            f"{name}: {mended:,} entities break the rules of their scheme (I- without B-); they "
            "are read as in conlleval"
        )
    left_out = sum((file.notes for file in entity_files), collections.Counter())
    lines += [f"{name}: {what}: {count:,}" for what, count in sorted(left_out.items())]
    for what, faults in (
        ("begin or end inside a token, so the model learns the whole token", examples.moved),
        ("have no token of their own, so they cannot be found", examples.lost),
    ):
        if faults:
            sentence, entity = faults[0]
            example = f"{entity.label} {sentence.text[entity.start : entity.end]!r}"
            lines.append(f"{name}: {len(faults):,} entities {what} (for example {example})")
    return lines
