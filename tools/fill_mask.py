"""Shows the likeliest tokens for each [MASK] of a text, from a file or from standard input."""

import sys

try:
    from nezha_tf.programs import start
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

if __name__ == "__main__":
    start.run("fill_mask")
