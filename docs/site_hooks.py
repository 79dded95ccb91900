"""Gives each language of the site a search of its own, for mkdocs; see `hooks` in mkdocs.yml.

The plugin for languages leaves one index at the top, so that a Chinese reader would find English
pages first.
"""

import json
import os

from mkdocs.plugins import event_priority
from mkdocs.utils import get_relative_url

# The language whose pages lie in a folder of their own.
FOLDER = "zh/"
_INDEX = os.path.join("search", "search_index.json")


# The plugin for languages has -100.
@event_priority(-200)
def on_page_context(context, page, config, nav):
    """Says where a page finds its index, and lets the first pages lead to each other."""
    for other in config.extra.alternate:
        if other["link"].startswith("/"):  # It would leave a site in a folder of a host.
            other["link"] = other["link"].lstrip("/") or "."
    if page.url.startswith(FOLDER):
        context["base_url"] = get_relative_url(FOLDER, page.url).rstrip("/")
    return context


@event_priority(-200)
def on_post_build(config):
    """Parts the index by language."""
    top = config.site_dir
    path = os.path.join(top, _INDEX)
    if not os.path.isfile(path):  # The plugin calls this for each language; the index comes last.
        return
    with open(path, encoding="utf-8") as file:
        index = json.load(file)
    parts = {"": [], FOLDER: []}
    for entry in index["docs"]:
        folder = FOLDER if entry["location"].startswith(FOLDER) else ""
        parts[folder].append({**entry, "location": entry["location"].removeprefix(folder)})
    for folder, entries in parts.items():
        own = os.path.join(top, folder, _INDEX)
        os.makedirs(os.path.dirname(own), exist_ok=True)
        with open(own, "w", encoding="utf-8") as file:
            json.dump({**index, "docs": entries}, file, ensure_ascii=False)
