"""The settings of tools/demo.py."""

import dataclasses

from nezha_tf.resources import DEFAULT_MODEL
from nezha_tf.util.settings import flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoSettings:
    """Which models the page shows, and where it is served."""

    model_folder: tuple[str, ...] = flag(
        (DEFAULT_MODEL,),
        "Models, comma-separated: the --output_dir of runs, folders of published models, exports "
        "of tools/export_saved_model.py, mini, the model of the package, or hf:OWNER/NAME.",
    )
    host: str = flag(
        "127.0.0.1", "Address to listen on; 0.0.0.0: other machines can open the page, too."
    )
    port: int = flag(7860, "Port to listen on.", 1, 65535)
