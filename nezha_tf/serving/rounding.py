"""What a smaller form of a model answers otherwise than the model itself, on texts."""

from typing import NamedTuple

import numpy as np

from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.util import console, storage
from nezha_tf.util.errors import UserError
from nezha_tf.util.language import translated

# Texts that are answered at a time, and tokens at which they are cut, [CLS] and [SEP] included.
_BATCH = 32
_LENGTH = 128
# Choices of a question, where a model chooses; each text is one of them.
_CHOICES = 4


class Loss(NamedTuple):
    """How two forms of a model differ on texts.

    Attributes:
      count: number of texts.
      differences: dict of each floating-point output to its (largest, mean) absolute difference.
      same: dict of each answer to the share that is the same: of outputs that are no floating-point
        numbers, and of the likeliest places of the outputs `..._logits`.
    """

    count: int
    differences: dict
    same: dict

    def told(self, of):
        """Returns the differences as a table; `of` says between what they are."""
        rows = [
            (name, translated(f"at most {largest:.1e}"), translated(f"in the mean {mean:.1e}"))
            for name, (largest, mean) in self.differences.items()
        ]
        rows += [
            (name, translated("the same"), f"{share:.2%}") for name, share in self.same.items()
        ]
        title = translated(f"{of}, on {console.plural(self.count, 'text')}:")
        return console.table(title, rows)


def lines_of(path):
    """Returns the lines of a text file that are not blank.

    Raises:
      UserError: it is not there, not UTF-8, or has none.
    """
    try:
        with storage.open_text(path) as file:
            lines = [line.strip() for line in file if line.strip()]
    except FileNotFoundError as error:
        raise UserError(f"--texts={path} is not there") from error
    except UnicodeDecodeError as error:
        raise UserError(f"--texts={path} is not UTF-8; convert it") from error
    if not lines:
        raise UserError(f"--texts={path} has no text")
    return lines


def batches_of(texts, vocab_file, rank):
    """Returns a list of batches of texts as a model's inputs, each a dict of int32 arrays.

    They are tokenized in the case of the vocabulary, and cut.

    Args:
      texts: list of str.
      vocab_file: the vocabulary.
      rank: 2 for arrays [B, T]; 3 for [B, C, T], in which C texts are the choices of a question.
    """
    tokenizer = _tokenizer(vocab_file)
    rows = []
    for text in texts:
        tokens = ["[CLS]", *tokenizer.tokenize(text)[: _LENGTH - 2], "[SEP]"]
        rows.append(tokenizer.convert_tokens_to_ids(tokens))
    rows.sort(key=len)  # A batch has texts of like lengths.
    return [_packed(rows[first : first + _BATCH], rank) for first in range(0, len(rows), _BATCH)]


def loss(whole, smaller, batches):
    """Returns the `Loss` of a smaller form of a model.

    Args:
      whole, smaller: functions of a model's inputs that return a dict of name to array [B, ...].
      batches: see `batches_of`.
    """
    found = [(inputs["input_mask"], whole(**inputs), smaller(**inputs)) for inputs in batches]
    differences, same = {}, {}
    for name, first in found[0][1].items():
        pairs = [(one[name], other[name]) for _, one, other in found]
        if np.issubdtype(first.dtype, np.floating):
            of_each = np.concatenate([np.abs(one - other).ravel() for one, other in pairs])
            differences[name] = float(of_each.max()), float(of_each.mean())
        if name.endswith("_logits"):
            pairs = [(one.argmax(axis=-1), other.argmax(axis=-1)) for one, other in pairs]
            same[f"likeliest of {name}"] = _share(pairs)
        elif name not in differences:
            same[name] = _share(pairs)
    count = sum(int(mask.any(axis=-1).sum()) for mask, _, _ in found)
    return Loss(count, differences, same)


def _tokenizer(vocab_file):
    with open(vocab_file, encoding="utf-8") as file:
        words = [token for token in file.read().splitlines() if not token.startswith("[")]
    return FullTokenizer(vocab_file, do_lower_case=all(word == word.lower() for word in words))


def _packed(rows, rank):
    if rank == 3:  # A question may have fewer choices.
        rows = [*rows, *[[]] * (-len(rows) % _CHOICES)]
    mask = np.arange(max(map(len, rows))) < np.array([[len(row)] for row in rows])
    ids = np.zeros(mask.shape, "int32")
    ids[mask] = np.concatenate(rows)
    arrays = {
        "input_ids": ids,
        "input_mask": mask.astype("int32"),
        "segment_ids": np.zeros_like(ids),
    }
    shape = (-1, _CHOICES, ids.shape[1]) if rank == 3 else ids.shape
    return {name: array.reshape(shape) for name, array in arrays.items()}


def _share(pairs):
    return float(np.mean(np.concatenate([np.ravel(one == other) for one, other in pairs])))
