"""The settings of the tools for a corpus, with the names of the flags."""

import dataclasses

from nezha_tf.corpus.packing import PAIRS, SINGLE
from nezha_tf.data.text_forms import Reading
from nezha_tf.objectives.policies import (
    DEFAULT_MASKED_LM_PROB,
    POLICIES,
    UNMASKED,
    MaskingPolicy,
    check_share,
)
from nezha_tf.text.words import SEGMENTERS, read_user_dictionary, require_segmenter
from nezha_tf.util.errors import UserError
from nezha_tf.util.settings import flag

# With what flags are read: `read_with`.
_MASKED = {"masking": tuple(POLICIES)}
_WORDS_KEPT = {"masking": (*(n for n, policy in POLICIES.items() if policy.of_words), UNMASKED)}
_PAIRED = {"pair": tuple(pair for pair in PAIRS if pair not in SINGLE)}
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


@dataclasses.dataclass(frozen=True)
class Settings:
    """The flags of `tools/create_pretraining_data.py` that affect the records.

    Together with the text, the vocabulary and the user dictionary they determine every byte. The
    number of workers and the places of files do not matter.
    """

    vocab_file: str | None = flag(None, "The vocabulary, one token per line.")
    do_lower_case: bool = flag(True, "Lower-case the text and strip accents.")
    max_seq_length: int = flag(128, "Length of an example in tokens.", 5)
    max_predictions_per_seq: int = flag(20, "Most predictions in an example.", 1, read_with=_MASKED)
    random_seed: int = flag(12345, "Seed of all draws; the same seed gives the same bytes.")
    dupe_factor: int = flag(
        10,
        "Number of passes over each document, with new masks each; held-out documents have one.",
        1,
        read_with=_MASKED,
        usual=1,
    )
    masked_lm_prob: float = flag(
        DEFAULT_MASKED_LM_PROB, "Share of the tokens to predict.", 0, 1, read_with=_MASKED
    )
    short_seq_prob: float = flag(
        0.1,
        "Share of the passes over a document that make shorter examples.",
        0,
        1,
        read_with=_PAIRED,
    )
    random_next_prob: float = flag(
        0.5,
        "Share of the pairs whose second segment comes from another document.",
        0,
        1,
        read_with=_PAIRED,
    )
    masking: str = flag(
        "whole_word",
        "Masking policy. none: run_pretraining masks the examples when it reads them "
        "(--dynamic_masking), and each document has one pass.",
        choices=(*POLICIES, UNMASKED),
    )
    pair: str = flag(
        "nsp",
        "The segments of an example. nsp: two, the second random in half of the pairs; sop: two, "
        "swapped in half of the pairs; none: one segment of full sentences; stream: the same in "
        "the order of the text, for run_pretraining --memory_length; packed: several texts that do "
        "not see each other.",
        choices=PAIRS,
    )
    segmenter: str = flag(
        "jieba",
        "Program that splits the text into words.",
        choices=SEGMENTERS,
        read_with=_WORDS_KEPT,
    )
    user_dict: str = flag(
        "",
        "Dictionary of your own words or entities; each line: a word, its frequency, its tag.",
        read_with=_WORDS_KEPT,
    )
    on_invalid: str = flag(
        "error",
        "What to do with bytes that are not in the encoding. error: fail and name the line; "
        "replace: drop the bytes; skip: drop the line.",
        choices=("error", "replace", "skip"),
    )
    encoding: str = ENCODING
    text_fields: tuple = TEXT_FIELDS
    split_sentences: bool = flag(
        False, "Split lines into sentences, each of which ends with 。！？； or …; for paragraphs."
    )
    num_output_shards: int = 1
    eval_share: float = 0.0

    @property
    def reading(self):
        """The `Reading` of the corpus."""
        return Reading(self.text_fields, self.encoding, self.split_sentences, self.on_invalid)

    @classmethod
    def of_flags(cls, **values):
        """Returns the settings with these values, by name.

        Raises:
          UserError: a share is out of range, the dictionary is bad or missing, or the segmenter is
            not installed.
        """
        settings = cls(**values)
        check_share(settings.masked_lm_prob)
        settings.reading.check()
        policy = POLICIES.get(settings.masking, MaskingPolicy())
        if settings.user_dict:
            read_user_dictionary(settings.user_dict)
        elif policy.of_entities:
            raise UserError(
                f"--masking={settings.masking} needs --user_dict, a file with the entities"
            )
        if policy.of_words:
            require_segmenter(settings.segmenter)
        is_masked = settings.masking != UNMASKED
        return settings if is_masked else dataclasses.replace(settings, dupe_factor=1)


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class InspectionSettings:
    """The settings of tools/inspect_tfrecords.py."""

    input_file: str | None = flag(None, "TFRecord files: file names or globs, comma-separated.")
    vocab_file: str = flag(
        "", "Vocabulary of the examples; default: the one that the manifest beside them names."
    )
    first_record: int = flag(
        1, "Number of the first record to show, in each file.", 1, read_with={"check": (False,)}
    )
    num_records: int = flag(
        5, "Number of records to show, of all files together.", 1, read_with={"check": (False,)}
    )
    check: bool = flag(
        False,
        "Check every record against the schema and the manifest instead of showing examples; the "
        "exit status is 1 if there is a fault.",
    )
