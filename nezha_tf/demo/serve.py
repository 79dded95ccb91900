"""Serves the page."""

import os
import socket

from nezha_tf.demo.models import open_models
from nezha_tf.util.errors import UserError


def serve(settings):
    """Serves the page until the program is interrupted.

    Args:
      settings: `DemoSettings`.

    Raises:
      UserError: gradio is not installed, a folder has no model, or the address cannot be used.
    """
    require_gradio()
    from nezha_tf.demo.page import THEME, make_page

    host, port = settings.host, settings.port
    check_address(host, port)
    page = make_page(open_models(settings.model_folder))
    reach_without_proxy(host)
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
            theme=THEME,
        )
    except OSError as error:  # another program took the port meanwhile
        raise UserError(f"cannot listen on --host={host} --port={port}: {error}") from error
    print(f"the page is on http://{host}:{port}; Ctrl-C ends it", flush=True)
    page.block_thread()


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
    try:
        import gradio  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"the page needs gradio and matplotlib ({error}): pip install -e '.[demo]' in the clone"
        ) from error


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
