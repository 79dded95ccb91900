"""The settings of run_pretraining.py."""

import dataclasses

from nezha_tf.corpus.packing import PAIRS
from nezha_tf.objectives.policies import POLICIES
from nezha_tf.training.settings import RunSettings
from nezha_tf.util.settings import GIVEN, flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingSettings(RunSettings):
    """The examples, their masking, and the training objectives."""

    vocab_file: str | None = flag(
        None,
        "Vocabulary of the examples; copied to --output_dir, and needed by --dynamic_masking; "
        "default: the one beside --init_checkpoint.",
    )
    do_lower_case: bool | None = flag(
        None,
        "Whether the examples' text was lower-cased. Only needed for examples that another tool "
        "made; for ours, the summaries beside them tell it.",
    )
    input_file: str | None = flag(
        None,
        "TFRecord files to train on: names or globs, separated by commas. With weights behind "
        "them, as in news*.tfrecord:3,books*.tfrecord:1, they are parts that give such shares of "
        "the examples, whatever their sizes.",
    )
    eval_file: str | None = flag(
        None,
        "TFRecord files to evaluate on: names or globs, separated by commas. With weights behind "
        "them, each part is evaluated alone, too, and the results are the means by weight.",
    )
    max_seq_length: int | None = flag(
        None,
        "Length of the examples in tokens. Only needed for examples that another tool made; "
        "default for these: 128.",
        1,
    )
    max_predictions_per_seq: int | None = flag(
        None,
        "Most predictions in an example. Only needed for examples of other tools, and for "
        "--dynamic_masking; default for these: 20.",
        1,
    )
    dynamic_masking: str | None = flag(
        None,
        "Masking policy for examples that were made with --masking=none; the masks differ in each "
        "epoch.",
        choices=[name for name, policy in POLICIES.items() if not policy.of_entities],
    )
    masked_lm_prob: float | None = flag(
        None,
        "Share of the tokens to predict with --dynamic_masking; default: 0.15.",
        0,
        1,
        read_with={"dynamic_masking": GIVEN},
    )
    pair: str | None = flag(
        None,
        "The kind of the examples' two segments; none: one segment and no next-sentence "
        "prediction; packed: the same, with texts that do not see each other. Only needed for "
        "examples that another tool made.",
        choices=PAIRS,
    )
    objectives: str = flag(
        "bidirectional",
        "Objectives and their shares of the examples: bidirectional (masked LM and, for pairs, "
        "next sentence), left_to_right, right_to_left, seq2seq; UniLM: "
        "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1. On examples of "
        "--masking=none also causal (the next token of a text), permutation (XLNet), and "
        "span_corruption (T5), infilling (BART), mass and prefix (the tokens of a target that is "
        "made of the text). With --vocab_file also replaced_tokens (ELECTRA).",
    )
    initial_batch_size: int | None = flag(
        None,
        "Number of examples in the first training steps; it doubles until it is "
        "--train_batch_size; default: it does not grow.",
        1,
        read_with={"memory_length": (0,)},
    )
    batch_growth_steps: int | None = flag(
        None,
        "Number of steps with smaller batches than --train_batch_size, the same for each size; "
        "default: half of --num_train_steps.",
        1,
        read_with={"initial_batch_size": GIVEN},
    )
    middle_tokens: float | None = flag(
        None,
        "Share of the tokens of an example that each layer between the first and the last computes "
        "in training, drawn for each layer; the others pass by it (random-LTD); default: all.",
        0,
        1,
        read_with={"memory_length": (0,)},
    )
    memory_length: int = flag(
        0,
        "Number of tokens before an example that the model remembers (Transformer-XL), for causal "
        "or permutation alone, on examples of --pair=stream; 0: none.",
        0,
    )
    eval_memory_length: int | None = flag(
        None, "The same in evaluations; default: --memory_length.", 0
    )
    num_predict: int | None = flag(
        None,
        "Most predictions of an example with permutation; default: a sixth of its length.",
        1,
    )
    noise_density: float | None = flag(
        None,
        "Share of a text that spans of noise cover; default: 0.15 with span_corruption, 0.3 with "
        "infilling.",
        0,
        1,
    )
    mean_span_length: float | None = flag(
        None,
        "Mean length of a span of noise, in tokens with span_corruption and in words with "
        "infilling; default: 3.",
        1,
    )
