"""The page in a headless browser: each tab answers, and nothing leaves the machine."""

import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request

import pytest
from commands import assert_one_line, run
from conftest import REPOSITORY
from export_folders import SETTINGS, write_folder
from waiting import ended, read_line

from nezha_tf.serving import page as page_module
from nezha_tf.util.errors import UserError

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
# Chromium itself calls home unless it is told not to.
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
# Names every address that a process looks up or connects to, on its stderr.
WATCHED = """
import runpy, sys
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        print("CALLED", event, arguments[-1] if event == "socket.connect" else arguments[0],
              file=sys.stderr, flush=True)
sys.addaudithook(watch)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """(address of a page of one model of each kind, path of what its process says)."""
    pytest.importorskip("gradio", reason="the page is made with gradio")
    pytest.importorskip("playwright", reason="the page is looked at with playwright")
    if CHROMIUM is None:
        pytest.skip("there is no chromium to look at the page with")
    folder = tmp_path_factory.mktemp("models")
    names = ("names", "nezha", "questions", "reviews", "titles")
    for name in names:
        write_folder(folder / name, SETTINGS[name])
    paths = ",".join(str(folder / name) for name in names)
    command = [sys.executable, "-c", WATCHED, str(REPOSITORY / "tools" / "demo.py")]
    for _ in range(5):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        process = subprocess.Popen(
            [*command, f"--model_folder={paths}", f"--port={port}"],
            stdout=subprocess.PIPE,
            stderr=open(folder / "stderr", "w"),
            text=True,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        line = read_line(process.stdout)
        said = (folder / "stderr").read_text()
        if not line and re.search("Address already in use|Cannot find empty port", said):
            ended(process)  # Another program was quicker.
            continue
        break
    try:
        assert line == f"the page is on http://127.0.0.1:{port}; Ctrl-C ends it\n", said
        yield f"http://127.0.0.1:{port}", folder / "stderr"
    finally:
        process.terminate()
        ended(process)


@pytest.fixture
def page(served):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.set_default_timeout(60_000)
        page.goto(served[0])
        page.get_by_role("tab").first.wait_for()
        yield page
        browser.close()


def open_tab(page, title):
    """Opens a tab; returns what is in it."""
    page.get_by_role("tab", name=title, exact=True).click()
    return page.get_by_role("tabpanel").filter(visible=True)


def test_each_tab_answers_and_nothing_leaves_the_machine(page, served):
    from playwright.sync_api import expect

    called = []
    page.on("request", lambda request: called.append(request.url))
    shown = {
        "Classification": r"好评[\s\S]*\d\s*%",
        "Entities": r"(LOC|PER)[\s\S]*\d%",
        "Reading comprehension": r"\(none\)[\s\S]*\d%",
        "Fill in": r"\[MASK\] 1[\s\S]*\d%",
        "Writing": r"-\d+\.\d+",
    }
    assert page.get_by_role("tab").all_inner_texts() == [*shown, "Attention"]
    assert page.title() == "names, nezha, questions, reviews, titles - nezha_tf"
    for title, pattern in shown.items():
        panel = open_tab(page, title)
        panel.locator("button.primary").click()
        expect(panel).to_contain_text(re.compile(pattern), timeout=60_000)
    panel = open_tab(page, "Attention")
    panel.locator("button.primary").click()
    panel.locator("img").first.wait_for()
    assert called and all(url.startswith((served[0], "data:", "blob:")) for url in called)
    lines = [line for line in served[1].read_text().splitlines() if line.startswith("CALLED")]
    assert lines and not [
        line for line in lines if not re.search(r"127\.0\.0\.1|localhost|None", line)
    ]


def test_bad_input_is_answered_by_a_line(page):
    panel = open_tab(page, "Fill in")
    box = panel.get_by_label("Text with [MASK]")
    for text, line in (("甲", "no [MASK] in the text"), ("甲" * 5001, "5,001 characters")):
        box.fill(text)
        panel.locator("button.primary").click()
        note = panel.locator("textarea:disabled").last
        note.wait_for()
        page.wait_for_function(
            "([note, line]) => note.value.includes(line)", arg=[note.element_handle(), line]
        )
    panel = open_tab(page, "Attention")
    panel.get_by_label("Layers").fill("7")
    panel.get_by_label("Layers").press("Enter")
    note = panel.locator("textarea:disabled").last
    note.wait_for()
    assert "--layers: 7 is none of the 1" in note.input_value()


def test_the_choices_of_a_text():
    pytest.importorskip("gradio", reason="the page is made with gradio")
    from nezha_tf.serving.tabs import MOST_CHOICES, choices_of

    lines = [str(number) for number in range(MOST_CHOICES)]
    assert choices_of(" \n".join(lines)) == lines
    for text, message in (
        ("\n".join([*lines, "x"]), f"there are {MOST_CHOICES + 1} lines of choices"),
        ("a\n\na", "at least two choices, all different"),
    ):
        with pytest.raises(UserError, match=message):
            choices_of(text)


def test_an_address_that_is_taken_is_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"--host=127.0.0.1 --port={port}: Address already in"):
            page_module.check_address("127.0.0.1", port)


@pytest.mark.parametrize("before", (None, "", "example.org,localhost"))
def test_the_page_asks_itself_past_a_proxy(monkeypatch, before):
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        if before is not None:
            monkeypatch.setenv(name, before)
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    page_module.reach_without_proxy("10.1.2.3")
    for host in ("127.0.0.1", "localhost", "10.1.2.3"):
        assert urllib.request.proxy_bypass(host)
    assert not urllib.request.proxy_bypass("example.com")
    assert bool(urllib.request.proxy_bypass("example.org")) == (before == "example.org,localhost")


@pytest.mark.processes
def test_mistakes_of_the_command_are_one_line(tmp_path):
    result = run("tools/demo.py", "--model_folder=none", folder=tmp_path)
    assert_one_line(result, "no model in none")
