"""The vocabulary, which the tokenizers in Python and in the graph share."""

import functools

from nezha_tf.util import storage
from nezha_tf.util.errors import UserError

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_PIECES = (PAD, UNK, CLS, SEP, MASK)
LONGEST_PIECE = 256  # bytes; tensorflow-text takes no longer one


class Vocabulary:
    """Pieces and their ids.

    Attributes:
      pieces: list of V pieces; a piece's index is its id.
    """

    def __init__(self, pieces, source="the vocabulary"):
        """Args:
          pieces: strings in the order of their ids.
          source: its name in error messages.

        Raises:
          UserError: one of the five special pieces is missing.
        """
        self.pieces = list(pieces)
        # As in the originals' load_vocab, the id of a duplicate piece is that of the last one.
        self._ids = {piece: index for index, piece in enumerate(self.pieces)}
        missing = [piece for piece in SPECIAL_PIECES if piece not in self._ids]
        if missing:
            raise UserError(
                f"{source} lacks {', '.join(missing)}; add a line for each, or pass the "
                "vocabulary that belongs to the model"
            )

    @classmethod
    def from_file(cls, path):
        """Reads a `vocab.txt`: one piece per line; white space around it is removed.

        Raises:
          UserError: the file is missing, is not UTF-8 or has a piece that is too long (with the
            line number), or lacks special pieces.
        """
        try:
            with storage.open_binary(path, "rb") as file:
                lines = file.read().split(b"\n")
        except OSError as error:
            raise UserError(f"cannot read vocabulary {path}: {error.strerror}") from error
        if lines[-1] == b"":
            lines.pop()
        pieces = []
        for number, line in enumerate(lines, start=1):
            try:
                # A byte order mark does not belong to the first piece.
                piece = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise UserError(
                    f"vocabulary {path}, line {number}: not UTF-8; convert the file"
                ) from error
            if len(piece.encode()) > LONGEST_PIECE:
                raise UserError(
                    f"vocabulary {path}, line {number}: a piece has more than {LONGEST_PIECE} "
                    "bytes; is this file a vocabulary?"
                )
            pieces.append(piece)
        return cls(pieces, source=f"vocabulary {path}")

    def __len__(self):
        return len(self.pieces)

    def __contains__(self, piece):
        return piece in self._ids

    def ids_of(self, pieces):
        """Returns the ids of pieces as a list of int; unknown pieces get the id of [UNK]."""
        unknown = self._ids[UNK]
        return [self._ids.get(piece, unknown) for piece in pieces]

    def pieces_of(self, ids):
        """Returns the pieces of ids (0 to V - 1) as a list; a larger one raises IndexError."""
        return [self.pieces[index] for index in ids]

    @functools.cached_property
    def pad_id(self):
        """The id of [PAD], an int."""
        return self._ids[PAD]

    @functools.cached_property
    def cls_id(self):
        """The id of [CLS], an int."""
        return self._ids[CLS]

    @functools.cached_property
    def sep_id(self):
        """The id of [SEP], an int."""
        return self._ids[SEP]

    @functools.cached_property
    def mask_id(self):
        """The id of [MASK], an int."""
        return self._ids[MASK]


def check_vocabulary(config, vocabulary):
    """Raises a `UserError` if a vocabulary has more pieces than a model has rows."""
    if len(vocabulary) > config.vocab_size:
        raise UserError(
            f"the vocabulary has {len(vocabulary)} pieces and the model {config.vocab_size} rows "
            f"(vocab_size), none for {vocabulary.pieces[config.vocab_size]!r} and what follows; "
            "take the vocabulary that belongs to the model"
        )
