"""Shows the examples of TFRecord files as text, or checks the files.

python tools/inspect_tfrecords.py --input_file='out/train*.tfrecord'
python tools/inspect_tfrecords.py --input_file='out/*.tfrecord' --check
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from nezha_tf.corpus.settings import InspectionSettings


def main(settings):
    from nezha_tf.corpus.inspection import show
    from nezha_tf.corpus.record_check import check
    from nezha_tf.util.errors import require_flag

    require_flag(settings.input_file, "input_file")
    if not settings.check:
        show(settings)
    elif check(settings):
        sys.exit(1)


if __name__ == "__main__":
    cli.run(main, InspectionSettings)
