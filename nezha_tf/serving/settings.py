"""The settings of tools/export_saved_model.py, tools/convert_export.py and tools/demo.py."""

import dataclasses

from nezha_tf.resources import DEFAULT_MODEL
from nezha_tf.util.settings import flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportSettings:
    """The settings of tools/export_saved_model.py."""

    model_folder: str | None = flag(
        None,
        "The --output_dir of a run, or the folder of a published model: bert_config.json or "
        "config.json, weights and vocab.txt.",
    )
    output_dir: str | None = flag(None, "Folder of the SavedModel; it must not exist.")
    task: str | None = flag(
        None,
        "What the SavedModel does. features: vectors of texts; fill_mask: candidates for [MASK]; "
        "left_to_right: continues a prompt; seq2seq: writes targets; default: what the model was "
        "trained for.",
        choices=("features", "fill_mask", "left_to_right", "seq2seq"),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertExportSettings:
    """The settings of tools/convert_export.py."""

    saved_model: str | None = flag(None, "SavedModel to convert, written by export_saved_model.")
    output_file: str | None = flag(None, "File to write: NAME.tflite or NAME.onnx.")
    variant: str = flag(
        "float32",
        "Dtype of the weights. float16 (TFLite only): all weights, half the size; dynamic_range: "
        "matrices have 8 bits, a quarter of the size.",
        choices=("float32", "float16", "dynamic_range"),
    )
    texts: str = flag(
        "nezha_tf/resources/sample_corpus.txt",
        "File of texts, one a line, on which the smaller file is compared with one in float32; "
        "default: the sample of the package.",
        read_with={"variant": ("float16", "dynamic_range")},
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoSettings:
    """Which models the page shows, and where it is served."""

    model_folder: tuple[str, ...] = flag(
        (DEFAULT_MODEL,),
        "Models, comma-separated: the --output_dir of runs, folders of published models, exports "
        "of export_saved_model, mini, the model of the package, or hf:OWNER/NAME.",
    )
    host: str = flag(
        "127.0.0.1", "Address to listen on; 0.0.0.0: other machines can open the page, too."
    )
    port: int = flag(7860, "Port to listen on.", 1, 65535)
