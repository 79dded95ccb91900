"""The web page, made with gradio: one tab for each ability of the models."""

import gradio as gr

from nezha_tf.checkpoints.task_row import Tab
from nezha_tf.checkpoints.task_table import TASKS, part
from nezha_tf.demo import tabs

# Fonts of the system, so that the page loads nothing from the internet.
THEME = gr.themes.Default(font=["system-ui", "sans-serif"], font_mono=["monospace"])


def make_page(models):
    """Returns the page of models, a `gradio.Blocks`.

    Args:
      models: dict of ability to dict of name to predictor, as returned by `models.open_models`.
    """
    with gr.Blocks(title="nezha_tf", analytics_enabled=False) as page:
        gr.Markdown("# nezha_tf")
        for ability, tab in tabs_by_ability().items():
            if ability in models:
                with gr.Tab(tab.title):
                    part(tab.layout)(models[ability])
    return page


def tabs_by_ability():
    """Returns dict of ability to `Tab`, in the order of the page.

    First come the tasks that understand text, then the tasks that fill in or write text. The last
    tab is the attention, which every model has.
    """
    rows = {name: task for name, task in TASKS.items() if task.tab}
    return {
        **{name: row.tab for name, row in rows.items() if row.form == "bidirectional"},
        "fill_mask": Tab("Fill in", f"{tabs.__name__}:blanks"),
        **{name: row.tab for name, row in rows.items() if row.form != "bidirectional"},
        "left_to_right": Tab("Continuation", f"{tabs.__name__}:continuation"),
        "attention": Tab("Attention", f"{tabs.__name__}:attention"),
    }
