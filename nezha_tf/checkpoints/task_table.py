"""The table of tasks: one row with everything that the rest of the code must know about a task.

No other code tests a task's name. To add a task, assign a row to `TASKS` in any module;
`docs/en/extending.md` explains it by an example.
"""

from nezha_tf.checkpoints import hugging_face_settings, task_parts
from nezha_tf.checkpoints.task_row import (
    BOOL,
    NAMES,
    NUMBER,
    TEXT,
    TEXTS,
    Head,
    Kind,
    Tab,
    TaskRow,
    at_least,
    one_of,
)
from nezha_tf.config import SEARCH_METHODS, TARGET_PREDICTIONS
from nezha_tf.data.entity_tags import SCHEMES
from nezha_tf.modeling.finetuning import (
    NezhaForCrfTagging,
    NezhaForMultipleChoice,
    NezhaForQuestionAnswering,
    NezhaForSequenceClassification,
    NezhaForTokenClassification,
)
from nezha_tf.modeling.pretraining import (
    NezhaForMaskedLM,
    NezhaForPermutationLM,
    NezhaForPreTraining,
)
from nezha_tf.modeling.replaced_tokens import NezhaDiscriminator, NezhaForReplacedTokens
from nezha_tf.modeling.sentence_vectors import NezhaForSentenceVectors
from nezha_tf.objectives.mixture import ObjectiveMixture

# The weights of the head of labels have these names in all tasks, as in BERT's run_classifier.py.
LABELLED = ("output_weights", "output_bias")
_OF_BOTH = ("num_labels", "max_seq_length")
_OF_TOKENS = tuple(Head(prefix, {"logits": "logits"}) for prefix in LABELLED)
_OF_TEXTS = tuple(head._replace(from_pooler=True) for head in _OF_TOKENS)

PRETRAINING = Kind(
    "pretraining",
    NezhaForPreTraining,
    (
        Head("cls/predictions/", {"masked_lm_logits": "prediction_logits"}),
        Head("cls/seq_relationship/", {"next_sentence_logits": "seq_relationship_logits"}, True),
    ),
    "ForPreTraining",
)
PERMUTATION = Kind(
    "permutation",
    NezhaForPermutationLM,
    (*PRETRAINING.heads, Head("query_stream/", {})),
)
REPLACED_TOKENS = Kind(
    "replaced_tokens",
    NezhaForReplacedTokens,
    (*PRETRAINING.heads, Head("generator/", {}), Head("discriminator_predictions/", {})),
)
DISCRIMINATOR = Kind(
    "discriminator",
    NezhaDiscriminator,
    (Head("discriminator_predictions/", {"replaced_token_logits": "logits"}),),
    "ForReplacedTokens",
)
MASKED_LM = Kind(
    "masked_lm",
    NezhaForMaskedLM,
    (Head("cls/predictions/", {"masked_lm_logits": "logits"}),),
    "ForMaskedLM",
)


def _same(*names):
    """Returns the `TaskRow.head_settings` of settings that are flags of the same name."""
    return dict(zip(names, names, strict=True))


_CLASSES = Tab(
    "Classification",
    lambda tabs, models: tabs.classification(models),
    ({"label", "probabilities"}, {"labels_on", "probabilities"}, {"value"}),
)

# Tasks with heads of pretraining come first, because `kind_of` depends on the order.
TASKS = {
    "pretraining": TaskRow(
        settings={"objectives": TEXT},
        kinds=(PRETRAINING, PERMUTATION, REPLACED_TOKENS, DISCRIMINATOR),
        model_class=lambda settings: (
            ObjectiveMixture.from_text(settings["objectives"], "objectives").model
        ),
    ),
    "seq2seq": TaskRow(
        settings={
            "target_prediction": one_of(*TARGET_PREDICTIONS),
            "max_source_length": at_least(1),
            "max_target_length": at_least(1),
            "truncate_source": one_of("tail", "head"),
            "min_target_length": at_least(1),
            "decoding": one_of(*SEARCH_METHODS),
            "beam_size": at_least(1),
            "num_return_sequences": at_least(1),
            "length_penalty": NUMBER,
            "temperature": NUMBER,
            "top_k": at_least(0),
            "top_p": NUMBER,
            "no_repeat_ngram_size": at_least(0),
            "exempt_words": TEXTS,
            "banned_words": TEXTS,
        },
        optional={"repetition_penalty": NUMBER},
        kinds=(MASKED_LM,),
        head_settings=_same("target_prediction"),
        serving=task_parts.seq2seq,
        tab=Tab("Writing", lambda tabs, models: tabs.writing(models), ({"texts", "scores"},)),
        pipeline_tag="text-generation",
        form="seq2seq",
    ),
    "classification": TaskRow(
        settings={
            "label_type": one_of("single", "multi", "regression"),
            "labels": NAMES,
            "is_pair": BOOL,
        },
        kinds=(
            Kind(
                "classification",
                NezhaForSequenceClassification,
                _OF_TEXTS,
                "ForSequenceClassification",
                _OF_BOTH,
            ),
        ),
        head_settings={**_same("label_type"), "is_pair": "text_pair_column"},
        serving=task_parts.classification,
        tab=_CLASSES,
        pipeline_tag="text-classification",
        published=hugging_face_settings.classification,
    ),
    "prompting": TaskRow(
        settings={
            "label_type": one_of("single"),
            "labels": NAMES,
            "is_pair": BOOL,
            "pattern": TEXT,
            "label_words": NAMES,
        },
        kinds=(MASKED_LM,),
        head_settings={**_same("pattern", "label_words"), "is_pair": "text_pair_column"},
        serving=task_parts.prompting,
        tab=_CLASSES,
        pipeline_tag="text-classification",
    ),
    "tagging": TaskRow(
        settings={
            "labels": NAMES,
            "scheme": one_of(*SCHEMES),
            "crf": BOOL,
            "window_stride": at_least(1),
        },
        kinds=(
            Kind(
                "crf_tagging",
                NezhaForCrfTagging,
                (*_OF_TOKENS, Head("crf/", {})),
                arguments=_OF_BOTH,
                settings={"crf": True},
            ),
            Kind(
                "tagging",
                NezhaForTokenClassification,
                _OF_TOKENS,
                "ForTokenClassification",
                _OF_BOTH,
                settings={"crf": False},
            ),
        ),
        serving=task_parts.tagging,
        tab=Tab("Entities", lambda tabs, models: tabs.entities(models), ({"num_entities"},)),
        pipeline_tag="token-classification",
        published=hugging_face_settings.tagging,
    ),
    "reading_comprehension": TaskRow(
        settings={
            "max_query_length": at_least(1),
            "doc_stride": at_least(1),
            "max_answer_length": at_least(1),
            "n_best_size": at_least(1),
            "version_2_with_negative": BOOL,
            "null_score_diff_threshold": NUMBER,
        },
        kinds=(
            Kind(
                "reading_comprehension",
                NezhaForQuestionAnswering,
                (Head("cls/squad/", {n: n for n in ("start_logits", "end_logits")}),),
                "ForQuestionAnswering",
                ("max_seq_length",),
            ),
        ),
        head_settings=_same("version_2_with_negative"),
        serving=task_parts.reading_comprehension,
        tab=Tab("Reading comprehension", lambda tabs, models: tabs.answers(models), ({"answer"},)),
        pipeline_tag="question-answering",
        published=hugging_face_settings.reading_comprehension,
    ),
    "sentence_vectors": TaskRow(
        settings={"pooling": one_of("cls", "mean")},
        kinds=(Kind("sentence_vectors", NezhaForSentenceVectors, (), None, ("max_seq_length",)),),
        head_settings=_same("pooling"),
        pipeline_tag="sentence-similarity",
    ),
    "multiple_choice": TaskRow(
        settings={"has_blanks": BOOL},
        # Whether texts are read by `data.choices.with_ascii_punctuation`, as those of ChID.
        optional={"ascii_punctuation": BOOL},
        kinds=(
            Kind(
                "multiple_choice",
                NezhaForMultipleChoice,
                _OF_TEXTS,
                "ForMultipleChoice",
                ("max_seq_length",),
                has_choices=True,
            ),
        ),
        head_settings={"has_blanks": "task_name"},
        serving=task_parts.multiple_choice,
        tab=Tab(
            "Multiple choice",
            lambda tabs, models: tabs.choices(models),
            ({"choice", "probabilities"},),
        ),
        pipeline_tag="multiple-choice",
        published=hugging_face_settings.multiple_choice,
    ),
}
