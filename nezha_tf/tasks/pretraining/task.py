"""The task of `run_pretraining.py`: pretraining with one objective or a mixture."""

import functools

from nezha_tf.checkpoints.run_checkpoints import BestMetric
from nezha_tf.checkpoints.run_folder import vocabulary_in
from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.corpus.packing import PACKED, SINGLE
from nezha_tf.corpus.provenance import Provenance, counts_of, in_manifests, provenance_of
from nezha_tf.corpus.shard_files import example_files, parts_of_sets
from nezha_tf.data import schema
from nezha_tf.data.reader import ExampleReader
from nezha_tf.data.schema import Lengths, Limits
from nezha_tf.data.stream_reader import StreamReader
from nezha_tf.modeling import positions
from nezha_tf.objectives.dynamic_masking import DynamicMasking
from nezha_tf.objectives.middle_tokens import MiddleTokens
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.objectives.objective import ExampleSettings
from nezha_tf.objectives.policies import DEFAULT_MASKED_LM_PROB, POLICIES, budgets, check_share
from nezha_tf.objectives.table import OBJECTIVES
from nezha_tf.tasks.pretraining.evaluation import PartsEvaluation, PretrainingEvaluation
from nezha_tf.tasks.pretraining.parts import (
    notes_on_evaluation,
    notes_on_training,
    shares_of,
    weighted_parts,
)
from nezha_tf.text.vocabulary import Vocabulary, check_vocabulary
from nezha_tf.training.batch_sizes import batch_sizes
from nezha_tf.training.memory import Memory
from nezha_tf.training.task import Task
from nezha_tf.util.errors import UserError, require_flag


class Pretraining(Task):
    """Trains the objectives of --objectives on TFRecord files.

    Examples that are not pairs have no next-sentence prediction (RoBERTa, arXiv 1907.11692 §4.2).
    """

    fresh_names = (
        *Task.fresh_names,
        *(prefix for kind in TASKS["pretraining"].kinds for prefix in kind.prefixes),
    )

    def __init__(self, settings):
        super().__init__(settings)
        vocabulary = None
        if settings.vocab_file:
            vocabulary = Vocabulary.from_file(settings.vocab_file)
            check_vocabulary(self.config, vocabulary)
        self._mixture = ObjectiveMixture.from_text(settings.objectives)
        self.best_metric = BestMetric(self._mixture.best_metric, higher_is_better=False)
        # The segment ids 0 and 1 come from the records; the reader checks them.
        if max(self._mixture.segment_ids) > 1:
            self.check_segments(f"--objectives={settings.objectives}", self._mixture.segment_ids)
        self._check_masking(vocabulary)
        self._check_options()
        self._parts, self._files = {}, {}
        for flag, mode in (("input_file", "do_train"), ("eval_file", "do_eval")):
            if getattr(settings, mode):
                self._find_files(flag, require_flag(getattr(settings, flag), flag))
        for flag, paths in self._files.items():
            self.notes += parts_of_sets(paths, flag)
        self._note_parts()
        self._look_at_records()
        self._check_memory()
        self._check_packed()
        lengths = Lengths(self.settings.max_seq_length, self.settings.max_predictions_per_seq)
        self._examples = ExampleSettings(
            lengths,
            vocabulary,
            self._make_masking(vocabulary, lengths),
            settings.noise_density,
            settings.mean_span_length,
            settings.num_predict,
        )
        self.lengths = self._mixture.lengths(self._examples)
        self.check_length(self.lengths.max_seq_length, "max_seq_length")
        num_outputs = self.lengths.max_predictions_per_seq + 1
        if self.make_objective(0.0).reads_few_places and num_outputs < self.lengths.max_seq_length:
            self.num_outputs = num_outputs
        if settings.do_train:
            self.train_reader = self._reader(
                self._files["input_file"],
                self.memory_length,
                self._parts["input_file"],
                settings.middle_tokens,
            )
        if settings.do_eval:
            groups = [part.files for part in self._parts["eval_file"]]
            self._eval_readers = [
                self._reader(files, self._eval_memory_length)
                for files in groups or [self._files["eval_file"]]
            ]

    def task_file_settings(self):
        return {"task": "pretraining", "objectives": self.settings.objectives}

    def make_model(self, precision):
        model = self._mixture.model(self.config, dtype=precision)
        # Layers that no term of the loss uses have no gradient.
        terms = self._mixture.loss(self._of_pairs).terms
        model.encoder.pooler.trainable = any(term.is_pooled for term in terms)
        for head in ("masked_lm", "next_sentence"):
            if hasattr(model, head):
                getattr(model, head).trainable = any(term.head == head for term in terms)
        return model

    def make_evaluation(self, strategy, model):
        found = [self._evaluation(strategy, model, reader) for reader in self._eval_readers]
        parts = self._parts["eval_file"]
        if not parts:
            return found[0]
        names = [part.name for part in parts]
        return PartsEvaluation(dict(zip(names, found, strict=True)), shares_of(parts).shares)

    def _evaluation(self, strategy, model, reader):
        settings, memory = self.settings, None
        if self._eval_memory_length:
            memory = Memory(strategy, model, settings.eval_batch_size, self._eval_memory_length)
        return PretrainingEvaluation(
            strategy,
            model,
            self.make_objective(0.0),
            reader,
            settings.eval_batch_size,
            settings.max_eval_steps,
            settings.output_dir,
            settings.jit_compile,
            memory,
            vocabulary=self._examples.vocabulary,
        )

    def make_objective(self, label_smoothing):
        return self._mixture.loss(self._of_pairs, label_smoothing)

    def _find_files(self, flag, value):
        """Finds the files of a flag, and their parts, if they have weights."""
        objectives = self._mixture.objectives
        # The results of several objectives are called NAME/OBJECTIVE.
        parts = weighted_parts(value, flag, objectives if len(objectives) > 1 else ())
        self._parts[flag] = parts
        if parts:
            self._files[flag] = sorted(path for part in parts for path in part.files)
        else:
            self._files[flag] = example_files(value, flag)

    def _note_parts(self):
        """Adds lines on the parts that have weights."""
        if self._parts.get("input_file"):
            steps = self.settings.num_train_steps
            self.notes += notes_on_training(
                self._parts["input_file"],
                counts_of(self._files["input_file"]),
                None if steps is None else batch_sizes(self.settings).examples(steps),
            )
        if self._parts.get("eval_file"):
            self.notes += notes_on_evaluation(self._parts["eval_file"])

    def _look_at_records(self):
        """Fills in the settings that the summaries beside the examples contain."""
        settings = self.settings
        vocab_file = settings.vocab_file or vocabulary_in(settings.output_dir)
        paths = [path for of_flag in self._files.values() for path in of_flag]
        given = {name: getattr(settings, name) for name in Provenance._fields}
        made = provenance_of(paths, vocab_file, settings.dynamic_masking, **given)
        self._pair, self._of_pairs = made.pair, made.pair not in SINGLE
        objectives = self._mixture.objectives.values()
        has_masks = any(each.reads == schema.FEATURES for each in objectives)
        if not has_masks:
            self._note_unread()
        self.resolve(
            do_lower_case=made.do_lower_case,
            max_seq_length=made.max_seq_length,
            max_predictions_per_seq=made.max_predictions_per_seq,
        )
        if settings.dynamic_masking and has_masks and settings.max_predictions_per_seq is None:
            self._note_few_predictions(made.max_seq_length, made.max_predictions_per_seq)

    def _note_unread(self):
        """Adds a line on the flags of masking, because no objective reads masked examples.

        They are no error: runs of several objectives share flag files.
        """
        names = ("dynamic_masking", "masked_lm_prob", "max_predictions_per_seq")
        values = {name: getattr(self.settings, name) for name in names}
        given = [f"--{name}={value}" for name, value in values.items() if value is not None]
        if given:
            self.notes.append(
                f"not read with --objectives={self.settings.objectives}, which masks nothing: "
                + ", ".join(given)
            )

    def _note_few_predictions(self, length, most):
        """Adds a warning if the default bound leaves fewer predictions than their share."""
        share = self._masked_lm_prob()
        wanted = budgets(length, share, length)[length]
        if most < wanted:
            self.notes.append(
                f"warning: of the {length} tokens of an example at most {most} are predicted, "
                f"which is less than --masked_lm_prob={share:g}; pass --max_predictions_per_seq="
                f"{wanted}, because its default with --dynamic_masking is {most}"
            )

    def _check_memory(self):
        """Sets the lengths of the memory, and raises a `UserError` if there can be none."""
        settings = self.settings
        self.memory_length = settings.memory_length
        self._eval_memory_length = settings.eval_memory_length
        if self._eval_memory_length is None:
            self._eval_memory_length = settings.memory_length
        if not (self.memory_length or self._eval_memory_length):
            return
        flag = f"--memory_length={self.memory_length or self._eval_memory_length}"
        able = [name for name, each in OBJECTIVES.items() if each.has_memory]
        if len(self._mixture.objectives) > 1 or self._mixture.first not in able:
            raise UserError(
                f"{flag} goes with --objectives={' or '.join(able)} alone, not with "
                f"{settings.objectives}: other examples do not go on from earlier ones"
            )
        if self._pair != "stream":
            raise UserError(
                f"{flag} needs examples in the order of the text, but these are shuffled "
                f"(--pair={self._pair}); make them again with --pair=stream --masking=none"
            )
        if self.memory_length and self._parts.get("input_file"):
            raise UserError(
                f"{flag} reads the text in its order, so parts have no weights: write --input_file="
                f"{settings.input_file} without them"
            )
        if not positions.of(self.config).is_relative:
            raise UserError(
                f"{flag} needs a model with relative positions, and {settings.bert_config_file} "
                f"has {self.config.position_encoding} ones: a token has no number there before 0"
            )
        for name, unset in (
            ("gradient_accumulation_steps", 1),
            ("adversarial_epsilon", 0),
            ("skip_corrupt_records", 0),
        ):
            value = getattr(settings, name)
            if value > unset:
                raise UserError(f"{flag} does not work with --{name}={value}; leave it out")

    def _check_packed(self):
        """Raises a `UserError` if an objective cannot read the rows of packed texts."""
        unable = [n for n, each in self._mixture.objectives.items() if not each.has_packed_texts]
        if self._pair == PACKED and unable:
            able = [name for name, each in OBJECTIVES.items() if each.has_packed_texts]
            raise UserError(
                f"--objectives={self.settings.objectives}: {unable[0]} does not read packed texts "
                f"(--pair={PACKED}), as {', '.join(able)} do; make the examples again with "
                "--pair=none"
            )

    def _check_masking(self, vocabulary):
        name, share = self.settings.dynamic_masking, self.settings.masked_lm_prob
        if share is not None:
            check_share(share)
        if name and not vocabulary:
            raise UserError(
                f"--dynamic_masking={name} needs --vocab_file, the vocabulary that the examples "
                "were made with"
            )

    def _check_options(self):
        """Raises a `UserError` for an option that no objective of the mixture reads."""
        for name in dict.fromkeys(name for each in OBJECTIVES.values() for name in each.options):
            value = getattr(self.settings, name)
            readers = [key for key, each in OBJECTIVES.items() if name in each.options]
            if value is not None and not set(readers) & set(self._mixture.objectives):
                raise UserError(
                    f"--{name}={value} does nothing with --objectives={self.settings.objectives}; "
                    f"leave it out (it is for {' and '.join(readers)})"
                )
        if self.settings.noise_density == 0:
            raise UserError(
                f"--noise_density={self.settings.noise_density} must be above 0; without noise "
                "a model learns to copy"
            )

    def _make_masking(self, vocabulary, lengths):
        name = self.settings.dynamic_masking
        if not name:
            return None
        return DynamicMasking(vocabulary, POLICIES[name], lengths, self._masked_lm_prob())

    def _masked_lm_prob(self):
        share = self.settings.masked_lm_prob
        return DEFAULT_MASKED_LM_PROB if share is None else share

    def _reader(self, files, memory_length, parts=(), middle_tokens=None):
        transforms = self._mixture.transforms(self._examples)
        # Transforms assume that examples are pairs, with segment ids below 2.
        segments = self.config.type_vocab_size
        limits = Limits(self.config.vocab_size, min(2, segments) if transforms else segments)
        features = self._mixture.features(self._examples)
        if self._pair == PACKED:
            features = (*features, schema.TEXT_IDS)
        if middle_tokens not in (None, 1.0):
            made = transforms[-1].gives if transforms else features
            transforms = (*transforms, self._middle_tokens(middle_tokens, made))
        kind = StreamReader if memory_length else ExampleReader
        return kind(
            files,
            self._examples.lengths,
            limits,
            self.settings.skip_corrupt_records,
            features,
            transforms,
            functools.partial(counts_of, files),
            in_manifests(files),
            [(part.files, part.weight) for part in parts],
        )

    def _middle_tokens(self, share, features):
        """Returns the transform of --middle_tokens, and notes how many tokens these are."""
        if self.make_objective(0.0).has_query_stream:
            raise UserError(
                f"--middle_tokens={share:g} does not work with --objectives="
                f"{self.settings.objectives}: the query stream sees all tokens in each layer; "
                "leave it out"
            )
        drawn = MiddleTokens(self.config, self._examples.lengths.max_seq_length, share, features)
        self.num_middle = drawn.count
        return drawn
