"""From the flags of tools/demo.py to a page that is served."""

import os
import socket

from nezha_tf.demo.models import open_models
from nezha_tf.errors import UserError, require_flag


def serve(flags):
    """Serves the page of models until it is interrupted.

    Args:
      flags: dict of the flags of tools/demo.py.

    Raises:
      UserError: gradio is missing, a folder of no model, or an address that cannot be listened on.
    """
    paths = require_flag(flags["model_folder"], "model_folder")
    require_gradio()
    from nezha_tf.demo.page import THEME, make_page

    host, port = flags["host"], flags["port"]
    check_address(host, port)
    page = make_page(open_models(paths))
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
        theme=THEME,
    )
    print(f"the page is on http://{host}:{port}; Ctrl-C ends it", flush=True)
    page.block_thread()


def require_gradio():
    """Imports gradio so that it sends nothing home; raises a `UserError` where it is missing."""
    # They are read when it is imported.
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import gradio  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UserError(
            "the page is made with gradio: pip install -e '.[demo]' in the clone"
        ) from error


def check_address(host, port):
    """Raises a `UserError` where an address cannot be listened on."""
    if ":" in host:
        raise UserError(f"--host={host}: the page is served over IPv4 alone; as in 127.0.0.1")
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise UserError(
            f"cannot listen on --host={host} --port={port}: {error.strerror}"
        ) from error
