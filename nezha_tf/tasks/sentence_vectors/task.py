"""The task of `run_sentence_vectors.py`."""

import numpy as np

from nezha_tf.data.compression import bare_name
from nezha_tf.data.lines import BadRows, filled_lines
from nezha_tf.data.rows import read_rows
from nezha_tf.tasks.classification import metrics
from nezha_tf.tasks.classification.data import pack, read_part
from nezha_tf.tasks.classification.data_sets import Columns, own_data
from nezha_tf.tasks.classification.labels import Number
from nezha_tf.tasks.finetuning.data_sets import Examples, require_different
from nezha_tf.tasks.finetuning.task import FineTuning
from nezha_tf.tasks.sentence_vectors.loss import ContrastiveLoss
from nezha_tf.text.packing import pack_all, text_packing
from nezha_tf.util import console
from nezha_tf.util.errors import UserError

_COLUMNS = ("text_column", "text_pair_column", "label_column")


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
        reads_pairs = settings.do_eval or settings.do_predict
        require_different(settings, *(_COLUMNS if reads_pairs else _COLUMNS[:2]))
        if reads_pairs:
            metrics.require_libraries()
        super().__init__(settings)
        # With a mixture of layers, training only moves different texts apart, without dropout.
        if settings.do_train and not settings.layer_mix:
            self.require_dropout("both vectors of a text are the same")

    def read(self, part):
        settings, paths = self.settings, self.paths_of(part)
        packing = text_packing(self.tokenizer.vocabulary, settings.max_seq_length, False)
        if part == "train":
            return self._texts(paths, packing)

        def pack_each(*sides):
            packed = [pack_all(packing, side) for side in sides]
            ids, segment_ids, num_cut = zip(*packed, strict=True)
            rows = (list(zip(*values, strict=True)) for values in (ids, segment_ids))
            return *rows, sum(num_cut)

        columns = Columns(*(getattr(settings, flag) for flag in _COLUMNS))
        found = read_part(own_data(columns), part, paths, settings.skip_bad_rows)
        examples, note = pack(found, self.reader.graph_tokenizer, pack_each, Number())
        self.notes.append(note)
        return examples

    def task_file_settings(self):
        return {"task": "sentence_vectors", "pooling": self.settings.pooling}

    def make_model(self, precision):
        model = super().make_model(precision)
        # Without the pooler's output in the loss, the pooler has no gradient.
        model.encoder.pooler.trainable = self.settings.pooling == "cls"
        return model

    def make_objective(self, label_smoothing):
        return ContrastiveLoss(self.settings.temperature, self.settings.pooling)

    def measure(self, part, outputs):
        similarity = np.stack(outputs["similarity"])
        labels = self.examples[part].labels[: len(similarity)]
        if None in labels:
            return {}
        found = metrics.regression(similarity, labels)
        return {name: found[name] for name in ("spearman", "pearson")}

    def write_predictions(self, outputs):
        examples = self.examples["predict"]
        self.write_entries(
            [
                {
                    "line": row.line,
                    "text": row.text,
                    "text_pair": row.text_pair,
                    "label": label,
                    "similarity": float(similarity),
                }
                for row, label, similarity in zip(
                    examples.rows, examples.labels, outputs["similarity"], strict=True
                )
            ]
        )

    def _texts(self, paths, packing):
        bad_rows = BadRows(self.settings.skip_bad_rows)
        placed = [found for path in paths for found in self._texts_of(path, bad_rows)]
        kept = []
        for (place, text), ids in zip(
            placed, self.reader.graph_tokenizer.ids_of([text for _, text in placed]), strict=True
        ):
            if len(ids):
                kept.append(ids)
            else:
                bad_rows.add(f"{place}: {text[:20]!r} has no tokens; delete the line")
        names = ", ".join(paths)
        if not kept:
            raise UserError(f"{names}: no text{bad_rows.note()}")
        if len(kept) == 1:
            raise UserError(
                f"{names}: a single text has no other one to differ from; add texts"
                f"{bad_rows.note()}"
            )
        ids, segment_ids, num_cut = pack_all(packing, kept)
        note = f"; too long, so truncated: {num_cut:,} texts" if num_cut else ""
        note = f"{names}: {console.plural(len(kept), 'text')}{note}{bad_rows.note()}"
        self.notes.append(note)
        return Examples([], {"input_ids": ids, "segment_ids": segment_ids}, [])

    def _texts_of(self, path, bad_rows):
        """Yields (file and line, text) for the texts of a file."""
        if bare_name(path).endswith(".txt"):
            for line in filled_lines(path, bad_rows):
                yield f"{path}, line {line.number}", line.text.strip()
            return
        columns = (self.settings.text_column, self.settings.text_pair_column)
        for row in read_rows(path, columns, columns[1:], (), bad_rows=bad_rows):
            yield from ((row.place, text) for text in row.values.values())
