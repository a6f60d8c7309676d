"""The documentation site: everything is in it, and its builder notices what is wrong. `make docs` builds it."""

import base64
import re
import sys
from pathlib import Path

import pytest

from asyncfed.version import __version__

sys.path.insert(0, str(Path(__file__).parent.parent))  # the site's builder lies beside the package, not in it

from docsite import pages, reference, tutorials
from docsite.check_html import problems_of
from docsite.docstrings import docstring_markdown
from docsite.public_objects import MODULES, MORE_MODULES, public_objects

ROOT = Path(__file__).parent.parent
NAVIGATION = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
LISTED = re.findall(r"([\w./]+\.md)$", NAVIGATION, re.MULTILINE)
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


# ---- what is in the site -------------------------------------------------------------------------------------------


def test_every_page_is_in_the_navigation_once():
    wanted = [pages.site_path(page) for page in pages.documents()]
    wanted += [f"reference/{module}.md" for module in (*MODULES, *MORE_MODULES)]
    assert sorted(LISTED) == sorted(wanted), "mkdocs.yml lists every page of docs/ and of the reference, and no other."


def test_every_public_object_is_in_the_reference(tmp_path):
    reference.write_reference(tmp_path)
    described = reference.objects_described(lambda name: (tmp_path / name).read_text())
    assert len(described) > 400
    assert not set(public_objects()) - described


def test_anchors_in_the_reference_are_unique():
    for module in (*MODULES, *MORE_MODULES):
        headings = re.findall(r"^## (.+)$", reference.module_page(module), re.MULTILINE)
        anchors = [pages.github_anchor(heading) for heading in headings]
        assert len(anchors) == len(set(anchors)), module


def test_the_reference_shows_signature_arguments_and_examples():
    page = reference.module_page("asyncfed")
    section = page.split("\n## compare\n")[1].split("\n## ")[0]
    assert "    metric: str | None = None,\n" in section
    assert "- `seeds` (`Sequence[int]`): whole numbers ≥ 0" in section
    assert "```pycon\n>>> from asyncfed import presets" in section
    assert "[`Experiment`](#class-experiment)" in section


def test_the_readme_fits_two_screens():
    lines = (ROOT / "README.md").read_text().splitlines()
    rows = sum(max(1, -(-len(line) // 160)) if not line.startswith("|") else 1 for line in lines)
    assert rows <= 90, "Two screens of 45 lines: move what is more to a page of docs/."
    assert sum(line.startswith("![") for line in lines) == 1
    assert {"## Two commands", "## What nobody else has", "## Where to read on"} <= set(lines)


def test_the_citation_names_this_version():
    assert re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1] == __version__


# ---- links ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("README.md", "index.md"),
        ("docs/guide.md", "guide.md"),
        ("docs/tutorials/csv.md", "tutorials/csv.md"),
        ("docs/pictures/demo.png", "pictures/demo.png"),
        ("examples/own_data.py", "repository/examples/own_data.py.md"),
        ("examples", "repository/examples/files.md"),
        ("benchmarks/README.md", "repository/benchmarks/README.md"),
    ],
)
def test_a_file_has_its_place_in_the_site(path, there):
    assert pages.site_path(path) == there


def test_links_are_rewritten_outside_of_code_and_targets_are_found():
    found = []
    text = (
        "[a](guide.md#rules) [b](../examples/own_data.py) [c](https://x.org) [d](#here)\n```text\n[e](guide.md)\n```\n"
    )
    rewritten = pages.rewrite_links(text, "docs/data.md", found.append)
    assert "[a](guide.md#rules) [b](repository/examples/own_data.py.md) [c](https://x.org) [d](#here)" in rewritten
    assert "[e](guide.md)\n```" in rewritten
    assert found == ["docs/guide.md", "examples/own_data.py"]


def test_a_link_to_nothing_ends_the_build():
    with pytest.raises(FileNotFoundError, match=r"docs/data.md links to nowhere.md"):
        pages.rewrite_links("[a](nowhere.md)", "docs/data.md", lambda _: None)


def test_whatever_is_linked_to_is_staged(tmp_path):
    done = pages.stage(tmp_path, ["docs/performance.md"])
    assert {"benchmarks/README.md", "docs/pictures/rivals.png", "docs/deploy.md"} <= set(done)
    assert all((tmp_path / pages.site_path(path)).exists() for path in done)


def write_site(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.html").write_text(f"<html><body>{text}</body></html>")
    return problems_of(folder)


def test_a_site_whose_links_lead_somewhere_passes(tmp_path):
    one = '<a href="two.html#there">x</a> <a href="/two.html">w</a> <a href="https://elsewhere.org">y</a>'
    one += '<a href="#up">z</a><p id="up">'
    assert write_site(tmp_path, one=one, two='<h1 id="there">') == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('<a href="missing.html">', "one.html links to missing.html, which is not there."),
        ('<a href="two.html#gone">', "one.html links to two.html#gone, which is not there."),
        ('<img src="missing.png">', "one.html links to missing.png, which is not there."),
        ('<a href="../../etc">', "one.html links to ../../etc, which is not there."),
        ('<script src="https://cdn.org/x.js">', "one.html loads https://cdn.org/x.js; everything must be in the site."),
        ('<link rel="stylesheet" href="//x.org/y">', "one.html loads //x.org/y; everything must be in the site."),
    ],
)
def test_what_is_wrong_with_a_site_is_said(tmp_path, text, wrong):
    assert write_site(tmp_path, one=text, two="<h1>") == [wrong]


# ---- docstrings ----------------------------------------------------------------------------------------------------


def documented(rate, steps=3):
    """Do something.

    Args:
        rate: how fast,
            above 0.
        steps: how many.

    Returns:
        What came of it.

    >>> 1 + 1
    2

    More words.
    """


def test_a_docstring_becomes_markdown():
    page = docstring_markdown(documented, reference.argument_types(documented))
    assert "- `rate`: how fast,\n    above 0.\n- `steps` (default `3`): how many." in page
    assert "**Returns**\n\nWhat came of it." in page
    assert "```pycon\n>>> 1 + 1\n2\n```" in page
    assert page.endswith("More words.\n")


# ---- tutorials -----------------------------------------------------------------------------------------------------

TUTORIAL = """# A title

```python
print(1 + 1)
```

```text
2
```

```console
$ asyncfed --version
asyncfed 0.0
```

The end.
"""


def executed(*printed, picture=None):
    """The notebook of `TUTORIAL` as if it had been executed."""
    notebook = tutorials.to_notebook(TUTORIAL)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and "environ" not in cell["source"]]
    for cell, text in zip(code, printed, strict=True):
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}]
    if picture:
        data = {"image/png": base64.b64encode(picture).decode()}
        code[0]["outputs"].append({"output_type": "execute_result", "data": data})
    return notebook


def test_a_tutorial_is_a_notebook():
    text = TUTORIAL.replace("$ asyncfed --version", "$ asyncfed show x")
    sources = [cell["source"] for cell in tutorials.to_notebook(text)["cells"]]
    assert sources == ["# A title", tutorials.PLAIN_COMMANDS, "print(1 + 1)", "%%sh\nasyncfed show x", "The end."]


def test_pictures_come_after_the_code_that_draws_them():
    done = tutorials.with_outputs(TUTORIAL, "first", executed("2\n", "asyncfed 0.0\n", picture=b"png"))
    assert done.pictures == {"first-1.png": b"png"}
    assert "print(1 + 1)\n```\n\n![what this code draws](first-1.png)\n\n```text\n2" in done.page


@pytest.mark.parametrize(("one", "two", "line"), [("3\n", "asyncfed 0.0\n", 3), ("2\n", "asyncfed 0.1\n", 11)])
def test_a_tutorial_that_prints_something_else_is_refused(one, two, line):
    with pytest.raises(tutorials.TutorialError, match=rf"first\.md, line {line}: prints"):
        tutorials.with_outputs(TUTORIAL, "first", executed(one, two))


def test_a_command_alone_may_print_anything():
    alone = TUTORIAL.replace("asyncfed 0.0\n", "")
    assert tutorials.with_outputs(alone, "first", executed("2\n", "whatever\n")).pictures == {}


def test_other_commands_and_languages_are_refused():
    with pytest.raises(tutorials.TutorialError, match=r'line 1: a console block begins with "\$ asyncfed "'):
        tutorials.to_notebook("```console\n$ rm x\n```\n")
    with pytest.raises(tutorials.TutorialError, match='not "bash"'):
        tutorials.to_notebook("```bash\nls\n```\n")


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_each_tutorial_converts_and_says_what_to_read_next(path):
    text = path.read_text()
    code = [cell for cell in tutorials.to_notebook(text)["cells"] if cell["cell_type"] == "code"]
    assert len(code) >= 3
    assert re.search(r"\]\(\.\./\w+\.md", text)


def test_there_are_seven_tutorials():
    assert len(TUTORIALS) >= 7
