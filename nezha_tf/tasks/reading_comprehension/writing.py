"""Writes files of answers: one text for each question, and the candidates with their places."""

import json
import os

from nezha_tf.util import files

COLUMNS = ("id", "rank", "text", "start", "end", "probability", "start_logit", "end_logit")


def write_answers(folder, prefix, form, ids, predictions):
    """Writes `predictions.json` in SQuAD's format, {id: text}, and `nbest_predictions.jsonl`.

    Args:
      folder: the folder to write to.
      prefix: prefix of the file names.
      form: "jsonl", one question per line, or "tsv", one candidate per line. In "tsv", white
        space inside a text (tabs, line ends) becomes single spaces; `start` and `end` refer to
        the original text.
      ids: list of the questions' ids.
      predictions: list of `Prediction`, one for each id.

    Returns:
      The path of the first file.
    """
    pairs = list(zip(ids, predictions, strict=True))
    path = os.path.join(folder, f"{prefix}predictions.json")
    texts = {name: prediction.best.text for name, prediction in pairs}
    files.write_text(path, json.dumps(texts, ensure_ascii=False, indent=2) + "\n")
    lines = _json_lines(pairs) if form == "jsonl" else _columns(pairs)
    files.write_text(os.path.join(folder, f"{prefix}nbest_predictions.{form}"), "".join(lines))
    return path


def _json_lines(pairs):
    for name, prediction in pairs:
        best = prediction.best
        line = {"id": name, "prediction": best.text, "start": best.start, "end": best.end}
        line["probability"] = best.probability
        if prediction.null_score_diff is not None:
            line["null_score_diff"] = prediction.null_score_diff
        line["nbest"] = [candidate._asdict() for candidate in prediction.candidates]
        yield json.dumps(line, ensure_ascii=False) + "\n"


def _columns(pairs):
    yield "\t".join(COLUMNS) + "\n"
    for name, prediction in pairs:
        for rank, candidate in enumerate(prediction.candidates, start=1):
            values = {"id": name, "rank": rank, **candidate._asdict()}
            values["text"] = " ".join(candidate.text.split())
            cells = ("" if values[column] is None else str(values[column]) for column in COLUMNS)
            yield "\t".join(cells) + "\n"
