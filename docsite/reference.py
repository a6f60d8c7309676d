"""The reference: a page for each public module, written from the docstrings of the objects themselves."""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec

from docsite.docstrings import docstring_markdown
from docsite.pages import FENCE, github_anchor
from docsite.public_objects import MODULES, MORE_MODULES, explains_itself, exported, full_name

LINE = 100
CODE = re.compile(r"`([A-Za-z_][\w.]*)(\(\))?`")


@functools.cache
def places() -> dict[str, tuple[str, str]]:
    """{where an object is defined: (its module, its name there)}: the one place at which it is described."""
    found: dict[str, tuple[str, str]] = {}
    for module in (*MODULES, *MORE_MODULES):
        for name, value in exported(module):
            if explains_itself(value):
                found.setdefault(full_name(value), (module, name))
    return found


@functools.cache
def addresses() -> dict[str, str]:
    """{name: address} of what can be linked to, by the names that prose uses; a name with two meanings is left out."""
    found: dict[str, set[str]] = {}
    for value_name, (module, name) in places().items():
        address = f"{module}.md#{anchor_of(value_name)}"
        for written in {name, f"{module}.{name}", f"{module}.{name}".replace("asyncfed.", "af.", 1)}:
            found.setdefault(written, set()).add(address)
    return {name: linked.pop() for name, linked in found.items() if len(linked) == 1}


def anchor_of(value_name: str) -> str:
    """The anchor of an object on its page."""
    module, name = places()[value_name]
    return github_anchor(_heading(name, dict(exported(module))[name]))


def _heading(name: str, value: Any) -> str:
    return f"class {name}" if inspect.isclass(value) else name


def write_reference(folder: Path) -> list[str]:
    """Write all pages into `folder`; returns their names."""
    folder.mkdir(parents=True, exist_ok=True)
    for module in (*MODULES, *MORE_MODULES):
        (folder / f"{module}.md").write_text(module_page(module))
    return [f"{module}.md" for module in (*MODULES, *MORE_MODULES)]


def module_page(module: str) -> str:
    """The page of one module."""
    here, elsewhere = [], []
    for name, value in sorted(exported(module), key=lambda item: (item[0].lower(), item[0])):
        if inspect.ismodule(value) or name.startswith("_"):
            continue
        if explains_itself(value) and places()[full_name(value)] != (module, name):
            place, there = places()[full_name(value)]
            elsewhere.append(f"[`{there}`]({place}.md#{anchor_of(full_name(value))})")
        else:
            here.append(object_markdown(name, value))
    about = docstring_markdown(inspect.importlib.import_module(module))  # type: ignore[attr-defined]
    also = f"\nAlso here, described with the module they belong to: {', '.join(elsewhere)}.\n" if elsewhere else ""
    return link_names(f"# {module}\n\n{about}{also}\n" + "\n".join(here), module)


def object_markdown(name: str, value: Any) -> str:
    """One object: heading, signature, docstring, and the public methods of a class."""
    parts = [f"## {_heading(name, value)}\n"]
    if not explains_itself(value) and not isinstance(value, functools._lru_cache_wrapper):
        return "\n".join([*parts, _value_markdown(value)])
    parts += [_signature_code(name, value), docstring_markdown(value, argument_types(value))]
    if inspect.isclass(value):
        for member, function in public_members(value):
            parts.append(f"### {name}.{member}\n")
            if not isinstance(function, property | functools.cached_property):
                parts.append(_signature_code(member, function))
            parts.append(docstring_markdown(function, argument_types(function)))
    return "\n".join(parts)


def public_members(owner: type) -> Iterator[tuple[str, Any]]:
    """The methods and properties of a class that have a docstring of their own."""
    for name, member in vars(owner).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        described = isinstance(function, types.FunctionType | property | functools.cached_property)
        if not name.startswith("_") and described and (function.__doc__ or "").strip():
            yield name, function


def argument_types(value: Any) -> dict[str, str]:
    """Type and default of each argument, or of each field of a record, as code."""
    if inspect.isclass(value) and issubclass(value, msgspec.Struct):
        hints = {name: hint for owner in reversed(value.__mro__) for name, hint in _annotations(owner).items()}
        return {
            field.name: _described(hints.get(field.name, ""), _default_of(field))
            for field in msgspec.structs.fields(value)
        }
    signature = _signature_of(value)
    if signature is None:
        return {}
    return {
        name: _described(
            "" if parameter.annotation is parameter.empty else parameter.annotation,
            None if parameter.default is parameter.empty else _short(parameter.default),
        )
        for name, parameter in signature.parameters.items()
    }


def _annotations(owner: type) -> dict[str, Any]:
    return dict(vars(owner).get("__annotations__", {}))


def _default_of(field: msgspec.structs.FieldInfo) -> str | None:
    if field.default is not msgspec.NODEFAULT:
        return _short(field.default)
    if field.default_factory is not msgspec.NODEFAULT:
        return _short(field.default_factory())
    return None


def _described(annotation: Any, default: str | None) -> str:
    kind = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    words = [f"`{kind}`"] if kind else []
    return ", ".join([*words, *([f"default `{default}`"] if default else [])])


def _short(value: Any) -> str:
    """A default on one line: what is long or has an address of memory in it is only named."""
    text = repr(value)
    if " at 0x" in text or len(text) > 60:
        return f"{getattr(value, '__name__', type(value).__name__)}(…)"
    return text.replace("`", "'")


def _signature_of(value: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        return None


def _signature_code(name: str, value: Any) -> str:
    signature = _signature_of(value)
    if signature is None or (inspect.isclass(value) and issubclass(value, BaseException)):
        return ""
    shown = [
        str(parameter.replace(default=parameter.empty))
        + ("" if parameter.default is parameter.empty else f" = {_short(parameter.default)}")
        for parameter in signature.parameters.values()
    ]
    stars = [i for i, p in enumerate(signature.parameters.values()) if p.kind is p.KEYWORD_ONLY]
    named = any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values())
    if stars and not named:
        shown.insert(stars[0], "*")
    answer = signature.return_annotation
    arrow = "" if answer is inspect.Signature.empty or inspect.isclass(value) else f" -> {str(answer).strip(chr(39))}"
    shown = [re.sub(r""": (['"])(.*?)\1""", r": \2", part, count=1) for part in shown]
    line = f"{name}({', '.join(shown)}){arrow}"
    if len(line) > LINE:
        line = f"{name}(\n" + "".join(f"    {part},\n" for part in shown) + f"){arrow}"
    return f"```python\n{line}\n```\n"


def _value_markdown(value: Any) -> str:
    """A constant, or a type that stands for others."""
    if isinstance(value, dict):
        return "A dict with the keys " + ", ".join(f"`{key}`" for key in value) + ".\n"
    if isinstance(value, types.UnionType) and all(isinstance(part, type) for part in get_args(value)):
        return "One of " + ", ".join(f"`{part.__name__}`" for part in get_args(value)) + ".\n"
    if isinstance(value, tuple):
        return f"A tuple of {len(value)} entries.\n"
    return f"`{value!r}`\n"


def link_names(page: str, module: str) -> str:
    """Names of public objects in backticks, outside of code and headings, become links."""

    def linked(match: re.Match[str]) -> str:
        address = addresses().get(match[1])
        if address is None:
            return match[0]
        page, anchor = address.split("#")
        return f"[{match[0]}]({'' if page == f'{module}.md' else page}#{anchor})"

    def prose(text: str) -> str:
        return "\n".join(linked_line(line) for line in text.split("\n"))

    def linked_line(line: str) -> str:
        if line.startswith("#") or "](" in line:
            return line
        argument = re.match(r"- `[^`]+`", line)
        begin = argument.end() if argument else 0
        return line[:begin] + CODE.sub(linked, line[begin:])

    parts, end = [], 0
    for block in FENCE.finditer(page):
        parts += [prose(page[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, prose(page[end:])])


def objects_described(read: Callable[[str], str]) -> set[str]:
    """Which public objects have a heading on the page where they are to be described; `read` gives a page's text."""
    texts = {module: set(read(f"{module}.md").splitlines()) for module in (*MODULES, *MORE_MODULES)}
    return {
        value_name
        for value_name, (module, name) in places().items()
        if f"## {_heading(name, dict(exported(module))[name])}" in texts[module]
    }
