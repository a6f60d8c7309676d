"""Build the site: `python -m docsite`, or `make docs`.

Pages go to build/docs, the site to build/site, the executed notebooks to build/site/tutorials. Any warning of MkDocs, a
link that leads nowhere, a tutorial that prints something else than it shows: each ends the build with an error.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from docsite.check_html import problems_of
from docsite.pages import ROOT, documents, github_anchor, rewrite_links, site_path, stage
from docsite.reference import write_reference
from docsite.tutorials import Executed, TutorialError, execute

SOURCE, SITE = ROOT / "build" / "docs", ROOT / "build" / "site"
WORKERS = 2


def main() -> None:
    """Stage, execute, build, check."""
    parser = argparse.ArgumentParser(description="Build the documentation site into build/site.")
    parser.add_argument("--without-tutorials", action="store_true", help="do not execute them: quick, without pictures")
    quick = parser.parse_args().without_tutorials
    began = time.monotonic()
    for folder in (SOURCE, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    stage(SOURCE, documents())
    shutil.copy(ROOT / "docsite" / "site.css", SOURCE)
    write_reference(SOURCE / "reference")
    if not quick:
        execute_tutorials(sorted((ROOT / "docs" / "tutorials").glob("*.md")))
    build_site()
    problems = problems_of(SITE)
    if problems:
        sys.exit("\n".join([*problems, f"{len(problems)} things are wrong with the site."]))
    pages = len(list(SITE.rglob("*.html")))
    print(f"{pages} pages in {SITE.relative_to(ROOT)}, links checked, {time.monotonic() - began:.0f} s", end="; ")
    print(f"look at it with: python -m http.server --directory {SITE.relative_to(ROOT)}")


def execute_tutorials(files: Iterable[Path]) -> None:
    """Execute all, `WORKERS` at a time; write their pages, pictures and notebooks."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with ProcessPoolExecutor(WORKERS) as pool:
        for file, seconds, done in pool.map(_execute_file, files):
            print(f"{file.relative_to(ROOT)}: executed in {seconds:.0f} s, {len(done.pictures)} pictures")
            _write(file, done)


def _execute_file(file: Path) -> tuple[Path, float, Executed]:
    began = time.monotonic()
    try:
        done = execute(file.read_text(), file.stem)
    except TutorialError as error:
        raise SystemExit(f"{file.relative_to(ROOT)}: {error}") from error
    return file, time.monotonic() - began, done


def _write(file: Path, done: Executed) -> None:
    path = file.relative_to(ROOT).as_posix()
    page = SOURCE / site_path(path)
    notebook = page.with_suffix(".ipynb")
    link = f"\n\nThis page as a notebook, executed: [{notebook.name}]({notebook.name}).\n"
    (page.parent / "pictures").mkdir(exist_ok=True)
    text = done.page
    for name, data in done.pictures.items():
        (page.parent / "pictures" / name).write_bytes(data)
        text = text.replace(f"]({name})", f"](pictures/{name})")
    notebook.write_text(json.dumps(done.notebook, indent=1, ensure_ascii=False))
    page.write_text(_with_links(text, path) + link)


def _with_links(text: str, path: str) -> str:
    """Links of the tutorial as the site has them; pictures made by it lie beside it already."""
    made = "](pictures/"
    kept = text.replace(made, "](made:")
    return rewrite_links(kept, path, lambda _: None).replace("](made:", made)


def build_site() -> None:
    """Run MkDocs in strict mode with GitHub's names of anchors."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    config = load_config(str(ROOT / "mkdocs.yml"), docs_dir=str(SOURCE), site_dir=str(SITE), strict=True)
    config.mdx_configs["toc"] = {**config.mdx_configs.get("toc", {}), "slugify": github_anchor}
    try:
        build(config)
    except Abort as error:
        sys.exit(f"MkDocs: {error}")


if __name__ == "__main__":
    main()
