"""What two of the programs on a corpus do with their settings."""

import sys

from nezha_tf.util.errors import require_flag


def create(settings):
    """Makes TFRecords, as `ProgramSettings` say."""
    from nezha_tf.corpus.create import create_pretraining_data

    for name in ("input_file", "output_file", "vocab_file"):
        require_flag(getattr(settings, name), name)
    create_pretraining_data(**vars(settings))


def inspect(settings):
    """Shows or checks TFRecords, as `InspectionSettings` say; ends with status 1 after faults."""
    from nezha_tf.corpus.inspection import show
    from nezha_tf.corpus.record_check import check

    require_flag(settings.input_file, "input_file")
    if not settings.check:
        show(settings)
    elif check(settings):
        sys.exit(1)
