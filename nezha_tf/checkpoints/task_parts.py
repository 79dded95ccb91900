"""What a row of the table of tasks needs from the rooms above it, imported when it is called.

No other module imports from a room above its own (`tests/test_rooms.py`). Each function is a
`Task.serving`: it takes a `ModelFolder` and its model, and returns a `serving.signature.Serving`.
"""


def classification(folder, model):
    from nezha_tf.tasks.classification.serving import ClassificationServing

    return ClassificationServing(folder, model)


def prompting(folder, model):
    from nezha_tf.tasks.prompting.serving import PromptingServing

    return PromptingServing(folder, model)


def tagging(folder, model):
    from nezha_tf.tasks.tagging.serving import TaggingServing

    return TaggingServing(folder, model)


def reading_comprehension(folder, model):
    from nezha_tf.tasks.reading_comprehension.serving import ReadingComprehensionServing

    return ReadingComprehensionServing(folder, model)


def multiple_choice(folder, model):
    from nezha_tf.tasks.multiple_choice.serving import MultipleChoiceServing

    return MultipleChoiceServing(folder, model)


def seq2seq(folder, model):
    from nezha_tf.tasks.seq2seq.serving import Seq2SeqServing

    return Seq2SeqServing(folder, model)


def continuations(folder, model):
    from nezha_tf.tasks.pretraining.serving import ContinuationServing

    return ContinuationServing(folder, model)


def targets(folder, model):
    from nezha_tf.tasks.pretraining.serving import TargetServing

    return TargetServing(folder, model)
