"""The `tokenizer.json` of Hugging Face's tokenizers that cuts text as `FullTokenizer` does.

Some texts are cut otherwise there, because its parts for BERT are fixed. Here, all is as in the
originals:

- [CLS], [MASK] and the other special tokens in a text are such tokens there, and are split here.
- Private-use characters vanish there, and are [UNK] here.
- A capital sigma at the end of a word becomes σ there, and ς here.
- The ideographs U+2B820 to U+2B91F are not separated there.
- Characters are of the kinds that an older Unicode gives them, before 2016's.
"""

from nezha_tf.text.tokenization import MAX_CHARS_PER_BASIC_TOKEN
from nezha_tf.text.vocabulary import CLS, SEP, SPECIAL_TOKENS, UNK, Vocabulary


def tokenizer_json(vocabulary: Vocabulary, do_lower_case: bool) -> dict:
    """Returns the contents of `tokenizer.json` for a vocabulary, and its lower-casing."""
    ids = dict(zip(vocabulary.tokens, vocabulary.ids_of(vocabulary.tokens), strict=True))
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": index,
                "content": token,
                "special": True,
                **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False),
            }
            for index, token in sorted((ids[token], token) for token in SPECIAL_TOKENS)
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,  # where text is lower-cased
            "lowercase": do_lower_case,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": _template("A"),
            "pair": _template("A", "B"),
            "special_tokens": {
                token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in (CLS, SEP)
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": UNK,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": MAX_CHARS_PER_BASIC_TOKEN,
            "vocab": ids,
        },
    }


def _template(*texts):
    """Returns the template [CLS] a [SEP], or [CLS] a [SEP] b [SEP], with its segments."""
    parts = [{"SpecialToken": {"id": CLS, "type_id": 0}}]
    for segment, text in enumerate(texts):
        parts.append({"Sequence": {"id": text, "type_id": segment}})
        parts.append({"SpecialToken": {"id": SEP, "type_id": segment}})
    return parts
