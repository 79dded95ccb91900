"""The programs of the package, each of them a row."""

import importlib
import os
from typing import NamedTuple


class Program(NamedTuple):
    """A program.

    `about` begins with a line that says what it does, and has commands in which `PROGRAM` stands
    for the way in which it was started. `settings` (the dataclass of its flags) and `main` (a
    function of these settings; a text that it returns is printed) are MODULE:NAME, imported only
    when the program runs.
    """

    about: str
    settings: str
    main: str
    with_tensorflow: bool = True

    @property
    def line(self):
        """The first line of what it is about."""
        return self.about.partition("\n")[0]


def part(place):
    """Returns what a row names as MODULE:NAME of the package."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"nezha_tf.{module}"), name)


def arguments_of(program):
    """Returns what follows `python` to start a program, or None if there is none.

    Args:
      program: a script's path, which goes first; or the name of a program of the package, which
        may have the form that it has in a clone: tools/NAME.py.
    """
    if os.path.isfile(program):
        return [program]
    name = _name(program)
    return ["-m", "nezha_tf", name] if name in PROGRAMS else None


def has_flag(program, flag):
    """Returns whether a program has a flag; of a foreign script it is taken to be so."""
    name = _name(program)
    if name not in PROGRAMS:
        return True
    return flag in part("util.settings:flag_names")(part(PROGRAMS[name].settings))


def _name(program):
    return os.path.basename(program).removesuffix(".py")


PROGRAMS = {
    "create_pretraining_data": Program(
        """Makes TFRecords for pretraining out of running text.

The text has one sentence a line and a blank line between documents. After an interruption the
same command goes on where it was.

  PROGRAM --input_file='corpus/*.txt.gz' \\
      --output_file=train.tfrecord --vocab_file=vocab.txt
""",
        settings="corpus.create:ProgramSettings",
        main="corpus.programs:create",
        with_tensorflow=False,
    ),
    "build_vocab": Program(
        """Builds a WordPiece vocabulary from running text.

  PROGRAM --input_file='corpus/*.txt.gz' --output_file=vocab.txt
""",
        settings="corpus.settings:VocabularySettings",
        main="corpus.vocabulary:make_vocabulary",
        with_tensorflow=False,
    ),
    "inspect_tfrecords": Program(
        """Shows the examples of TFRecord files as text, or checks the files.

  PROGRAM --input_file='out/train*.tfrecord'
  PROGRAM --input_file='out/*.tfrecord' --check
""",
        settings="corpus.settings:InspectionSettings",
        main="corpus.programs:inspect",
    ),
    "run_pretraining": Program(
        """Pretrains a model on TFRecords, for one objective or for a mixture of several.

  PROGRAM --flagfile=sample
""",
        settings="tasks.pretraining.settings:PretrainingSettings",
        main="tasks.programs:pretrain",
    ),
    "run_classifier": Program(
        """Fine-tunes a model to classify texts or pairs of texts, evaluates it, and predicts.

  PROGRAM --task_name=chnsenti --data_dir=chnsenti --do_train --do_eval \\
      --vocab_file=vocab.txt --bert_config_file=bert_config.json --init_checkpoint=model.ckpt \\
      --output_dir=out

  PROGRAM --task_name=custom --train_file=train.csv --eval_file=dev.csv \\
      --text_column=question --text_pair_column=answer --label_column=verdict ...

  PROGRAM --task_name=bustm --data_dir=bustm --label_words=不,很 \\
      --pattern='{text}和{text_pair}的意思[MASK]像。' ...
""",
        settings="tasks.classification.settings:ClassificationSettings",
        main="tasks.programs:classify",
    ),
    "run_ner": Program(
        """Fine-tunes a model to find named entities, evaluates it, and writes what it finds.

  PROGRAM --do_train --do_eval --train_file=train.txt --eval_file=dev.txt \\
      --vocab_file=vocab.txt --bert_config_file=bert_config.json --init_checkpoint=model.ckpt \\
      --output_dir=out
""",
        settings="tasks.tagging.settings:TaggingSettings",
        main="tasks.programs:find_entities",
    ),
    "run_mrc": Program(
        """Fine-tunes a model to find answers in passages, evaluates it, and answers questions.

  PROGRAM --do_train --do_eval --train_file=train.json --eval_file=dev.json \\
      --vocab_file=vocab.txt --bert_config_file=bert_config.json --init_checkpoint=model.ckpt \\
      --output_dir=out
""",
        settings="tasks.reading_comprehension.settings:ReadingComprehensionSettings",
        main="tasks.programs:answer",
    ),
    "run_multiple_choice": Program(
        """Fine-tunes a model to choose among answers to a question, or among idioms for a blank.

  PROGRAM --task_name=c3 --data_dir=c3 --do_train --do_eval \\
      --vocab_file=vocab.txt --bert_config_file=bert_config.json --init_checkpoint=model.ckpt \\
      --output_dir=out
""",
        settings="tasks.multiple_choice.settings:MultipleChoiceSettings",
        main="tasks.programs:choose",
    ),
    "run_sentence_vectors": Program(
        """Fine-tunes a model on unlabelled texts, so that vectors of like texts are near (SimCSE).

  PROGRAM --train_file=texts.txt --eval_file=pairs.jsonl --do_train \\
      --do_eval --vocab_file=vocab.txt --bert_config_file=bert_config.json \\
      --init_checkpoint=model.ckpt --learning_rate=3e-5 --output_dir=out
""",
        settings="tasks.sentence_vectors.settings:SentenceVectorSettings",
        main="tasks.programs:make_vectors",
    ),
    "run_seq2seq": Program(
        """Fine-tunes a model to write a target for a source, evaluates it, and writes.

  PROGRAM --do_train --do_eval --train_file=train.jsonl --eval_file=dev.jsonl \\
      --vocab_file=vocab.txt --bert_config_file=bert_config.json --init_checkpoint=model.ckpt \\
      --output_dir=out
""",
        settings="tasks.seq2seq.settings:Seq2SeqSettings",
        main="tasks.programs:write",
    ),
    "run_ablation": Program(
        """Runs programs with several settings and seeds, and compares what comes out.

  PROGRAM --ablation_file=sample --output_dir=out/ablation
""",
        settings="ablation.settings:AblationSettings",
        main="ablation.run:run",
        with_tensorflow=False,
    ),
    "fill_mask": Program(
        """Shows the likeliest tokens for each [MASK] of a text, from a file or from standard input.

  PROGRAM --model_folder=out/small
  PROGRAM --bert_config_file=bert_config.json --vocab_file=vocab.txt \\
      --init_checkpoint=model.ckpt
""",
        settings="generation.settings:FillMaskSettings",
        main="generation.fill:fill_mask",
    ),
    "generate_text": Program(
        """Writes a target for each source of a file, or continues a prompt.

  PROGRAM --input_file=sources.jsonl --output_file=targets.jsonl \\
      --model_folder=out/task
  PROGRAM --mode=left_to_right --prompt=今天 --decoding=sample --top_p=0.9 ...
""",
        settings="generation.settings:GenerateSettings",
        main="generation.writing:generate_text",
    ),
    "score_text": Program(
        """Tells how probable a model finds targets for their sources, or texts.

  PROGRAM --input_file=pairs.jsonl --model_folder=out/task
""",
        settings="generation.settings:ScoreSettings",
        main="generation.score:score_text",
    ),
    "extract_features": Program(
        """Writes the vectors of texts, of their tokens or of their characters; or compares pairs.

  PROGRAM --input_file=texts.txt --output_file=vectors.npy \\
      --model_folder=out/chnsenti
""",
        settings="tasks.sentence_vectors.extract_settings:ExtractSettings",
        main="tasks.sentence_vectors.extract:extract_features",
    ),
    "make_question_generation_data": Program(
        """Makes data for run_seq2seq from reading comprehension: the targets are the questions.

  PROGRAM --input_file=train.json --output_file=train.jsonl
""",
        settings="tasks.seq2seq.question_generation:QuestionGenerationSettings",
        main="tasks.seq2seq.question_generation:make_question_generation_data",
    ),
    "convert_checkpoint": Program(
        """Converts a model between the file layouts of TF1, of this project and of Hugging Face.

  PROGRAM --from=chinese_L-12_H-768_A-12 --to=bert --format=hugging_face
""",
        settings="checkpoints.settings:ConversionSettings",
        main="checkpoints.convert:convert_checkpoint",
    ),
    "export_saved_model": Program(
        """Writes the model of a run, or a published model, as a SavedModel that takes raw text.

  PROGRAM --model_folder=out/chnsenti --output_dir=export
""",
        settings="serving.settings:ExportSettings",
        main="serving.export:export",
    ),
    "convert_export": Program(
        """Converts a SavedModel for another runtime, which then reads ids: TFLite or ONNX.

  PROGRAM --saved_model=export --output_file=model.tflite --variant=float16
""",
        settings="serving.settings:ConvertExportSettings",
        main="serving.runtimes:convert_export",
    ),
    "demo": Program(
        """Serves a web page on which models can be tried: runs, published models and exports.

  PROGRAM --model_folder=out/chnsenti,out/ner
""",
        settings="serving.settings:DemoSettings",
        main="serving.page:serve",
    ),
    "plot_metrics": Program(
        """Draws the curves of one or several training runs into one picture.

  PROGRAM --runs=out/a,out/b --output_file=curves.png
""",
        settings="pictures.settings:PlotSettings",
        main="pictures.curves:plot_runs",
    ),
    "visualize": Program(
        """Draws a picture that explains a model: relative positions, attention masks or attention.

  PROGRAM --picture=relative_positions --output_file=positions.png
  PROGRAM --picture=attention --model_folder=out/sample/nezha_tiny \\
      --text=今天的豆浆是新磨的。 --output_file=attention.png
""",
        settings="pictures.settings:VisualizeSettings",
        main="pictures.visualize:visualize",
    ),
}
