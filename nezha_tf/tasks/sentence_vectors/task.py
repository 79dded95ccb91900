"""The task of `run_sentence_vectors.py`."""

import numpy as np

from nezha_tf.data.bad_rows import BadRows
from nezha_tf.data.compression import bare_name
from nezha_tf.data.lines import filled_lines
from nezha_tf.data.rows import read_rows
from nezha_tf.modeling.sentence_vectors import NezhaForSentenceVectors
from nezha_tf.tasks.classification import metrics
from nezha_tf.tasks.classification.labels import Number
from nezha_tf.tasks.finetuning.data_sets import Examples
from nezha_tf.tasks.finetuning.task import FineTuning
from nezha_tf.tasks.sentence_vectors.loss import ContrastiveLoss
from nezha_tf.text.packing import TextPacking
from nezha_tf.util import console
from nezha_tf.util.errors import UserError

_PLAIN = ".txt"


class SentenceVectors(FineTuning):
    """Contrastive fine-tuning, with `SentenceVectorSettings`; evaluated on labelled pairs."""

    least_compared = 2

    def __init__(self, settings):
        if not settings.temperature:
            raise UserError("--temperature must be above 0")
        if settings.label_smoothing:
            raise UserError(
                f"--label_smoothing={settings.label_smoothing:g} needs classes, but texts are "
                "compared with one another here; leave it out"
            )
        if settings.text_column == settings.text_pair_column:
            raise UserError(
                f"--text_column and --text_pair_column are both {settings.text_column}; name "
                "another one"
            )
        if settings.do_eval or settings.do_predict:
            metrics.require_libraries()
        super().__init__(settings)
        # With a mixture of layers, training only moves different texts apart, without dropout.
        if settings.do_train and not settings.layer_mix:
            self.require_dropout("both vectors of a text are the same")

    def read(self, part):
        """Returns the `Examples` of a part: texts of "train", pairs of the others."""
        paths = self.paths_of(part)
        bad_rows = BadRows(self.settings.skip_bad_rows)
        packing = TextPacking(self.tokenizer.vocabulary, self.settings.max_seq_length, False)
        if part == "train":
            examples = self._texts(paths, packing, bad_rows)
        else:
            examples = self._pairs(paths, packing, bad_rows, part == "predict")
        count = len(examples.arrays["input_ids"])
        if not count:
            raise UserError(f"{', '.join(paths)}: no text{bad_rows.note()}")
        if part == "train" and count == 1:
            raise UserError(
                f"{', '.join(paths)}: a single text has no other one to differ from; add texts"
                f"{bad_rows.note()}"
            )
        told = console.plural(count, "text" if part == "train" else "pair")
        cut = packing.num_truncated
        told += f"; too long, so truncated: {cut:,} texts" if cut else ""
        self.notes.append(f"{', '.join(paths)}: {told}{bad_rows.note()}")
        return examples

    def task_file_settings(self):
        return {"task": "sentence_vectors", "pooling": self.settings.pooling}

    def make_model(self, precision):
        length, layer_mix = self.settings.max_seq_length, self.settings.layer_mix
        model = NezhaForSentenceVectors(self.config, length, layer_mix, dtype=precision)
        # Without the pooler's output in the loss, the pooler has no gradient.
        model.encoder.pooler.trainable = self.settings.pooling == "cls"
        return model

    def make_objective(self, label_smoothing):
        return ContrastiveLoss(self.settings.temperature, self.settings.pooling)

    def measure(self, outputs):
        return _correlations(outputs, self.examples["eval"].labels)

    def report(self, outputs):
        return []

    def write_predictions(self, outputs):
        examples, settings = self.examples["predict"], self.settings
        names = (settings.text_column, settings.text_pair_column)
        entries = [
            {
                "line": row.line,
                "text": row.values[names[0]],
                "text_pair": row.values[names[1]],
                "label": label,
                "similarity": float(similarity),
            }
            for row, label, similarity in zip(
                examples.rows, examples.labels, outputs["similarity"], strict=True
            )
        ]
        self.write_entries(entries)
        if None in examples.labels:
            return {}
        return _correlations(outputs, examples.labels)

    def _texts(self, paths, packing, bad_rows):
        placed = [found for path in paths for found in self._texts_of(path, bad_rows)]
        ids_of_all = self.graph_tokenizer.ids_of([text for _, text in placed])
        packed = []
        for (place, text), ids in zip(placed, ids_of_all, strict=True):
            if len(ids):
                packed.append(packing(ids))
            else:
                bad_rows.add(f"{place}: {text[:20]!r} has no tokens; delete the line")
        return Examples([], _arrays(packed), [])

    def _texts_of(self, path, bad_rows):
        """Yields (file and line, text) for the texts of a file."""
        if bare_name(path).endswith(_PLAIN):
            for line in filled_lines(path, bad_rows):
                yield f"{path}, line {line.number}", line.text.strip()
            return
        columns = (self.settings.text_column, self.settings.text_pair_column)
        for row in read_rows(path, columns, columns[1:], (), bad_rows=bad_rows):
            yield from ((row.place, text) for text in row.values.values())

    def _pairs(self, paths, packing, bad_rows, may_lack_label):
        settings = self.settings
        label = settings.label_column
        columns = (settings.text_column, settings.text_pair_column, label)
        optional = (label,) if may_lack_label else ()
        found = [
            row
            for path in paths
            for row in read_rows(path, columns, optional, (), (label,), bad_rows)
        ]
        sides = [
            self.graph_tokenizer.ids_of([row.values[column] for row in found])
            for column in columns[:2]
        ]
        rows, labels, packed = [], [], []
        for row, *pair in zip(found, *sides, strict=True):
            if not all(map(len, pair)):
                bad_rows.add(f"{row.place}: a text has no tokens; write a text")
                continue
            try:
                labels.append(Number().encode(row.values[label]) if label in row.values else None)
            except ValueError as error:
                bad_rows.add(f"{row.place}: {error}")
                continue
            rows.append(row)
            packed.append([packing(ids) for ids in pair])
        return Examples(rows, _arrays_of_pairs(packed), labels)


def _correlations(outputs, labels):
    """Returns the correlations of the first pairs' similarities with their labels, a dict."""
    similarity = np.stack(outputs["similarity"])
    found = metrics.regression(similarity, labels[: len(similarity)])
    return {name: found[name] for name in ("spearman", "pearson")}


def _arrays(packed):
    return {name: [row[i] for row in packed] for i, name in enumerate(("input_ids", "segment_ids"))}


def _arrays_of_pairs(packed):
    names = ("input_ids", "segment_ids")
    return {name: [[side[i] for side in row] for row in packed] for i, name in enumerate(names)}
