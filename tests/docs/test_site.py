"""The site of the pages: a language has its own menu and search, and leads to the other one."""

import functools
import html.parser
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import threading

import pages
import pytest
from conftest import REPOSITORY

pytestmark = pytest.mark.processes
pytest.importorskip("mkdocs", reason="needs pip install -e '.[docs]'")
# What a reader asks for, and the page that tells most about it.
WORDS = {
    "预训练": "pretraining",
    "继续预训练": "pretraining",
    "命名实体": "finetuning",
    "阅读理解": "finetuning",
    "全词掩码": "results",
    "词表": "corpus",
    "混合精度": "pretraining",
    "学习率": "pretraining",
    "相对位置": "fidelity",
    "部署": "serving",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Page(html.parser.HTMLParser):
    """Reads a page's language, and the pages to which its menu and its switch lead."""

    def __init__(self, path, top):
        super().__init__()
        self.menu, self.switch, self._at, self._top = [], {}, path, top
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "html":
            self.language = given["lang"]
        elif tag == "a" and "md-nav__link" in given.get("class", "").split():
            if not given["href"].startswith("#"):
                self.menu.append(self._page(given["href"]))
        elif tag == "a" and "hreflang" in given:
            self.switch[given["hreflang"]] = self._page(given["href"])

    def _page(self, link):
        place = (self._at.parent / link.partition("#")[0]).resolve()
        return place.relative_to(self._top.resolve()).as_posix()


@pytest.mark.parametrize("name", sorted(path.stem for path in (REPOSITORY / "docs/zh").iterdir()))
def test_a_page_has_the_menu_of_its_language_and_leads_to_the_other(site, name):
    folder = "" if name == "index" else name
    places = {"en": pathlib.PurePath(folder), "zh": pathlib.PurePath("zh", folder)}
    expected = {language: place.as_posix() for language, place in places.items()}
    for language in pages.LANGUAGES:
        page = Page(site / places[language] / "index.html", site)
        assert page.language == language and page.switch == expected
        assert len(page.menu) > 20
        assert {link.split("/")[0] == "zh" for link in page.menu} == {language == "zh"}


def test_each_language_finds_its_own_pages(site):
    indices = {
        language: json.loads((site / folder / "search/search_index.json").read_text("utf-8"))
        for language, folder in (("en", ""), ("zh", "zh"))
    }
    separator = re.compile(indices["zh"]["config"]["separator"])
    tokens = {
        token
        for entry in indices["zh"]["docs"]
        for token in separator.split(entry["title"] + " " + re.sub("<.*?>", " ", entry["text"]))
    }
    assert {"训练", "实体", "阅读", "词", "精度", "学习", "位置", "部署"} <= tokens
    for language, index in indices.items():
        assert all(not entry["location"].startswith("zh/") for entry in index["docs"])
        folder = site / ("zh" if language == "zh" else "")
        for entry in index["docs"]:
            assert (folder / entry["location"].partition("#")[0] / "index.html").is_file()


@pytest.fixture(scope="module")
def address(site):
    """Returns where the site is served."""
    handler = functools.partial(QuietHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def browser():
    """Returns a browser without a screen, of Debian's packages chromium and chromium-driver."""
    webdriver = pytest.importorskip("selenium.webdriver")
    driver = shutil.which("chromedriver")
    if not driver:
        pytest.skip("needs chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    for flag in ("headless=new", "no-sandbox", "disable-background-networking", "disable-quic"):
        options.add_argument(f"--{flag}")
    options.add_argument("--disable-dev-shm-usage")
    started = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield started
    started.quit()


@pytest.mark.parametrize("width", (1300, 400))
def test_a_reader_finds_words_and_switches_the_language(browser, address, width):
    browser.set_window_size(width, 900)
    for word, page in WORDS.items():
        # As a link that a reader sends: the page opens with its results.
        browser.get(f"{address}/zh/?q={word}")
        links = waited(browser, "a.md-search-result__link", 1)
        found = [link.get_attribute("href").removeprefix(address) for link in links]
        assert all(link.startswith("/zh/") for link in found), word
        assert any(link.startswith(f"/zh/{page}/") for link in found), (word, found)
    browser.get(f"{address}/zh/corpus/")
    switch = browser.find_element("css selector", 'a.md-select__link[hreflang="en"]')
    browser.execute_script("arguments[0].click()", switch)
    assert waited(browser, "html[lang=en]", 1)
    assert browser.current_url == f"{address}/corpus/"


def waited(browser, selector, least):
    """Returns what a page has of a kind, once there is as much of it."""
    from selenium.webdriver.support.ui import WebDriverWait

    def there(driver):
        found = driver.find_elements("css selector", selector)
        return found if len(found) >= least else None

    return WebDriverWait(browser, 30).until(there)
