"""The classic way of making pretraining data: what `making_data.py` compares with.

Written by us as a stand-in for the TF1 original, which is not ours to spread, with its habits:
all documents in memory as strings, pairs and masks of one instance at a time in plain Python, a
`tf.train.Example` for each. Hugging Face's tokenizers takes the place of the tokenizer, so that
the comparison is not about that. Single tokens are masked; no word is segmented.

  python classic_data.py TEXT VOCABULARY OUTPUT DUPE_FACTOR LENGTH PREDICTIONS
"""

import os
import random
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf
from tokenizers import BertWordPieceTokenizer

SHORT_SHARE, MASKED_SHARE = 0.1, 0.15


def read_documents(path, vocabulary):
    """Returns a list of documents, lists of sentences, lists of tokens (str)."""
    tokenizer = BertWordPieceTokenizer(vocabulary, lowercase=True)
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    documents = [[]]
    for line, found in zip(
        lines, tokenizer.encode_batch(lines, add_special_tokens=False), strict=True
    ):
        if not line:
            documents.append([])
        elif found.tokens:
            documents[-1].append(found.tokens)
    return [document for document in documents if document]


def make_instances(documents, dupe_factor, length, predictions, vocabulary, rng):
    """Returns all instances, shuffled: (tokens, segment ids, is random, places, labels)."""
    rng.shuffle(documents)
    instances = []
    for _ in range(dupe_factor):
        for index in range(len(documents)):
            for first, second, is_random in pairs_of(documents, index, length - 3, rng):
                tokens = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
                segment_ids = [0] * (len(first) + 2) + [1] * (len(second) + 1)
                masked = mask(tokens, predictions, vocabulary, rng)
                instances.append((masked[0], segment_ids, is_random, *masked[1:]))
    rng.shuffle(instances)
    return instances


def pairs_of(documents, index, most, rng):
    """Yields (A, B, whether B is random) of a document."""
    document = documents[index]
    target = rng.randint(2, most) if rng.random() < SHORT_SHARE else most
    chunk, size, place = [], 0, 0
    while place < len(document):
        chunk.append(document[place])
        size += len(document[place])
        place += 1
        if place < len(document) and size < target:
            continue
        split = rng.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
        first = [token for sentence in chunk[:split] for token in sentence]
        is_random = len(chunk) == 1 or rng.random() < 0.5
        if is_random:
            other = index
            for _ in range(10):
                other = rng.randint(0, len(documents) - 1)
                if other != index:
                    break
            second = []
            for sentence in documents[other][rng.randint(0, len(documents[other]) - 1) :]:
                second.extend(sentence)
                if len(second) >= target - len(first):
                    break
            place -= len(chunk) - split
        else:
            second = [token for sentence in chunk[split:] for token in sentence]
        while len(first) + len(second) > most:
            longer = first if len(first) > len(second) else second
            if rng.random() < 0.5:
                del longer[0]
            else:
                longer.pop()
        yield first, second, is_random
        chunk, size = [], 0


def mask(tokens, predictions, vocabulary, rng):
    """Returns (tokens with replacements, places in rising order, what stood there)."""
    order = [place for place, token in enumerate(tokens) if token not in ("[CLS]", "[SEP]")]
    rng.shuffle(order)
    output = list(tokens)
    budget = min(predictions, max(1, round(len(tokens) * MASKED_SHARE)))
    places = sorted(order[:budget])
    for place in places:
        if rng.random() < 0.8:
            output[place] = "[MASK]"
        elif rng.random() >= 0.5:
            output[place] = vocabulary[rng.randint(0, len(vocabulary) - 1)]
    return output, places, [tokens[place] for place in places]


def encode(instance, length, predictions, ids):
    """Returns the bytes of an instance's `tf.train.Example`."""
    tokens, segment_ids, is_random, places, labels = instance
    weights = [1.0] * len(places) + [0.0] * (predictions - len(places))
    integers = {
        "input_ids": padded([ids[token] for token in tokens], length),
        "input_mask": padded([1] * len(tokens), length),
        "segment_ids": padded(segment_ids, length),
        "masked_lm_positions": padded(places, predictions),
        "masked_lm_ids": padded([ids[token] for token in labels], predictions),
        "next_sentence_labels": [int(is_random)],
    }
    features = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        for name, values in integers.items()
    }
    features["masked_lm_weights"] = tf.train.Feature(float_list=tf.train.FloatList(value=weights))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def padded(values, length):
    return [*values, *[0] * (length - len(values))]


def main(text, vocabulary, output, dupe_factor, length, predictions):
    length, predictions = int(length), int(predictions)
    with open(vocabulary, encoding="utf-8") as file:
        tokens = [line.strip() for line in file]
    ids = {token: index for index, token in enumerate(tokens)}
    rng = random.Random(12345)
    documents = read_documents(text, vocabulary)
    instances = make_instances(documents, int(dupe_factor), length, predictions, tokens, rng)
    with tf.io.TFRecordWriter(output) as writer:
        for instance in instances:
            writer.write(encode(instance, length, predictions, ids))


if __name__ == "__main__":
    main(*sys.argv[1:])
