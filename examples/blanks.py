"""How many single characters of texts a model fills in: six blanks a text, at random places.

  python examples/blanks.py --model=mini --input_file=out/mini/books.txt,out/mini/modern.txt \\
      --eval_share=0.01

A file has a sentence a line and a blank line between documents; its documents are cut into texts of
at most 126 tokens, whole sentences each. Only Chinese characters are hidden, each by [MASK], and
all six of a text at once. With --eval_share only the documents count that
tools/create_pretraining_data.py holds out of such a file with the same flag. A line for each file
tells the share of the characters that are the model's first choice, and of those among its first
five.
"""

import random
import sys

from absl import app, flags

try:
    import numpy as np

    import nezha_tf
    from nezha_tf import cli
    from nezha_tf.corpus.documents import draw_of
    from nezha_tf.data.corpus import read_documents
    from nezha_tf.text.vocabulary import CLS, MASK, SEP
    from nezha_tf.util.errors import UserError
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

BLANKS, MOST_TOKENS, BATCH, CHOICES = 6, 126, 32, 5
tf = cli.import_tensorflow()  # quietly
FLAGS = flags.FLAGS
flags.DEFINE_string("model", "mini", "The model: its folder, or mini.")
flags.DEFINE_list("input_file", None, "Held-out texts, comma-separated.", required=True)
flags.DEFINE_float("eval_share", 1.0, "The documents that this share holds out; 1: all.", 0, 1)
flags.DEFINE_integer("random_seed", 12345, "The same flag of the program that held them out.")
flags.DEFINE_integer("count", 1000, "Number of texts of each file, from the first on.", 1)
flags.DEFINE_integer("seed", 1, "Seed of the places.")


def main(_):
    try:
        tokenizer, model = nezha_tf.load(FLAGS.model)
        for path in FLAGS.input_file:
            first, among, count = filled(tokenizer, model, path)
            print(f"{path}: first choice {first:.4f}, among five {among:.4f}, of {count:,} blanks")
    except (UserError, OSError) as error:
        sys.exit(f"blanks.py: error: {error}")


def filled(tokenizer, model, path):
    """Returns (share of first choices, share among five, number of blanks)."""
    rng, rows = random.Random(FLAGS.seed), []
    for tokens in texts(tokenizer, path):
        places = [i for i, token in enumerate(tokens) if "\u4e00" <= token <= "\u9fff"]
        if len(places) >= BLANKS:
            rows.append((tokens, sorted(rng.sample(places, BLANKS))))
        if len(rows) == FLAGS.count:
            break
    if not rows:
        raise UserError(f"{path} has no text with {BLANKS} Chinese characters")
    ranks = np.concatenate(
        [_ranks(tokenizer, model, rows[i : i + BATCH]) for i in range(0, len(rows), BATCH)]
    )
    return (ranks < 1).mean(), (ranks < CHOICES).mean(), ranks.size


def texts(tokenizer, path):
    """Yields the lists of tokens of a file's texts."""
    for number, document in enumerate(read_documents(path)):
        if draw_of(FLAGS.random_seed, number) >= FLAGS.eval_share:
            continue
        tokens = []
        for sentence in document:
            new = tokenizer.tokenize(sentence)
            if tokens and len(tokens) + len(new) > MOST_TOKENS:
                yield tokens
                tokens = []
            tokens = (tokens + new)[:MOST_TOKENS]
        yield tokens


def _ranks(tokenizer, model, rows):
    """Returns how many tokens the model holds for likelier than the right one, for each blank."""
    ids = np.zeros((len(rows), MOST_TOKENS + 2), np.int32)
    right, mask = [], np.zeros_like(ids)
    for row, (tokens, places) in enumerate(rows):
        right.append(tokenizer.convert_tokens_to_ids([tokens[place] for place in places]))
        hidden = [MASK if i in places else token for i, token in enumerate(tokens)]
        found = tokenizer.convert_tokens_to_ids([CLS, *hidden, SEP])
        ids[row, : len(found)] = found
        mask[row, : len(found)] = 1
    positions = np.array([places for _, places in rows], np.int32) + 1
    inputs = {"input_ids": ids, "input_mask": mask, "segment_ids": np.zeros_like(ids)}
    inputs["masked_lm_positions"] = positions
    logits = model({name: tf.constant(value) for name, value in inputs.items()})["masked_lm_logits"]
    logits = tf.cast(logits, tf.float32)
    of_right = tf.gather(logits, tf.constant(right), axis=2, batch_dims=2)
    return tf.reduce_sum(tf.cast(logits > of_right[..., None], tf.int32), axis=2).numpy().ravel()


if __name__ == "__main__":
    app.run(main)
