"""A corpus in odd files, and the flags with which the tests of engines make data of it."""

import gzip

from conftest import RESOURCES

from nezha_tf.corpus.create import create_pretraining_data


def write_corpus(folder, repetitions=1):
    """Writes the sample in two files, one of them compressed; shards begin inside both.

    Args:
      folder: an existing folder.
      repetitions: how often the sample stands in each file.

    Returns:
      A glob of the files.
    """
    sample = (RESOURCES / "sample_corpus.txt").read_bytes()
    third = sample.index(b"\n\n", len(sample) // 3)
    first, second = sample[:third] + b"\n\xff\n\n", sample[third:] + b"\n\n"
    (folder / "a.txt").write_bytes(b"\xef\xbb\xbf" + repetitions * first)
    (folder / "b.txt.gz").write_bytes(gzip.compress(repetitions * second))
    return f"{folder}/*"


def arguments_of(corpus, folder, **changes):
    """Returns the arguments of `create_pretraining_data`, a dict; `changes` are added."""
    return {
        "input_file": corpus,
        "output_file": f"{folder}/train.tfrecord",
        "eval_output_file": f"{folder}/eval.tfrecord",
        "eval_share": 0.2,
        "vocab_file": str(RESOURCES / "vocab.txt"),
        "max_seq_length": 32,
        "max_predictions_per_seq": 5,
        "dupe_factor": 2,
        "masking": "token",  # needs no segmenter
        "on_invalid": "replace",
        "num_output_shards": 5,
        **changes,
    }


def create(corpus, folder, **changes):
    """Makes data with `arguments_of`."""
    create_pretraining_data(**arguments_of(corpus, folder, **changes))


def contents(folder):
    """Returns a dict of file name to bytes."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_same_bytes(corpus, folder, **engine):
    """Asserts that an engine makes the files of the tool itself.

    Args:
      corpus: see `write_corpus`.
      folder: an existing folder, for both.
      engine: the flags that choose the engine.

    Returns:
      The folder of what the engine has made.
    """
    local, elsewhere = folder / "local", folder / "elsewhere"
    create(corpus, local, num_workers=1)
    create(corpus, elsewhere, **engine)
    assert contents(local) == contents(elsewhere)
    assert len(contents(local)) == 2 * 6 + 1
    return elsewhere
