"""Serves a page on which models can be tried: what a run has left, published ones, and exports.

python tools/demo.py --model_folder=out/chnsenti,out/ner
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

flags.DEFINE_list(
    "model_folder",
    None,
    "Models, comma-separated: --output_dir of runs, folders of published ones, or exports of "
    "tools/export_saved_model.py.",
)
flags.DEFINE_string(
    "host", "127.0.0.1", "Address to listen on; 0.0.0.0 lets other machines in as well."
)
flags.DEFINE_integer("port", 7860, "Port to listen on.", 1, 65535)


def main():
    from nezha_tf.demo.serve import serve

    serve(cli.flag_values())


if __name__ == "__main__":
    cli.run(main)
