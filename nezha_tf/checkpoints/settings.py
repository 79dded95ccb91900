"""The settings of tools/convert_checkpoint.py."""

import dataclasses

from nezha_tf.util.settings import flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConversionSettings:
    """Which model is converted, into which layout, and what is left out or changed."""

    source: str | None = flag(
        None,
        "The model: the folder of a run or of a published model, the prefix of a TF1 checkpoint "
        "(model.ckpt), a file of Hugging Face's (.safetensors, .bin), or hf:OWNER/NAME.",
        name="from",
    )
    to: str | None = flag(None, "Folder to make; it must not exist.")
    format: str = flag(
        "nezha_tf",
        "Layout of the new folder. tf1: bert_config.json and bert_model.ckpt, for TF1's programs; "
        "nezha_tf: bert_config.json and model.ckpt-STEP, as a run of this project; hugging_face: "
        "config.json and model.safetensors.",
        choices=("tf1", "nezha_tf", "hugging_face"),
    )
    config_file: str | None = flag(
        None, "Configuration of the model; default: the file beside the weights."
    )
    vocab_file: str | None = flag(
        None, "Vocabulary of the model; default: vocab.txt beside the weights."
    )
    new_vocab_file: str | None = flag(
        None,
        "Vocabulary of the new model, to train on with it: tokens that the present one has keep "
        "their rows; the others begin as the mean of the pieces into which it splits them, or as "
        "[UNK].",
    )
    do_lower_case: bool | None = flag(
        None,
        "Whether the model reads lower-cased text; default: what the files beside the weights say.",
    )
    allow_missing: tuple[str, ...] = flag(
        (),
        "Weights, by TF1 name or its beginning (bert/pooler/), comma-separated: if one of them is "
        "missing, or belongs to no such model, the model is converted without it.",
    )
    drop: tuple[str, ...] = flag(
        (), "Weights to leave out, by TF1 name or its beginning (cls/), comma-separated."
    )
    type_vocab_size: int | None = flag(
        None,
        "Number of segment rows of the new model. 6, of a model with 2: rows 2, 3 and 4 begin as "
        "row 0, row 5 as row 1, as UniLM does; 2, of a model with 6: the first two.",
    )
    num_hidden_layers: int | None = flag(
        None,
        "Number of layers of the new model, a multiple of the present one: the layers are copied "
        "one above the other, to train on with a deeper model (progressive stacking).",
        1,
    )
    averages: bool = flag(
        False, "Convert the moving averages of the weights (--ema_decay), not the weights."
    )
    dtype: str = flag("float32", "Dtype of the new weights.", choices=("float32", "float16"))
