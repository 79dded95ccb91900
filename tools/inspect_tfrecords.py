"""Shows the examples of TFRecord files as text, or checks the files."""

import sys

try:
    from nezha_tf.programs import start
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

if __name__ == "__main__":
    start.run("inspect_tfrecords")
