"""The tabs of the page. Each function lays out the tab of some models.

Its argument `models` is a dict of name to `serving.signature.Servable`.
"""

import itertools
import math

import gradio as gr

from nezha_tf.data.choices import ONE_BLANK
from nezha_tf.text.vocabulary import MASK
from nezha_tf.util.errors import UserError

# The model would take too long for longer texts, and too much memory for more choices.
MOST_CHARACTERS, MOST_CHOICES = 5000, 50
_TEXT = "今天的豆浆是新磨的，趁热喝。"
_PASSAGE = "西红柿炒鸡蛋是一道家常菜。准备材料：西红柿2个、鸡蛋3个、小葱1根、盐和白糖适量。"
_BLANKS = "今天的豆[MASK]是新[MASK]的。"
_NEWS = "李小明昨天从北京飞往上海，参加复旦大学的毕业典礼。"


def classification(models):
    has_pairs = any("text_pair" in model.inputs for model in models.values())
    texts = [text_box("Text", _TEXT), text_box("Second text", _TEXT, visible=has_pairs)]
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
        line = "" if len(predicted) == 1 else f"predicted: {', '.join(predicted) or 'none'}"
        return [probabilities], line

    fill_tab(models, "Classify", texts, shown, classify)


def entities(models):
    texts = [text_box("Text", _NEWS, lines=3)]
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
    texts = [text_box("Question", "要准备几个鸡蛋？"), text_box("Passage", _PASSAGE, lines=4)]
    shown = [_highlighted(), table("answer", "from", "to", "probability")]

    def find(model, question, passage):
        answer = model(question=question, passage=passage)
        names = ("answers", "starts", "ends", "probabilities")
        if "answers" in answer:
            rows = [row for row in zip(*(answer[name] for name in names), strict=True) if row[3]]
        else:  # an export gives the best answer alone
            rows = [[answer[name] for name in ("answer", "start", "end", "probability")]]
        stretches = [] if rows[0][1] < 0 else [(*rows[0][1:3], "answer")]
        line = "" if stretches else "the passage holds no answer"
        rows = [
            [text, start, end, _percent(share)]
            if start >= 0
            else ["(none)", None, None, _percent(share)]
            for text, start, end, share in rows
        ]
        return [_marked(passage, stretches), rows], line

    fill_tab(models, "Answer", texts, shown, find)


def choices(models):
    has_questions = any("question" in model.inputs for model in models.values())
    context = _PASSAGE if has_questions else "雨#idiom#，下个不停。"
    offered = "2个\n3个\n5个" if has_questions else "绵绵不断\n画蛇添足\n一日千里"
    texts = [
        text_box(
            "Text; where the model fills blanks, with #idiom# for the blank", context, lines=4
        ),
        text_box("Question", "要准备几个鸡蛋？", visible=has_questions),
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
    texts = [text_box("Text with [MASK] for each token to fill in", _BLANKS)]
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
        answer = model(text=source)
        return [_scored(answer["texts"], answer["scores"])], ""

    texts = [text_box("Source", _PASSAGE, lines=4)]
    fill_tab(models, "Write", texts, [table("text", "score")], write)


def continuation(models):
    def go_on(model, prompt):
        answer = model(text=prompt)
        texts = [prompt + text for text in answer["continuations"]]
        return [_scored(texts, answer["scores"])], ""

    fill_tab(models, "Continue", [text_box("Prompt", "今天")], [table("text", "score")], go_on)


def attention(models):
    texts = [
        text_box("Text", _TEXT),
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
    `shown` show, a message or ""). The return key in a box of one line is as the button.
    """
    names = list(models)
    choice = gr.Dropdown(names, value=names[0], label="Model", visible=len(names) > 1)
    for box in inputs:
        box.render()
    button = gr.Button(verb, variant="primary")
    message = gr.Textbox(show_label=False, visible=False, interactive=False)
    for component in shown:
        component.render()

    def handle(name, *texts):
        try:
            results, line = function(models[name], *map(_checked, texts))
        except UserError as error:
            results, line = [None] * len(shown), str(error)
        return *results, gr.update(value=line, visible=bool(line))

    events = [button.click, *(box.submit for box in inputs)]
    gr.on(events, handle, [choice, *inputs], [*shown, message], api_name=False)


def text_box(label, value, lines=1, visible=True):
    """Returns a box for a text; `fill_tab` renders it."""
    return gr.Textbox(value, label=label, lines=lines, max_lines=12, visible=visible, render=False)


def _highlighted():
    return gr.HighlightedText(show_label=False, render=False)


def table(*headers):
    """Returns a table for results; `fill_tab` renders it."""
    return gr.Dataframe(
        headers=list(headers), interactive=False, wrap=True, buttons=[], render=False
    )


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
