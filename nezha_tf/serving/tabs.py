"""The tabs of the page. Each function lays out the tab of some models.

Its argument `models` is a dict of name to `serving.signature.Servable`. What a tab says is given in
English here, and shown in the language of the page (`page_words`).
"""

import inspect
import itertools
import math

import gradio as gr

from nezha_tf.data.choices import ONE_BLANK
from nezha_tf.serving import page_words
from nezha_tf.serving.page_words import shown as in_language
from nezha_tf.text.vocabulary import MASK
from nezha_tf.util.errors import UserError

# The model would take too long for longer texts, and too much memory for more choices.
MOST_CHARACTERS, MOST_CHOICES = 5000, 50


def classification(models):
    has_pairs = any("text_pair" in model.inputs for model in models.values())
    text = page_words.TEXT
    texts = [text_box("Text", text), text_box("Second text", text, visible=has_pairs)]
    shown = [gr.Label(show_label=False, num_top_classes=10, render=False)]

    def classify(model, text, text_pair):
        pair = {"text_pair": text_pair} if "text_pair" in model.inputs else {}
        answer = model(text=text, **pair)
        if "value" in answer:
            return [f"{answer['value']:.4g}"], ""
        probabilities = dict(zip(model.labels, answer["probabilities"], strict=True))
        if "label" in answer:
            return [probabilities], ""
        predicted = list(itertools.compress(model.labels, answer["labels_on"]))
        # One predicted class is the likeliest, which the page shows anyway.
        classes = ", ".join(predicted) or in_language("none")
        line = "" if len(predicted) == 1 else f"{in_language('predicted')}: {classes}"
        return [probabilities], line

    fill_tab(models, "Classify", texts, shown, classify)


def entities(models):
    texts = [text_box("Text", page_words.NEWS, lines=3)]
    shown = [_highlighted(), table("label", "text", "from", "to", "probability")]

    def find(model, text):
        answer = model(text=text)
        names = ("label", "entity", "start", "end", "probability")
        rows = list(zip(*(answer[name][: answer["num_entities"]] for name in names), strict=True))
        marked = _marked(text, [(start, end, label) for label, _, start, end, _ in rows])
        rows = [[*row, _percent(probability)] for *row, probability in rows]
        return [marked, rows], "" if rows else "no entity"

    fill_tab(models, "Find entities", texts, shown, find)


def answers(models):
    texts = [
        text_box("Question", page_words.QUESTION),
        text_box("Passage", page_words.PASSAGE, lines=4),
    ]
    shown = [_highlighted(), table("answer", "from", "to", "probability")]

    def find(model, question, passage):
        answer = model(question=question, passage=passage)
        names = ("answers", "starts", "ends", "probabilities")
        if "answers" in answer:
            rows = [row for row in zip(*(answer[name] for name in names), strict=True) if row[3]]
        else:  # an export gives the best answer alone
            rows = [[answer[name] for name in ("answer", "start", "end", "probability")]]
        stretches = [] if rows[0][1] < 0 else [(*rows[0][1:3], in_language("answer"))]
        line = "" if stretches else "the passage holds no answer"
        rows = [
            [text, start, end, _percent(share)]
            if start >= 0
            else [in_language("(none)"), None, None, _percent(share)]
            for text, start, end, share in rows
        ]
        return [_marked(passage, stretches), rows], line

    fill_tab(models, "Answer", texts, shown, find)


def choices(models):
    has_questions = any("question" in model.inputs for model in models.values())
    context = page_words.PASSAGE if has_questions else page_words.IDIOM_TEXT
    offered = page_words.CHOICES if has_questions else page_words.IDIOMS
    texts = [
        text_box(
            "Text; where the model fills blanks, with #idiom# for the blank", context, lines=4
        ),
        text_box("Question", page_words.QUESTION, visible=has_questions),
        text_box("Choices, one in a line", offered, lines=4),
    ]
    shown = [gr.Label(show_label=False, num_top_classes=10, render=False)]

    def choose(model, context, question, choices):
        texts = choices_of(choices)
        if "question" in model.inputs:
            answer = model(context=context, question=question, choices=texts)
        elif context.strip() and ONE_BLANK not in context:
            raise UserError(f"the text has no blank; write {ONE_BLANK} where a choice belongs")
        else:
            answer = model(context=context, choices=texts)
        return [dict(zip(texts, answer["probabilities"], strict=True))], ""

    fill_tab(models, "Choose", texts, shown, choose)


def blanks(models):
    texts = [text_box("Text with [MASK] for each token to fill in", page_words.BLANKS)]
    shown = [table("[MASK] 1")]

    def fill(model, text):
        answer = model(text=text)
        if not answer["num_masks"]:
            raise UserError(f"no {MASK} in the text; write one for each token to fill in")
        blanks = zip(answer["candidates"], answer["probabilities"], strict=True)
        cells = [
            [f"{token}  {_percent(p)}" for token, p in zip(*blank, strict=True)] for blank in blanks
        ]
        headers = [f"[MASK] {number}" for number in range(1, len(cells) + 1)]
        rows = [list(row) for row in zip(*cells, strict=True)]
        return [{"headers": headers, "data": rows}], ""

    fill_tab(models, "Fill in", texts, shown, fill)


def writing(models):
    def write(model, source):
        for answer in model.in_parts(text=source):
            yield [_scored(answer["texts"], answer["scores"])], ""

    texts = [text_box("Source", page_words.SOURCE, lines=4)]
    fill_tab(models, "Write", texts, [table("text", "score")], write)


def continuation(models):
    def go_on(model, prompt):
        for answer in model.in_parts(text=prompt):
            texts = [prompt + text for text in answer["continuations"]]
            yield [_scored(texts, answer["scores"])], ""

    texts = [text_box("Prompt", page_words.PROMPT)]
    fill_tab(models, "Continue", texts, [table("text", "score")], go_on)


def attention(models):
    texts = [
        text_box("Text", page_words.TEXT),
        text_box("Second text (may be empty)", ""),
        text_box("Layers, as 0,3: 0 is the first, -1 the last; empty: all", "-1"),
        text_box("Heads, as 0,3: 0 is the first, -1 the last; empty: all", ""),
    ]
    shown = [gr.Plot(show_label=False, format="png", render=False)]

    def paint(model, text, text_pair, layers, heads):
        figure, line = model(text, text_pair.strip(), _numbers(layers), _numbers(heads))
        return [figure], line

    fill_tab(models, "Draw", texts, shown, paint)


def fill_tab(models, verb, inputs, shown, function):
    """Lays out a tab: the choice of the model, the texts, the button, a message, the results.

    The function takes a `Servable` and the texts, and returns (list of what the components of
    `shown` show, a message or ""); or it yields these while its answer grows. The return key in a
    box of one line is as the button.
    """
    names = list(models)
    choice = gr.Dropdown(names, value=names[0], label=in_language("Model"), visible=len(names) > 1)
    for box in inputs:
        box.render()
    button = gr.Button(in_language(verb), variant="primary")
    message = gr.Textbox(show_label=False, visible=False, interactive=False)
    for component in shown:
        component.render()

    def handle(name, *texts):
        try:
            answer = function(models[name], *map(_checked, texts))
            for results, line in answer if inspect.isgenerator(answer) else [answer]:
                yield *results, said(line)
        except UserError as error:
            yield *[None] * len(shown), said(str(error))

    def said(line):
        return gr.update(value=in_language(line), visible=bool(line))

    events = [button.click, *(box.submit for box in inputs)]
    gr.on(events, handle, [choice, *inputs], [*shown, message], api_name=False)


def text_box(label, value, lines=1, visible=True):
    """Returns a box for a text; `fill_tab` renders it."""
    return gr.Textbox(
        value,
        label=in_language(label),
        lines=lines,
        max_lines=12,
        visible=visible,
        render=False,
    )


def _highlighted():
    return gr.HighlightedText(show_label=False, render=False)


def table(*headers):
    """Returns a table for results; `fill_tab` renders it."""
    headers = list(map(in_language, headers))
    return gr.Dataframe(headers=headers, interactive=False, wrap=True, buttons=[], render=False)


def _checked(text):
    """Returns a text as valid Unicode; raises `UserError` if it is too long."""
    if len(text) > MOST_CHARACTERS:
        raise UserError(
            f"the text has {len(text):,} characters, but this page takes {MOST_CHARACTERS:,} at "
            "most; write a shorter one"
        )
    # JSON can have halves of UTF-16 pairs, which are no characters.
    return text.encode("utf-8", "replace").decode("utf-8")


def choices_of(text):
    """Returns the lines of a text that are not empty; a `UserError` unless 2 to 50 that differ."""
    lines = text.splitlines()
    if len(lines) > MOST_CHOICES:
        raise UserError(
            f"there are {len(lines):,} lines of choices, but this page takes {MOST_CHOICES} at "
            "most; write fewer"
        )
    choices = [line.strip() for line in lines if line.strip()]
    if len(choices) < 2 or len(set(choices)) < len(choices):
        raise UserError("write at least two choices, all different")
    return choices


def _marked(text, stretches):
    """Returns a text with marked parts (start, end, label), for `gradio.HighlightedText`."""
    entities = [{"start": start, "end": end, "entity": label} for start, end, label in stretches]
    return {"text": text, "entities": entities}


def _numbers(text):
    return [part.strip() for part in text.split(",") if part.strip()]


def _scored(texts, scores):
    """Returns the rows of a table of texts; a score that is not finite stands for none."""
    pairs = zip(texts, scores, strict=True)
    return [[text, f"{score:.3f}"] for text, score in pairs if math.isfinite(score)]


def _percent(probability):
    return f"{probability:.2%}"
