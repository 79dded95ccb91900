"""The tabs of the page, each laid out for the models that have its ability."""

import gradio as gr

from nezha_tf.errors import UserError

# More would keep the page waiting.
MOST_CHARACTERS = 5000
_TEXT = "今天的豆浆是新磨的，趁热喝。"
_PASSAGE = "西红柿炒鸡蛋是一道家常菜。准备材料：西红柿2个、鸡蛋3个、小葱1根、盐和白糖适量。"
_BLANKS = "今天的豆[MASK]是新[MASK]的。"
_NEWS = "李小明昨天从北京飞往上海，参加复旦大学的毕业典礼。"


def classification(models):
    has_pairs = any(model.is_pair for model in models.values())
    texts = [text_box("Text", _TEXT), text_box("Second text", _TEXT, visible=has_pairs)]
    shown = [gr.Label(show_label=False, num_top_classes=10, render=False)]

    def classify(model, text, text_pair):
        found = model(text, text_pair) if model.is_pair else model(text)
        if found.probabilities is None:
            return [f"{found.value:.4g}"], ""
        # The likeliest is shown anyway, and all that a classifier of one class predicts.
        labels = ", ".join(found.predicted) or "none"
        return [found.probabilities], "" if len(found.predicted) == 1 else f"predicted: {labels}"

    fill_tab(models, "Classify", texts, shown, classify)


def entities(models):
    texts = [text_box("Text", _NEWS, lines=3)]
    shown = [_highlighted(), table("label", "text", "from", "to", "probability")]

    def find(model, text):
        found = model(text)
        rows = [[f.label, f.text, f.start, f.end, _percent(f.probability)] for f in found]
        marked = _marked(text, [(f.start, f.end, f.label) for f in found])
        return [marked, rows], "" if found else "no entity"

    fill_tab(models, "Find entities", texts, shown, find)


def answers(models):
    texts = [text_box("Question", "要准备几个鸡蛋？"), text_box("Passage", _PASSAGE, lines=4)]
    shown = [_highlighted(), table("answer", "from", "to", "probability")]

    def answer(model, question, passage):
        found = model(question, passage)
        best = found[0]
        stretches = [] if best.start is None else [(best.start, best.end, "answer")]
        rows = [[f.text or "(none)", f.start, f.end, _percent(f.probability)] for f in found]
        line = "" if stretches else "the passage holds no answer"
        return [_marked(passage, stretches), rows], line

    fill_tab(models, "Answer", texts, shown, answer)


def blanks(models):
    texts = [text_box("Text with [MASK] for each piece to be filled in", _BLANKS)]
    shown = [table("[MASK] 1")]

    def fill(model, text):
        found = model(text)
        cells = [[f"{piece}  {_percent(p)}" for piece, p in candidates] for candidates in found]
        headers = [f"[MASK] {number}" for number in range(1, len(found) + 1)]
        rows = [list(row) for row in zip(*cells, strict=True)]
        return [{"headers": headers, "data": rows}], ""

    fill_tab(models, "Fill in", texts, shown, fill)


def writing(models):
    texts = [text_box("Source", _PASSAGE, lines=4)]
    shown = [table("text", "score")]

    def write(model, source):
        return [[[text, f"{score:.3f}"] for text, score in model(source)]], ""

    fill_tab(models, "Write", texts, shown, write)


def continuation(models):
    texts = [text_box("Prompt", "今天")]
    shown = [table("text", "score")]

    def go_on(model, prompt):
        return [[[prompt + text, f"{score:.3f}"] for text, score in model(prompt)]], ""

    fill_tab(models, "Go on", texts, shown, go_on)


def attention(models):
    texts = [
        text_box("Text", _TEXT),
        text_box("Second text (may be empty)", ""),
        text_box("Layers: from 0, -1 is the last; all, if none", "-1"),
        text_box("Heads: from 0, as in 0,3; all, if none", ""),
    ]
    shown = [gr.Plot(show_label=False, format="png", render=False)]

    def paint(model, text, text_pair, layers, heads):
        figure, line = model(text, text_pair.strip(), _numbers(layers), _numbers(heads))
        return [figure], line

    fill_tab(models, "Draw", texts, shown, paint)


def fill_tab(models, verb, inputs, shown, function):
    """Lays a tab out: the choice of the model, the texts, the button, a line, the results.

    Args:
      models: dict of name to object.
      verb: on the button.
      inputs: components of text; the return key in one of a line does what the button does.
      shown: components that the results go to.
      function: of the object and the texts; returns (list of results, a line or "").
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
            found, line = function(models[name], *map(_checked, texts))
        except UserError as error:
            found, line = [None] * len(shown), str(error)
        return *found, gr.update(value=line, visible=bool(line))

    events = [button.click, *(box.submit for box in inputs)]
    gr.on(events, handle, [choice, *inputs], [*shown, message], api_name=False)


def text_box(label, value, lines=1, visible=True):
    """Returns a box for a text, to be rendered by `fill_tab`."""
    return gr.Textbox(value, label=label, lines=lines, max_lines=12, visible=visible, render=False)


def _highlighted():
    return gr.HighlightedText(show_label=False, render=False)


def table(*headers):
    """Returns a table for results, to be rendered by `fill_tab`."""
    return gr.Dataframe(
        headers=list(headers), interactive=False, wrap=True, buttons=[], render=False
    )


def _checked(text):
    """Returns a text that can be read and shown; raises `UserError` where it is too long."""
    if len(text) > MOST_CHARACTERS:
        raise UserError(
            f"the text has {len(text):,} characters, and this page takes {MOST_CHARACTERS:,}"
        )
    # JSON may hold halves of UTF-16 pairs, which are no text.
    return text.encode("utf-8", "replace").decode("utf-8")


def _marked(text, stretches):
    """Returns what `gradio.HighlightedText` shows: a text with (start, end, label) marked."""
    entities = [{"start": start, "end": end, "entity": label} for start, end, label in stretches]
    return {"text": text, "entities": entities}


def _numbers(text):
    return [part.strip() for part in text.split(",") if part.strip()]


def _percent(probability):
    return f"{probability:.2%}"
