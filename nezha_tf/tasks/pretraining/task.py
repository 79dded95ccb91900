"""Pretraining as a task: masked LM, next-sentence prediction, UniLM's mixture."""

import numpy as np

from nezha_tf.data.corruption.dynamic_masking import DynamicMasking
from nezha_tf.data.corruption.objective_mixture import ObjectiveMixture
from nezha_tf.data.corruption.policies import DEFAULT_MASKED_LM_PROB, POLICIES, check_share
from nezha_tf.data.reader import ExampleReader
from nezha_tf.data.schema import Lengths, Limits
from nezha_tf.errors import UserError, require_flag
from nezha_tf.model_folder.run_folder import vocabulary_in
from nezha_tf.modeling.pretraining import NezhaForPreTraining
from nezha_tf.objectives.pretraining import MaskedLMLoss
from nezha_tf.objectives.unilm import UniLMLoss
from nezha_tf.pretraining_data.provenance import Provenance, provenance_of
from nezha_tf.pretraining_data.shard_files import example_files
from nezha_tf.text.vocabulary import Vocabulary, check_vocabulary
from nezha_tf.training.evaluation import Evaluation
from nezha_tf.training.task import Task


class Pretraining(Task):
    """Masked LM with next-sentence prediction (BERT, NEZHA), or the mixture of UniLM.

    Examples that are no pairs train masked LM alone (RoBERTa, arXiv 1907.11692 §4.2).
    """

    def __init__(self, settings):
        super().__init__(settings)
        vocabulary = None
        if settings.vocab_file:
            vocabulary = Vocabulary.from_file(settings.vocab_file)
            check_vocabulary(self.config, vocabulary)
        self.lengths = Lengths(settings.max_seq_length, settings.max_predictions_per_seq)
        self._mixture = self._make_mixture(settings.objectives)
        self._masking = self._make_masking(vocabulary)
        self.check_length(self.lengths.max_seq_length, "max_seq_length")
        examples = []
        if settings.do_train:
            self.train_reader = self._reader("input_file")
            examples += self.train_reader.files
        if settings.do_eval:
            self._eval_reader = self._reader("eval_file")
            examples += self._eval_reader.files
        vocab_file = settings.vocab_file or vocabulary_in(settings.output_dir)
        said = {name: getattr(settings, name) for name in Provenance._fields}
        made = provenance_of(examples, vocab_file, **said)
        self._of_pairs = made.pair != "none"
        self.resolve(do_lower_case=made.do_lower_case)

    def task_file_settings(self):
        return {"task": "pretraining", "objectives": self.settings.objectives}

    def make_model(self, precision):
        model = NezhaForPreTraining(self.config, dtype=precision)
        # Without pairs nothing is predicted from [CLS], so these have no gradient.
        model.encoder.pooler.trainable = model.next_sentence.trainable = self._of_pairs
        return model

    def make_evaluation(self, strategy, model):
        settings = self.settings
        return PretrainingEvaluation(
            strategy,
            model,
            self.make_objective(0.0),
            self._eval_reader,
            settings.eval_batch_size,
            settings.max_eval_steps,
            settings.output_dir,
            settings.jit_compile,
        )

    def make_objective(self, label_smoothing):
        if self._mixture is None:
            return MaskedLMLoss(label_smoothing, self._of_pairs)
        return UniLMLoss(self._mixture.names, label_smoothing, self._of_pairs)

    def _make_mixture(self, objectives):
        mixture = ObjectiveMixture.from_text(objectives)
        if mixture.names == ("bidirectional",):
            return None
        self.check_segments(f"--objectives={objectives}")
        return mixture

    def _make_masking(self, vocabulary):
        name, share = self.settings.dynamic_masking, self.settings.masked_lm_prob
        if not name:
            if share is not None:
                raise UserError(
                    f"--masked_lm_prob={share} is for --dynamic_masking; masked examples were "
                    "made with a share of their own"
                )
            return None
        if not vocabulary:
            raise UserError(
                f"--dynamic_masking={name} draws from --vocab_file; pass the one that the "
                "examples were made with"
            )
        share = DEFAULT_MASKED_LM_PROB if share is None else share
        check_share(share)
        return DynamicMasking(vocabulary, POLICIES[name], self.lengths, share)

    def _reader(self, flag):
        # The mixture gives the segments of a pair their ids itself.
        segments = 2 if self._mixture else self.config.type_vocab_size
        limits = Limits(self.config.vocab_size, segments)
        return ExampleReader(
            example_files(require_flag(getattr(self.settings, flag), flag), flag),
            self.lengths,
            limits,
            self.settings.skip_corrupt_records,
            self._mixture,
            self._masking,
        )


class PretrainingEvaluation(Evaluation):
    """Also tells what guessing would reach."""

    def write(self, step, results):
        return super().write(step, {**results, **self._majority()})

    def _majority(self):
        """Returns the accuracy of always guessing the most frequent of the masked pieces."""
        counts = np.zeros(1, np.int64)
        for batch in self.batches():
            labels = batch["masked_lm_ids"].numpy()[batch["masked_lm_weights"].numpy() > 0]
            found = np.bincount(labels, minlength=len(counts))
            counts = found + np.pad(counts, (0, len(found) - len(counts)))
        return {"masked_lm_majority_accuracy": float(counts.max() / max(counts.sum(), 1))}
