"""The web page on which models can be tried, made with gradio: a tab for each thing they can do."""

import os
import re
import socket

from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.checkpoints.task_row import Tab
from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.objectives.uses import uses_of
from nezha_tf.pictures.attention import draw_shares
from nezha_tf.pictures.visualize import encoder_of, objective_of
from nezha_tf.serving import page_words
from nezha_tf.serving.export import OF_PRETRAINED, open_export
from nezha_tf.serving.signature import DEFAULT, Servable
from nezha_tf.util import files
from nezha_tf.util.errors import UserError, require_flag, require_modules

EXPORT_FILE = "saved_model.pb"
# What a pretrained model does, and the tab that shows it.
_TABS = {
    "fill_mask": Tab("Fill in", lambda tabs, models: tabs.blanks(models), ({"num_masks"},)),
    "left_to_right": Tab(
        "Continuation", lambda tabs, models: tabs.continuation(models), ({"continuations"},)
    ),
    "seq2seq": TASKS["seq2seq"].tab,
}
_ATTENTION = Tab("Attention", lambda tabs, models: tabs.attention(models))


def serve(settings):
    """Serves the page of `DemoSettings` until the program is interrupted.

    Raises:
      UserError: gradio is not installed, a folder has no model, or the address cannot be used.
    """
    require_gradio()
    import gradio as gr

    host, port = settings.host, settings.port
    check_address(host, port)
    page = make_page(open_models(settings.model_folder))
    reach_without_proxy(host)
    # Fonts of the system, so that the page loads nothing from the internet.
    theme = gr.themes.Default(font=["system-ui", "sans-serif"], font_mono=["monospace"])
    try:
        page.launch(
            server_name=host,
            server_port=port,
            share=False,
            quiet=True,
            show_error=True,
            prevent_thread_lock=True,
            enable_monitoring=False,
            ssr_mode=False,
            footer_links=[],
            theme=theme,
        )
    except OSError as error:  # another program took the port meanwhile
        raise UserError(f"cannot listen on --host={host} --port={port}: {error}") from error
    print(f"the page is on http://{host}:{port}; Ctrl-C ends it", flush=True)
    page.block_thread()


def make_page(models):
    """Returns the page of models, a `gradio.Blocks`, whose title names them.

    Args:
      models: as returned by `open_models`.
    """
    import gradio as gr

    from nezha_tf.serving import tabs

    names = ", ".join(dict.fromkeys(name for of_tab in models.values() for name in of_tab))
    with gr.Blocks(title=f"{names} - nezha_tf", analytics_enabled=False) as page:
        # Names are no Markdown.
        gr.Markdown("# " + re.sub(r"[\\`*_\[\]<>&$~]", r"\\\g<0>", names))
        for tab in all_tabs():
            if tab.title in models:
                with gr.Tab(page_words.shown(tab.title)):
                    tab.layout(tabs, models[tab.title])
    return page


def all_tabs():
    """Returns all `Tab`s in order: tasks that read, then those that write, then the attention."""
    rows = [row for row in TASKS.values() if row.tab]
    reads = [row.tab for row in rows if row.form == "bidirectional"]
    writes = [row.tab for row in rows if row.form != "bidirectional"]
    tabs = [*reads, _TABS["fill_mask"], *writes, _TABS["left_to_right"], _ATTENTION]
    return list({tab.title: tab for tab in tabs}.values())


def open_models(paths):
    """Opens model folders or exports (`tools/export_saved_model.py`).

    Returns a dict of a tab's title to dict of a model's name to its `Servable`, or for the
    attention to what `attention_of` returns. A `UserError` if there is no model, or no tab for it.
    """
    require_flag(paths, "model_folder")
    if len(set(map(os.path.abspath, paths))) < len(paths):
        raise UserError("--model_folder names a folder twice; name each once")
    models = {}
    for name, path in zip(files.folder_names(paths, _name_of), paths, strict=True):
        of_path = _of_export(path) if _is_export(path) else models_of(open_folder(path))
        for title, model in of_path.items():
            models.setdefault(title, {})[name] = model
    return models


def _is_export(path):
    return os.path.exists(os.path.join(path, EXPORT_FILE))


def _name_of(path):
    return files.export_name(path) if _is_export(path) else files.folder_name(path)


def models_of(folder):
    """Returns dict of a tab's title to what it asks, for everything that a `ModelFolder` can do."""
    model, row = folder.make_model(), TASKS.get(folder.task["task"])
    uses = []
    if row and row.serving:
        uses = [(row.tab, row.serving)] if row.tab else []
    elif isinstance(model, NezhaForMaskedLM):
        uses = [(_TABS[use], OF_PRETRAINED[use]) for use in uses_of(folder.task)]
    models = {}
    for tab, make in uses:
        serving = make(folder, model).for_page()
        models[tab.title] = Servable(serving.signatures(), serving)
    return {**models, _ATTENTION.title: attention_of(folder, model)}


def attention_of(folder, model):
    """Returns a function of (text, text_pair, layers, heads) as `draw_shares` has them.

    It returns (matplotlib figure, a line or "").
    """
    encoder, objective = encoder_of(model), objective_of(folder)

    def paint(text, text_pair, layers, heads):
        return draw_shares(encoder, folder.tokenizer, text, text_pair, layers, heads, objective)

    return paint


def _of_export(path):
    """Returns {title of the tab: `Servable`} of an export."""
    loaded = open_export(path, "model_folder")
    if DEFAULT in loaded.signatures:
        outputs = set(loaded.signatures[DEFAULT].structured_outputs)
        for tab in all_tabs():
            if any(names <= outputs for names in tab.outputs):
                return {tab.title: Servable(loaded.signatures, loaded)}
    raise UserError(
        f"{path} is an export for which the page has no tab; name an export of another task, or "
        "the folder of its model"
    )


def reach_without_proxy(host):
    """Lets this process reach its own page past any proxy: gradio asks it whether it answers."""
    for name in ("NO_PROXY", "no_proxy"):
        known = [os.environ[name]] if os.environ.get(name) else []
        os.environ[name] = ",".join(dict.fromkeys([*known, "127.0.0.1", "localhost", host]))


def require_gradio():
    """Imports gradio, its telemetry switched off; raises `UserError` if it is not installed."""
    # gradio reads these variables when it is imported.
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    os.environ["HF_HUB_OFFLINE"] = "1"
    require_modules("the page needs gradio and matplotlib", "demo", "gradio", "matplotlib")


def check_address(host, port):
    """Raises `UserError` if the program cannot listen on an address."""
    if ":" in host:
        raise UserError(f"--host={host}: the page needs an IPv4 address, such as 127.0.0.1")
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise UserError(
            f"cannot listen on --host={host} --port={port}: {error.strerror}"
        ) from error
