"""The page: a tab for each ability of the models, made with gradio."""

import gradio as gr

from nezha_tf.demo import tabs
from nezha_tf.model_folder.task_row import Tab
from nezha_tf.model_folder.task_table import TASKS, part

# The system's, so that nothing is fetched.
THEME = gr.themes.Default(font=["system-ui", "sans-serif"], font_mono=["monospace"])


def make_page(models):
    """Returns the `gradio.Blocks` of models.

    Args:
      models: dict of ability to dict of name to object, as of `models.open_models`.
    """
    with gr.Blocks(title="nezha_tf", analytics_enabled=False) as page:
        gr.Markdown("# nezha_tf")
        for ability, tab in tabs_by_ability().items():
            if ability in models:
                with gr.Tab(tab.title):
                    part(tab.layout)(models[ability])
    return page


def tabs_by_ability():
    """Returns dict of ability to `Tab`: the tasks that understand, what fills in, those that write.

    The attention, which any model shows, is the last one.
    """
    rows = {name: task for name, task in TASKS.items() if task.tab}
    return {
        **{name: row.tab for name, row in rows.items() if row.form == "bidirectional"},
        "fill_mask": Tab("Fill in", f"{tabs.__name__}:blanks"),
        **{name: row.tab for name, row in rows.items() if row.form != "bidirectional"},
        "left_to_right": Tab("Continuation", f"{tabs.__name__}:continuation"),
        "attention": Tab("Attention", f"{tabs.__name__}:attention"),
    }
