"""Label Studio's exports: tasks with annotations, annotations with their task, and JSON-MIN."""

import collections
import itertools

from nezha_tf.data.lines import RowFault
from nezha_tf.data.spans import (
    EXCLUSIVE,
    NO_LABEL,
    Annotated,
    EntitySpan,
    agrees,
    only_label,
    spans_of,
)

UNLABELLED = "tasks without an annotation, passed over"
KINDS = ("labels", "hypertextlabels")


def is_task(value):
    """Whether a value is a task: {"data": {...}, "annotations" or "completions": [...]}."""
    return isinstance(value.get("data"), dict)


def read_task(value):
    """Reads what `is_task` fits.

    Raises:
      RowFault: the task has annotations that differ, of which none is marked as ground truth.
    """
    notes, live = collections.Counter(), []
    for annotation in _annotations(value):
        is_cancelled = annotation.get("was_cancelled") or annotation.get("skipped")
        notes["cancelled annotations, passed over"] += bool(is_cancelled)
        if not is_cancelled:
            live.append(annotation)
    pool = [annotation for annotation in live if annotation.get("ground_truth")] or live
    found = [_results(annotation) for annotation in pool]
    if len({str(sorted(map(repr, spans))) for spans, _, _ in found}) > 1:
        raise RowFault(
            f"the task has {len(found)} annotations with different entities; mark one as ground "
            "truth, or cancel the others"
        )
    spans, targets, passed_over = found[0] if found else (None, [], {})
    if len(targets) > 1:
        raise RowFault(
            f"entities in several texts ({', '.join(map(repr, targets))}); export one of them"
        )
    notes.update(passed_over)
    name = _text_name(value["data"], [*targets, "text"], spans or [])
    return Annotated(value["data"][name], spans, +notes)


def write_task(value, found):
    """Writes a task with predictions, as Label Studio imports it."""
    from_name, to_name = _names(value)
    result = [
        {
            "from_name": from_name,
            "to_name": to_name,
            "type": "labels",
            "score": p.probability,
            "value": {"start": p.start, "end": p.end, "text": p.words, "labels": [p.label]},
        }
        for p in found
    ]
    kept = {k: v for k, v in value.items() if k not in ("annotations", "completions", "drafts")}
    score = min((p.probability for p in found), default=1.0)
    prediction = {"model_version": "nezha_tf", "score": score, "result": result}
    return {**kept, "predictions": [prediction]}


def is_annotation(value):
    """Whether a value is an annotation with its task, as cloud storages get it."""
    task = value.get("task")
    return "result" in value and isinstance(task, dict) and is_task(task)


def read_annotation(value):
    """Reads what `is_annotation` fits; see `read_task`."""
    return read_task(_as_task(value))


def write_annotation(value, found):
    """Writes a task with predictions."""
    return write_task(_as_task(value), found)


def _as_task(value):
    annotation = {name: part for name, part in value.items() if name != "task"}
    return {"data": value["task"]["data"], "annotations": [annotation]}


def is_minimal(value):
    """Whether a value has JSON-MIN's form: the data, and a list of entities by the tag's name."""
    is_one = "annotation_id" in value or bool(_minimal_names(value))
    return is_one and not isinstance(value.get("entities"), list)


def read_minimal(value):
    """Reads what `is_minimal` fits."""
    entities = [entity for name in _minimal_names(value) for entity in value[name]]
    spans, notes = spans_of(entities)
    return Annotated(value[_text_name(value, ["text"], spans)], spans, notes)


def write_minimal(value, found):
    """Writes what `is_minimal` fits."""
    names = _minimal_names(value) or ["label"]
    entities = [
        {"start": p.start, "end": p.end, "text": p.words, "labels": [p.label]} for p in found
    ]
    return {**value, **{name: [] for name in names}, names[0]: entities}


def _annotations(value):
    """Returns the annotations (in older versions, completions) of a task, a list of dicts."""
    found = value.get("annotations", value.get("completions")) or []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise RowFault('"annotations" is not a list of objects')
    return found


def _results(annotation):
    """Returns (spans, names of their texts, `Counter` of what was passed over)."""
    spans, targets, notes = [], {}, collections.Counter()
    results = annotation.get("result") or []
    if not isinstance(results, list) or not all(isinstance(one, dict) for one in results):
        raise RowFault('"result" is not a list of objects')
    for result in results:
        value, kind = result.get("value"), result.get("type", KINDS[0])
        if str(kind).endswith("labels") and kind not in KINDS:
            raise RowFault(f"marks of the kind {str(kind)[:40]!r} are not of a text")
        if kind not in KINDS or not isinstance(value, dict):
            notes[f"results of the kind {str(kind)[:40]!r}, passed over"] += 1
            continue
        span = _span(value, kind)
        notes[NO_LABEL] += span is None
        if span:
            spans.append(span)
            targets[str(result.get("to_name", "text"))] = None
    return spans, list(targets), notes


def _span(value, kind):
    """Returns the `EntitySpan` of a result; places in HTML are those in its text."""
    inner = value.get("globalOffsets")
    if isinstance(inner, dict):
        value = {**value, **inner}
    label = only_label(value.get(kind, value.get(KINDS[0])))
    words = value.get("text")
    words = words if isinstance(words, str) else None
    return (
        EntitySpan(value.get("start"), value.get("end"), label, words)
        if label is not None
        else None
    )


def _names(value):
    """Returns (from_name, to_name) of a task's entities."""
    for part in (*_annotations(value), *(value.get("predictions") or [])):
        for result in part.get("result") or [] if isinstance(part, dict) else []:
            if isinstance(result, dict) and result.get("type") in KINDS:
                return result.get("from_name", "label"), result.get("to_name", "text")
    return "label", "text"


def _text_name(data, likely, spans):
    """Returns the name of the text that has the entities; it need not be the name of its tag."""
    texts = [name for name, value in data.items() if isinstance(value, str) and value.strip()]
    names = [name for name in likely if name in texts]
    if not names and len(texts) == 1:
        return texts[0]
    if spans := [span for span in spans if span.words is not None]:
        has = (n for n in [*names, *texts] if any(agrees(r, data[n], spans) for r in EXCLUSIVE))
        names = [*itertools.islice(has, 1)] or names
    if names:
        return names[0]
    one_of = f"one of {', '.join(map(repr, texts))} " if texts else ""
    raise RowFault(f'no text: {one_of}must be named "text"')


def _minimal_names(value):
    return [name for name, found in value.items() if isinstance(found, list) and _are_marks(found)]


def _are_marks(found):
    return bool(found) and all(
        isinstance(one, dict) and isinstance(one.get("labels"), list) and "start" in one
        for one in found
    )
