"""Pages of a dashboard in a browser: opened with its token, in a size and a theme, with everything the browser said."""

import re
import subprocess
import sys
from contextlib import contextmanager

from .conftest import TOKEN

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
MODES = [(size, theme) for size in SIZES for theme in ("light", "dark")]

SIDEWAYS = "() => document.documentElement.scrollWidth - window.innerWidth"

FAINT_TEXTS = """() => {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, place) => sum + v * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] > 200) return colour;
    }
    return [255, 255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("main *, header *")) {
    const isText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!isText || !element.checkVisibility() || element.disabled) continue;
    const style = getComputedStyle(element), isDrawn = element instanceof SVGElement;
    const [one, other] = [light(rgba(isDrawn ? style.fill : style.color)), light(behind(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) faint.push(`${ratio.toFixed(2)} ${element.className} ${element.textContent}`);
  }
  return faint;
}"""
"""Texts with less contrast than WCAG 2 asks for at level AA."""


@contextmanager
def dashboard_process(folder):
    """`asyncfed dashboard` of this folder as a process of its own, as people use it; gives its address and itself."""
    command = [sys.executable, "-m", "asyncfed", "dashboard", str(folder), "--token", TOKEN, "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield re.search(r"http://[\d.:]+", server.stdout.readline())[0], server
    finally:
        server.kill()
        server.wait()


@contextmanager
def opened(browser, address, size="desktop", theme="light", token=TOKEN):
    """A page that has shown the token. `complaints` holds messages, errors, dialogs and requests to elsewhere."""
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    page = context.new_page()
    page.complaints = []
    page.on("console", lambda said: page.complaints.append(said.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("dialog", lambda dialog: (page.complaints.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda asked: asked.url.startswith((address, "data:")) or page.complaints.append(asked.url))
    page.set_default_timeout(60_000)
    page.goto(f"{address}/?token={token}")
    yield page
    context.close()


def open_run(page, run, rest=""):
    """Go to a page of a run and wait until all of it is drawn."""
    page.evaluate("(hash) => { location.hash = hash; }", f"#/run/{run}{rest}")
    page.wait_for_selector(f"main[data-drawn='{run}']")


def check_look(page):
    """Nothing was complained about, nothing sticks out sideways, and every text can be read."""
    assert page.complaints == []
    assert page.evaluate(SIDEWAYS) <= 0
    assert page.evaluate(FAINT_TEXTS) == []
