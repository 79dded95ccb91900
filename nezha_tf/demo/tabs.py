"""The tabs of the page. Each function lays out one tab.

Its argument `models` is a dict of name to predictor: the models that have the ability of the tab.
"""

import gradio as gr

from nezha_tf.util.errors import UserError

# The model would take too long for longer texts, and too much memory for more choices.
MOST_CHARACTERS, MOST_CHOICES = 5000, 50
_TEXT = "今天的豆浆是新磨的，趁热喝。"
_PASSAGE = "西红柿炒鸡蛋是一道家常菜。准备材料：西红柿2个、鸡蛋3个、小葱1根、盐和白糖适量。"
_BLANKS = "今天的豆[MASK]是新[MASK]的。"
_NEWS = "李小明昨天从北京飞往上海，参加复旦大学的毕业典礼。"


def classification(models):
    """Lays out the tab of classification."""
    has_pairs = any(model.is_pair for model in models.values())
    texts = [text_box("Text", _TEXT), text_box("Second text", _TEXT, visible=has_pairs)]
    shown = [gr.Label(show_label=False, num_top_classes=10, render=False)]

    def classify(model, text, text_pair):
        found = model(text, text_pair) if model.is_pair else model(text)
        if found.probabilities is None:
            return [f"{found.value:.4g}"], ""
        # One predicted class is the likeliest, which the page shows anyway.
        labels = ", ".join(found.predicted) or "none"
        return [found.probabilities], "" if len(found.predicted) == 1 else f"predicted: {labels}"

    fill_tab(models, "Classify", texts, shown, classify)


def entities(models):
    """Lays out the tab of entities."""
    texts = [text_box("Text", _NEWS, lines=3)]
    shown = [_highlighted(), table("label", "text", "from", "to", "probability")]

    def find(model, text):
        found = model(text)
        rows = [[f.label, f.text, f.start, f.end, _percent(f.probability)] for f in found]
        marked = _marked(text, [(f.start, f.end, f.label) for f in found])
        return [marked, rows], "" if found else "no entity"

    fill_tab(models, "Find entities", texts, shown, find)


def answers(models):
    """Lays out the tab of reading comprehension."""
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


def choices(models):
    """Lays out the tab of multiple choice."""
    has_questions = any(not model.has_blanks for model in models.values())
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
        return [model(context, question, lines_of(choices)).probabilities], ""

    fill_tab(models, "Choose", texts, shown, choose)


def blanks(models):
    """Lays out the tab that fills in [MASK]."""
    texts = [text_box("Text with [MASK] for each token to fill in", _BLANKS)]
    shown = [table("[MASK] 1")]

    def fill(model, text):
        found = model(text)
        cells = [[f"{token}  {_percent(p)}" for token, p in candidates] for candidates in found]
        headers = [f"[MASK] {number}" for number in range(1, len(found) + 1)]
        rows = [list(row) for row in zip(*cells, strict=True)]
        return [{"headers": headers, "data": rows}], ""

    fill_tab(models, "Fill in", texts, shown, fill)


def writing(models):
    """Lays out the tab that writes a target for a source."""
    texts = [text_box("Source", _PASSAGE, lines=4)]
    shown = [table("text", "score")]

    def write(model, source):
        return [[[text, f"{score:.3f}"] for text, score in model(source)]], ""

    fill_tab(models, "Write", texts, shown, write)


def continuation(models):
    """Lays out the tab that continues a prompt."""
    texts = [text_box("Prompt", "今天")]
    shown = [table("text", "score")]

    def go_on(model, prompt):
        return [[[prompt + text, f"{score:.3f}"] for text, score in model(prompt)]], ""

    fill_tab(models, "Continue", texts, shown, go_on)


def attention(models):
    """Lays out the tab of the attention."""
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

    Args:
      models: dict of name to predictor.
      verb: label of the button.
      inputs: list of text components; the return key in a box of one line is as the button.
      shown: list of components that show the results.
      function: function of a predictor and the texts; returns (list of results, a message or "").
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
    """Returns a box for a text; `fill_tab` renders it."""
    return gr.Textbox(value, label=label, lines=lines, max_lines=12, visible=visible, render=False)


def _highlighted():
    """Returns a component for a text with marked parts; `fill_tab` renders it."""
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


def lines_of(choices):
    """Returns the lines of a text; raises `UserError` if there are too many."""
    lines = choices.splitlines()
    if len(lines) > MOST_CHOICES:
        raise UserError(
            f"there are {len(lines):,} lines of choices, but this page takes {MOST_CHOICES} at "
            "most; write fewer"
        )
    return lines


def _marked(text, stretches):
    """Returns a text with marked parts (start, end, label), for `gradio.HighlightedText`."""
    entities = [{"start": start, "end": end, "entity": label} for start, end, label in stretches]
    return {"text": text, "entities": entities}


def _numbers(text):
    """Returns the parts of a text between commas, without white space: list of str."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _percent(probability):
    return f"{probability:.2%}"
