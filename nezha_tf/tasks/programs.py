"""What the programs that train do with their settings; a task is imported when its program runs."""

from nezha_tf.serving.export import run_and_export


def pretrain(settings):
    """Runs `PretrainingSettings`."""
    from nezha_tf.tasks.pretraining.task import Pretraining
    from nezha_tf.training.run import run

    run_and_export(run, settings, Pretraining)


def classify(settings):
    """Runs `ClassificationSettings`."""
    from nezha_tf.tasks.classification.task import Classification
    from nezha_tf.tasks.finetuning.sweep import run
    from nezha_tf.tasks.prompting.task import Prompting

    def make_task(settings):  # They have the pattern of the folder, if it is not given.
        return (Prompting if settings.pattern else Classification)(settings)

    run_and_export(run, settings, make_task)


def find_entities(settings):
    """Runs `TaggingSettings`."""
    from nezha_tf.tasks.finetuning.sweep import run
    from nezha_tf.tasks.tagging.task import NamedEntities

    run_and_export(run, settings, NamedEntities)


def answer(settings):
    """Runs `ReadingComprehensionSettings`."""
    from nezha_tf.tasks.finetuning.sweep import run
    from nezha_tf.tasks.reading_comprehension.task import ReadingComprehension

    run_and_export(run, settings, ReadingComprehension)


def choose(settings):
    """Runs `MultipleChoiceSettings`."""
    from nezha_tf.tasks.finetuning.sweep import run
    from nezha_tf.tasks.multiple_choice.task import MultipleChoiceTask

    run_and_export(run, settings, MultipleChoiceTask)


def make_vectors(settings):
    """Runs `SentenceVectorSettings`."""
    from nezha_tf.tasks.finetuning.sweep import run
    from nezha_tf.tasks.sentence_vectors.task import SentenceVectors

    run_and_export(run, settings, SentenceVectors)


def write(settings):
    """Runs `Seq2SeqSettings`."""
    from nezha_tf.tasks.seq2seq.task import Seq2Seq
    from nezha_tf.training.run import run

    run_and_export(run, settings, Seq2Seq)
