"""Serves a web page on which models can be tried: runs, published models and exports.

python tools/demo.py --model_folder=out/chnsenti,out/ner
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.serving.settings import DemoSettings


def main(settings):
    from nezha_tf.serving.page import serve

    serve(settings)


if __name__ == "__main__":
    cli.run(main, DemoSettings)
