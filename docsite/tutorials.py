"""Tutorials: one Markdown file each, which is also a notebook, executed whenever the site is built.

In the Markdown, a `text` block is what the Python block before it prints, and a `console` block is a command with its
output. Execution must give just that, or the build fails. A command alone is one whose output differs from run to run,
as that of live runs does. Pictures are what a Python block ends in; they are made by the execution and kept nowhere
else.
"""

from __future__ import annotations

import base64
import json
import re
import tempfile
from dataclasses import dataclass, field
from typing import Any

from docsite.pages import FENCE

PLAIN_COMMANDS = """\
import os

os.environ.update(FORCE_COLOR="", COLUMNS="80")  # commands print plain text here, 80 columns wide"""
TIMEOUT = 300  # seconds for one cell: a machine may be busy


class TutorialError(Exception):
    """A tutorial does not do what it says."""


@dataclass(frozen=True)
class Block:
    """A piece of a tutorial: prose, or a fenced block with its language."""

    language: str  # "" for prose
    text: str
    line: int


@dataclass
class Executed:
    """A tutorial after its execution: the notebook, and the page with its pictures."""

    notebook: dict[str, Any]
    page: str
    pictures: dict[str, bytes] = field(default_factory=dict)


def blocks_of(text: str) -> list[Block]:
    """A tutorial's prose and code, in order."""
    found, end = [], 0
    for fence in FENCE.finditer(text):
        found.append(Block("", text[end : fence.start()], 1 + text.count("\n", 0, end)))
        found.append(Block(fence[1], fence[2], 1 + text.count("\n", 0, fence.start())))
        end = fence.end()
    return [*found, Block("", text[end:], 1 + text.count("\n", 0, end))]


def to_notebook(text: str) -> dict[str, Any]:
    """A tutorial as a notebook without outputs: prose, Python, commands; what they print is left out."""
    cells: list[dict[str, Any]] = []
    for block in blocks_of(text):
        if block.language == "":
            if block.text.strip():
                cells.append({"cell_type": "markdown", "metadata": {}, "source": block.text.strip()})
        elif block.language == "python":
            cells.append(_code_cell(block.text.rstrip()))
        elif block.language == "console":
            cells.append(_code_cell(f"%%sh\n{_command_in(block)}"))
        elif block.language == "toml":
            cells.append(_code_cell(f"%%writefile experiment.toml\n{block.text.rstrip()}"))
        elif block.language != "text":
            raise TutorialError(
                f'line {block.line}: a tutorial has python, console, toml and text, not "{block.language}".'
            )
    if any(block.language == "console" for block in blocks_of(text)):
        cells.insert(1, _code_cell(PLAIN_COMMANDS))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _code_cell(source: str) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}


def _command_in(block: Block) -> str:
    command = block.text.partition("\n")[0]
    if not command.startswith("$ asyncfed "):
        raise TutorialError(f'line {block.line}: a console block begins with "$ asyncfed "; here is "{command}".')
    return command.removeprefix("$ ")


def execute(text: str, name: str) -> Executed:
    """Execute a tutorial in a folder of its own, check what it prints, and put its pictures into its page."""
    import nbformat
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as folder:
        notebook = nbformat.from_dict(to_notebook(text))
        where = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=TIMEOUT, resources=where, extra_arguments=["--log-level=ERROR"]).execute()
    return with_outputs(text, name, json.loads(nbformat.writes(notebook, split_lines=False)))


def with_outputs(text: str, name: str, notebook: dict[str, Any]) -> Executed:
    """The page of an executed tutorial: its Markdown, checked, with a picture after each block that drew one."""
    code = iter([c for c in notebook["cells"] if c["cell_type"] == "code" and c["source"] != PLAIN_COMMANDS])
    blocks = blocks_of(text)
    done, parts = Executed(notebook, ""), []
    for place, block in enumerate(blocks):
        parts.append(block.text if block.language == "" else f"```{block.language}\n{block.text}```")
        if block.language not in ("python", "console", "toml"):
            continue
        outputs = next(code)["outputs"]
        if block.language == "python" or _shown(blocks, place):
            _compare(printed(outputs), _shown(blocks, place), f"{name}.md, line {block.line}")
        for picture in pictures(outputs):
            file = f"{name}-{len(done.pictures) + 1}.png"
            done.pictures[file] = picture
            parts.append(f"\n\n![what this code draws]({file})")
    done.page = "".join(parts)
    return done


def _shown(blocks: list[Block], place: int) -> str:
    """What the tutorial shows as the output of a block."""
    if blocks[place].language == "console":
        return blocks[place].text.partition("\n")[2]
    if blocks[place].language == "toml":
        return ""
    following = [block for block in blocks[place + 1 :] if block.language][:1]
    return following[0].text if following and following[0].language == "text" else ""


def _compare(real: str, shown: str, where: str) -> None:
    got, expected = said_lines(real), said_lines(shown)
    if got != expected:
        raise TutorialError(f"{where}: prints\n\n{real}\nand the tutorial shows\n\n{shown}\nCorrect one of them.")


def said_lines(text: str) -> list[str]:
    """Lines that say something: progress bars leave empty ones behind, and tables end in blanks."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def printed(outputs: list[dict[str, Any]]) -> str:
    """What a cell printed; the value of a last expression counts only as a picture."""
    text = "".join("".join(output["text"]) for output in outputs if output["output_type"] == "stream")
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def pictures(outputs: list[dict[str, Any]]) -> list[bytes]:
    """The pictures among the outputs of a cell."""
    found = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    return [base64.b64decode("".join(data)) for data in found]
