"""The settings of tools/build_vocab.py, and how texts are read."""

import dataclasses

from nezha_tf.util.settings import flag

TEXT_FILES = (
    "Text files, JSON lines or Parquet, compressed or not: names, folders or globs (** means all "
    "folders below), comma-separated."
)
ENCODING = flag("utf-8", "The encoding of the text files: utf-8, gb18030, big5, utf-16 ...")
TEXT_FIELDS = flag(
    (),
    "The fields of JSON or Parquet that are the text of a document, comma-separated; default: "
    "text, or else content.",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularySettings:
    """Which text a vocabulary is built from, and what goes into it."""

    input_file: str | None = flag(None, TEXT_FILES)
    output_file: str | None = flag(None, "The vocabulary to write.")
    vocab_size: int | None = flag(
        None,
        "Largest number of tokens. Without it the text decides: the most frequent characters that "
        "cover 99.95 % of the Chinese ones, and learned tokens about as frequent; together no more "
        "than 21128.",
        1,
    )
    do_lower_case: bool = flag(True, "Lower-case the text and strip accents.")
    min_character_count: int = flag(
        2, "Leave out Chinese characters that are in the text less often.", 1
    )
    common_characters: bool = flag(
        False, "Also take the most common Chinese characters: level 1 of GB 2312 and of Big5."
    )
    include_file: str | None = flag(
        None, "File with tokens that the vocabulary must contain, one on each line."
    )
    encoding: str = ENCODING
    text_fields: tuple = TEXT_FIELDS
    num_workers: int = flag(
        0, "Number of worker processes; 0: one for each core, fewer for a small text.", 0
    )
