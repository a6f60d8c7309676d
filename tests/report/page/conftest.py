"""How tests read a page, and open the page of a study in a browser."""

import json
from html.parser import HTMLParser

import pytest


class PageReader(HTMLParser):
    """Texts, elements with their attributes, and the data the page's script reads."""

    def __init__(self, page):
        super().__init__()
        self.texts, self.elements, self.inside, self.data = [], [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop()[0] != tag:
            pass

    def handle_data(self, data):
        tag, attrs = self.inside[-1] if self.inside else ("", {})
        if attrs.get("id") == "figure-data":
            self.data = json.loads(data)
        elif tag not in ("script", "style") and data.strip():
            self.texts.append(data.strip())

    def of(self, tag, **wanted):
        return [a for t, a in self.elements if t == tag and all(a.get(k) == v for k, v in wanted.items())]


@pytest.fixture(scope="session")
def read_page():
    """`read_page(text)`: what a reader and the page's own script see."""
    return PageReader


@pytest.fixture
def open_study(browser):
    """`open_study(path)`: the page, drawn; `complaints` holds what the browser said, and what was fetched."""

    def open_page(path, width=1400, height=900, **context):
        page = browser.new_context(viewport={"width": width, "height": height}, **context).new_page()
        page.complaints = []
        page.on("console", lambda said: page.complaints.append(said.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith(("file:", "data:")) or page.complaints.append(asked.url))
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-drawn=all]", timeout=30_000)
        return page

    return open_page
