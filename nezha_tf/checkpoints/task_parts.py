"""What a row of the table of tasks needs from the rooms above it, imported when it is called.

No other module imports from a room above its own (`tests/test_rooms.py`). Each function is a
`TaskRow.serving`: it takes a `ModelFolder` and its model, and returns their
`serving.signature.Serving`.
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
    from nezha_tf.tasks.seq2seq.serving import finetuned_writing

    return finetuned_writing(folder, model)


def continuations(folder, model):
    from nezha_tf.tasks.seq2seq.serving import pretrained_writing

    return pretrained_writing(folder, model, "left_to_right")


def targets(folder, model):
    from nezha_tf.tasks.seq2seq.serving import pretrained_writing

    return pretrained_writing(folder, model, "seq2seq")
