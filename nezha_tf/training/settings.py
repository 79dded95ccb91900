"""The settings of all programs that train."""

import dataclasses

from nezha_tf.util.settings import GIVEN, flag

DISTRIBUTION = ("default", "one_device", "mirrored", "multi_worker", "tpu")
PRECISIONS = ("float32", "mixed_float16", "mixed_bfloat16")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The model, the modes, and the folder for the results."""

    bert_config_file: str | None = flag(
        None,
        "JSON file with the model's configuration; default: the one beside --init_checkpoint.",
    )
    vocab_file: str | None = flag(
        None,
        "Vocabulary of the model, one token per line; default: the one beside --init_checkpoint.",
    )
    output_dir: str | None = flag(
        None, "Folder for checkpoints and results; a stopped run continues from there."
    )
    init_checkpoint: str | None = flag(
        None,
        "Weights to start from: a checkpoint of TF1, of this project or of Hugging Face, or its "
        "folder; mini, the model of the package; or hf:OWNER/NAME, a model of a hub.",
    )
    do_train: bool = flag(False, "Train.")
    do_eval: bool = flag(False, "Evaluate at each checkpoint and after training.")
    # Not a flag here, because pretraining does not predict; other programs make it a flag.
    do_predict: bool = False
    # Not a flag here either, because pretraining trains the encoder: see `LayerMixSettings`.
    layer_mix: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class LayerMixSettings:
    """Whether only the head is trained, on all layers; a base of the settings of fine-tuning."""

    layer_mix: bool = flag(
        False,
        "Freeze the encoder, and train the head alone, on a learned mixture of the outputs of all "
        "layers (as ELMo is used).",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdapterSettings:
    """Whether adapters are trained (LoRA); a base of the settings of fine-tuning."""

    lora_rank: int = flag(
        0,
        "Freeze the encoder, and train an adapter of this rank for each dense layer in it, with "
        "the head; checkpoints hold these alone (LoRA); 0: off.",
        0,
    )
    lora_alpha: float | None = flag(
        None,
        "The adapters are multiplied by this / --lora_rank; default: by 1.",
        0,
        read_with={"lora_rank": GIVEN},
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeviceSettings:
    """The devices, and how workers share the examples."""

    distribution_strategy: str = flag(
        "default", "The tf.distribute strategy.", choices=DISTRIBUTION
    )
    num_gpus: int | None = flag(None, "Number of this machine's GPUs to use; default: all.", 0)
    tpu: str | None = flag(
        None,
        "Name or address of a TPU; 'local': the TPU of this machine.",
        read_with={"distribution_strategy": ("tpu",)},
    )
    input_sharding: str = flag(
        "element",
        "How workers share the examples. element: every worker reads all files, and the global "
        "batches are the same for any number of workers; file: each worker reads its own files.",
        choices=("element", "file"),
    )
    steps_per_loop: int = flag(10, "Most steps on the device between two returns to Python.", 1)
    jit_compile: bool | None = flag(
        None,
        "Compile the training step with XLA; default: yes, but on a processor in float32 not for a "
        "run that ends before the seconds of compiling are won back.",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CourseSettings:
    """The length of a run, and its checkpoints and evaluations."""

    train_batch_size: int = flag(
        32, "Number of examples in a training step, of all replicas together.", 1
    )
    # Flags of pretraining alone: see `PretrainingSettings`.
    initial_batch_size: int | None = None
    batch_growth_steps: int | None = None
    gradient_accumulation_steps: int = flag(
        1, "Micro-batches into which each replica's share of a batch is divided.", 1
    )
    recompute: bool = flag(
        False,
        "Keep nothing of the inside of a layer for the backward pass, but compute it again: less "
        "memory for more time, and the same gradients.",
        read_with={"layer_mix": (False,)},
    )
    eval_batch_size: int = flag(8, "Number of examples in an evaluation step.", 1)
    num_train_steps: int | None = flag(
        100_000, "Number of training steps.", 1, read_with={"train_minutes": (None,)}
    )
    train_minutes: float | None = flag(
        None,
        "Length of the run by the clock, with its evaluations and checkpoints, in place of a "
        "number of steps; the learning rate follows the clock, too.",
        0,
    )
    max_eval_steps: int | None = flag(100, "Most batches in an evaluation.", 1)
    save_checkpoints_steps: int | None = flag(1000, "Number of steps between two checkpoints.", 1)
    keep_checkpoint_max: int = flag(5, "Number of newest checkpoints to keep.", 1)
    keep_best: bool = flag(True, "Also keep the checkpoint with the best held-out results.")
    early_stopping_patience: int = flag(
        0, "Stop after this many evaluations without improvement; 0: never.", 0
    )
    skip_corrupt_records: int = flag(
        0, "Number of corrupt records to skip before the run fails.", 0
    )
    seed: int = flag(
        12345, "Seed of the initial weights, of dropout and of the order of examples.", 0, 2**32 - 1
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecipeSettings:
    """The optimizer, the learning rate and the regularization."""

    learning_rate: float = flag(5e-5, "Learning rate at the end of the warmup.", 0)
    num_warmup_steps: int = flag(
        10_000, "Number of steps of linear warmup.", 0, read_with={"train_minutes": (None,)}
    )
    warmup_proportion: float | None = flag(
        None,
        "Warmup as a share of all steps, or of --train_minutes (default there: 0.1); replaces "
        "--num_warmup_steps.",
        0,
        1,
    )
    optimizer: str = flag(
        "lamb",
        "The optimizer: lamb, adamw, muon, lion, adafactor, or keras.NAME for another one of "
        "keras.optimizers.",
    )
    lamb_variant: str = flag(
        "nezha", "LAMB as NEZHA's code or as the paper has it.", choices=("nezha", "paper")
    )
    adamw_variant: str = flag(
        "bert", "AdamW as BERT's code or as the paper has it.", choices=("bert", "paper")
    )
    weight_decay_rate: float = flag(
        0.01, "Weight decay of all weights except LayerNorm's and biases.", 0
    )
    clip_norm: float = flag(1.0, "Bound of the gradients' global norm; above 0.", 0)
    schedule: str = flag(
        "nezha",
        "The learning rate after the warmup. nezha: polynomial decay without a jump at the "
        "warmup's end; bert: with a jump there, as in BERT's code; cosine: half a cosine; "
        "trapezoid: the full rate, then a linear decay; constant: the full rate.",
    )
    decay_proportion: float = flag(
        0.2,
        "Share of all steps, or of --train_minutes, in which the rate of --schedule=trapezoid "
        "decays.",
        0,
        1,
        read_with={"schedule": ("trapezoid",)},
    )
    decay_power: float = flag(1.0, "Exponent of the polynomial decay; 1: linear.", 0)
    layer_decay: float = flag(
        1.0,
        "Learning rate of each layer relative to the layer above it.",
        0,
        1,
        read_with={"layer_mix": (False,)},
    )
    freeze_layers: int = flag(
        0,
        "Freeze the embeddings and this many first layers; 0: freeze nothing.",
        0,
        read_with={"layer_mix": (False,), "lora_rank": (0,)},
    )
    # No flag of pretraining: see `AdapterSettings`.
    lora_rank: int = 0
    label_smoothing: float = flag(
        0.0, "Share of the target probability to spread over all classes.", 0, 1
    )
    adversarial_epsilon: float = flag(
        0.0, "L2 size of the FGM perturbation; 0: off.", 0, read_with={"layer_mix": (False,)}
    )
    ema_decay: float = flag(
        0.0,
        "Decay of the moving average of the weights, which evaluation and use then take; 0: off.",
        0,
        1,
    )
    divergence_factor: float = flag(
        3.0, "Stop if the loss is above its minimum times this factor; 0: never.", 0
    )
    divergence_patience: int = flag(
        5, "Number of consecutive log entries with such a loss that stops the run.", 1
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrecisionSettings:
    """The dtype of the arithmetic, and the loss scale of float16."""

    precision: str = flag(
        "float32",
        "Dtype of the arithmetic; auto: what is fastest on these devices.",
        choices=(*PRECISIONS, "auto"),
    )
    # The initial scale and the growth are those of NEZHA's optimization.py.
    initial_loss_scale: float = flag(2.0**32, "Initial loss scale of mixed_float16.")
    loss_scale_growth_steps: int = flag(
        1000, "Number of consecutive finite steps after which the loss scale grows.", 1
    )
    loss_scale_growth_factor: float = flag(2.0, "Factor by which the loss scale grows.")
    loss_scale_backoff_factor: float = flag(
        0.5, "Factor of the loss scale after a step whose gradients are not finite."
    )
    max_skipped_steps: int = flag(
        100, "Stop after this many consecutive steps without finite gradients.", 1
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordSettings:
    """The log of a run, and the files that it makes at its end."""

    log_steps: int = flag(10, "Number of steps between two log entries.", 1)
    profile_steps: tuple[str, ...] | None = flag(
        None, "Two steps, such as 100,110; the steps between them are profiled."
    )
    peak_tflops: float | None = flag(
        None,
        "Peak TFLOP/s of a device at this precision, to log the utilization; default: the rate of "
        "products that is measured at the start (not on a TPU).",
        0,
    )
    record: tuple[str, ...] | None = flag(
        None,
        "Classes that also record the run, each as MODULE:CLASS, comma-separated; "
        "nezha_tf.training.trackers has MLflow and WandB.",
    )
    plot: bool = flag(False, "Draw curves.png at the end; needs the extra [plot].")
    do_export: bool = flag(False, "Export the best checkpoint as a SavedModel that takes raw text.")
    export_dir: str | None = flag(
        None,
        "Folder of the SavedModel; default: export in --output_dir.",
        read_with={"do_export": GIVEN},
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings(
    RecordSettings,
    PrecisionSettings,
    RecipeSettings,
    CourseSettings,
    DeviceSettings,
    ModelSettings,
):
    """The settings of all runs; each program has a subclass."""
