"""What determines the bytes of pretraining data, under the names of the flags."""

import dataclasses

from nezha_tf.data.corruption.policies import (
    DEFAULT_MASKED_LM_PROB,
    POLICIES,
    UNMASKED,
    MaskingPolicy,
    check_share,
)
from nezha_tf.errors import UserError
from nezha_tf.text.user_dictionary import read_user_dictionary
from nezha_tf.text.word_segmentation import require_segmenter


@dataclasses.dataclass(frozen=True)
class Settings:
    """The flags of `tools/create_pretraining_data.py` on which the records depend.

    With the text, the vocabulary and the user dictionary they determine every byte; how many
    workers there are, and where the files lie, is no part of them.

    Attributes:
      vocab_file: path of a `vocab.txt`.
      do_lower_case: lower-case the text and strip accents.
      max_seq_length: length T of an example, in pieces.
      max_predictions_per_seq: most predictions P of an example.
      random_seed: seed that every draw derives from.
      dupe_factor: how often each document is gone through, masked anew each time; held-out
        documents are gone through once.
      masked_lm_prob: share of the pieces that is predicted.
      short_seq_prob: how often a pass over a document aims at a random shorter length.
      random_next_prob: how often segment B is of another document, where there is a choice.
      masking: what is masked together; with "none" nothing is, each document is gone through
        once, and words and entities of `user_dict` are units for the masking of the reader.
      pair: what the two segments of an example are: "nsp", "sop" or "none".
      segmenter: what cuts the text into words.
      user_dict: path of a dictionary of one's own words, or "".
      on_invalid: what is done with bytes that are not UTF-8: "error", "replace" or "skip" (the
        line).
      num_output_shards: files that the training documents are parted into.
      eval_share: share of the documents kept out; 0 where none are.
    """

    vocab_file: str
    do_lower_case: bool = True
    max_seq_length: int = 128
    max_predictions_per_seq: int = 20
    random_seed: int = 12345
    dupe_factor: int = 10
    masked_lm_prob: float = DEFAULT_MASKED_LM_PROB
    short_seq_prob: float = 0.1
    random_next_prob: float = 0.5
    masking: str = "whole_word"
    pair: str = "nsp"
    segmenter: str = "jieba"
    user_dict: str = ""
    on_invalid: str = "error"
    num_output_shards: int = 1
    eval_share: float = 0.0

    @classmethod
    def of_flags(cls, **values):
        """Returns the settings with these values, by name.

        Raises:
          UserError: a share that is none, a bad dictionary, entities without one, a segmenter
            that is not installed, or flags of masking that have no say where nothing is masked.
        """
        settings = cls(**values)
        check_share(settings.masked_lm_prob)
        _check_words(settings)
        if settings.masking != UNMASKED:
            return settings
        for name in ("masked_lm_prob", "max_predictions_per_seq", "dupe_factor"):
            value, default = getattr(settings, name), getattr(cls, name)
            if value != default and (name, value) != ("dupe_factor", 1):
                raise UserError(
                    f"--{name}={value} has no say with --masking=none: each document is gone "
                    "through once and masked by run_pretraining.py; leave it out, or pass "
                    f"{1 if name == 'dupe_factor' else default}"
                )
        return dataclasses.replace(settings, dupe_factor=1)


def _check_words(settings):
    """Raises a `UserError` for what is wrong with the dictionary or the segmenter.

    What makes the records would find it as well, but after the corpus has been gone through.
    """
    policy = POLICIES.get(settings.masking, MaskingPolicy())
    if settings.user_dict:
        read_user_dictionary(settings.user_dict)
    elif policy.of_entities:
        raise UserError(f"--masking={settings.masking} needs --user_dict, the entities")
    if policy.of_words:
        require_segmenter(settings.segmenter)
