"""Writes the model of a run, or a published model, as a SavedModel that takes raw text.

python tools/export_saved_model.py --model_folder=out/chnsenti --output_dir=export
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.serving.settings import ExportSettings


def main(settings):
    from nezha_tf.serving.export import export

    print(export(settings))


if __name__ == "__main__":
    cli.run(main, ExportSettings)
