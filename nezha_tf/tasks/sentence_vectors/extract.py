"""Writes the vectors of the texts of a file, or the cosine similarity of pairs."""

import contextlib
import functools
import json
import os
import tempfile

import numpy as np

from nezha_tf.data.lines import BadRows
from nezha_tf.generation.model import UNREAD_NAMES, load_model, open_model, with_defaults
from nezha_tf.modeling import positions
from nezha_tf.modeling.encoder import NezhaEncoder
from nezha_tf.tasks.classification import metrics
from nezha_tf.tasks.classification.labels import Number
from nezha_tf.tasks.sentence_vectors import vectors
from nezha_tf.util import console, files, storage
from nezha_tf.util.errors import UserError, require_flag
from nezha_tf.util.settings import require_read

LAST_LAYER = ("-1",)
# The defaults of flags if the model folder does not say one.
DEFAULTS = {"max_seq_length": 128, "pooling": "mean", "normalize": False}
# Decimals of the numbers in JSON, as in extract_features.py of BERT.
DECIMALS = 6


def extract_features(settings):
    """Writes the vectors of texts, or the cosine similarity of pairs, by `ExtractSettings`.

    Returns:
      Text to print: how many texts were read, and where the result is.
    """
    _check(settings)
    paths = files.expand(require_flag(settings.input_file, "input_file"), "input_file")
    if settings.output_file:
        files.require_file(settings.output_file, "output_file")
        files.require_other(settings.output_file, "output_file", paths)
    columns, bad_rows = (settings.text_column, settings.text_pair_column), BadRows()
    rows = vectors.read_pairs(paths, settings.similarity, columns, settings.label_column, bad_rows)
    labels = _labels(rows) if settings.label_column else None
    if settings.level == "character" and "text_pair" in rows[0].values:
        raise UserError(
            f"{rows[0].place}: --level=character takes one text on each line, not a pair"
        )
    opened = open_model(settings)
    # The mixture is what the head of the model reads, and what sentence vectors are trained for.
    has_mix = opened.task.get("layer_mix", False)
    defaults = {**DEFAULTS, "layers": (vectors.MIX,) if has_mix else LAST_LAYER}
    settings = with_defaults(settings, opened, defaults)
    config, length = opened.config, settings.max_seq_length
    layers = vectors.layer_numbers(settings.layers, config.num_hidden_layers, has_mix)
    positions.of(config).check_length(
        config, length, f"--max_seq_length={length}", where=settings.bert_config_file
    )
    pooling = settings.pooling if settings.level == "text" else None
    singles = vectors.split_pairs(rows) if settings.similarity else rows
    texts = vectors.pack(singles, opened.tokenizer, length)
    make_model = functools.partial(NezhaEncoder, max_seq_length=max(map(len, texts.ids)))
    model, tokenizer = load_model(opened, make_model, () if pooling == "pooler" else UNREAD_NAMES)
    write_vectors = functools.partial(
        vectors.write,
        step=vectors.make_step(model, layers, pooling, settings.normalize and pooling is not None),
        width=config.hidden_size * len(layers),
        texts=texts,
        level=settings.level,
        batch_size=settings.predict_batch_size,
    )
    if settings.similarity:
        message = _write_similarity(settings.output_file, write_vectors, rows, labels)
    elif settings.output_file.endswith(".npy"):
        message = _write_array(settings.output_file, write_vectors, settings.level != "text")
    else:
        line_of = functools.partial(_line, texts, settings.level, tokenizer.vocabulary)
        message = _write_lines(settings.output_file, write_vectors, len(texts.rows), line_of)
    if not settings.similarity:
        message = f"{console.plural(len(texts.rows), 'text')}; {message}"
    truncated = f"; too long, so truncated: {texts.truncated:,}" if texts.truncated else ""
    return f"{message}{truncated}{bad_rows.note()}"


def _check(settings):
    require_read(settings)
    output_file = settings.output_file
    endings = (".json", ".jsonl") if settings.similarity else (".json", ".jsonl", ".npy")
    if not settings.similarity:
        require_flag(output_file, "output_file")
    elif settings.level != "text":
        raise UserError(f"--similarity compares whole texts; leave out --level={settings.level}")
    if output_file and not output_file.endswith(endings):
        raise UserError(f"--output_file={output_file} must end in {', '.join(endings)}")
    if not settings.similarity and storage.is_remote(output_file):
        # Vectors are written in any order, which remote stores do not allow.
        raise UserError(
            f"--output_file={output_file} is not on this machine; name a file here, and copy it "
            "there"
        )
    if settings.pooling == "pooler" and settings.layers not in (None, LAST_LAYER):
        raise UserError(
            "--pooling=pooler reads the last layer or the learned mixture; leave out --layers"
        )


def _write_array(path, write_vectors, has_several):
    """Writes [rows, D]; and in a second file where each text's rows begin, if it has several."""
    with files.whole_file(path) as temporary:
        offsets = write_vectors(temporary)
    if not has_several:
        return f"vectors in {path}"
    offsets_path = f"{path.removesuffix('.npy')}.offsets.npy"
    with files.whole_file(offsets_path) as temporary, open(temporary, "wb") as file:
        np.save(file, offsets)
    return f"vectors in {path}; text i has its rows [offsets[i], offsets[i + 1]), {offsets_path}"


def _write_lines(path, write_vectors, count, line_of):
    """Writes a line of JSON for each text: the columns of its row, and its vectors."""
    with files.whole_file(path) as temporary, _scratch(path) as scratch:
        offsets = write_vectors(scratch)
        found = np.load(scratch, mmap_mode="r")
        with open(temporary, "w", encoding="utf-8") as file:
            for index in console.progress(range(count), desc="writing", unit="text"):
                own = found[offsets[index] : offsets[index + 1]]
                own = own.astype(np.float64).round(DECIMALS).tolist()
                file.write(json.dumps(line_of(index, own), ensure_ascii=False) + "\n")
    return f"vectors in {path}"


def _line(texts, level, vocabulary, index, own):
    values = {"line": texts.rows[index].line, **texts.rows[index].values}
    if level == "text":
        return {**values, "vector": own[0]}
    if level == "token":
        tokens = vocabulary.tokens_of(texts.ids[index].tolist())
        return {**values, "tokens": tokens, "vectors": own}
    places = vectors.covered_characters(texts.spans[index])[0].tolist()
    characters = [values["text"][place] for place in places]
    return {**values, "characters": characters, "positions": places, "vectors": own}


def _write_similarity(path, write_vectors, rows, labels):
    with _scratch(path) as scratch:
        write_vectors(scratch)
        found = np.load(scratch, mmap_mode="r")
        similarities = [_cosine(*found[i : i + 2]) for i in range(0, len(found), 2)]
    if path:
        lines = [
            json.dumps({"line": row.line, **row.values, "similarity": value}, ensure_ascii=False)
            + "\n"
            for row, value in zip(rows, similarities, strict=True)
        ]
        files.write_text(path, "".join(lines))
    else:
        for row, value in zip(rows, similarities, strict=True):
            print(f"{value:.4f}  {row.values['text']}  |  {row.values['text_pair']}")
    mean = f"similarity {np.mean(similarities):.4f} on average"
    message = f"{console.plural(len(rows), 'pair')}; {mean}"
    if labels is None:
        return message
    correlation = metrics.regression(np.array(similarities), np.array(labels))["spearman"]
    return f"{message}; Spearman correlation with the labels {correlation:.4f}"


def _labels(rows):
    metrics.require_libraries()
    numbers, label_type = [], Number()
    for row in rows:
        try:
            numbers.append(label_type.encode(row.values["label"]))
        except ValueError as error:
            raise UserError(f"{row.place}: {error}") from error
    return numbers


def _cosine(first, second):
    first, second = first.astype(np.float64), second.astype(np.float64)
    norms = np.linalg.norm(first) * np.linalg.norm(second)
    return round(float(first @ second / max(norms, 1e-12)), DECIMALS)


@contextlib.contextmanager
def _scratch(output_file):
    """Yields the path of a temporary file on the disk of the output; of a remote one, anywhere."""
    folder = "" if storage.is_remote(output_file or "") else os.path.dirname(output_file or "")
    if folder:
        os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder or None) as scratch:
        yield os.path.join(scratch, "vectors.npy")
