"""What a function or a module is, as text that is the same in another process: part of a problem's fingerprint."""

from __future__ import annotations

import inspect
from functools import partial
from hashlib import sha256
from textwrap import dedent
from types import CodeType
from typing import Any

import numpy as np
from torch import nn


def source_text(thing: Any) -> str:
    """The source of a named function or class; of a lambda, or without a source, its compiled form.

    What is not in the thing itself cannot be seen: the values its names stand for elsewhere, files it reads.
    """
    if isinstance(thing, partial):
        settings = ", ".join(f"{k}={v!r}" for k, v in sorted(thing.keywords.items()))
        return f"partial({source_text(thing.func)}, {', '.join(map(repr, thing.args))}, {settings})"
    if isinstance(thing, nn.Module):
        return module_text(thing)
    name = f"{thing.__module__}.{thing.__qualname__}" if inspect.isroutine(thing) or inspect.isclass(thing) else ""
    if not name:
        return source_text(type(thing))
    if name.startswith("torch."):
        return name
    code = getattr(thing, "__code__", None)
    if "<lambda>" not in name:
        try:
            return f"{thing.__qualname__}: {dedent(inspect.getsource(thing))}"
        except (OSError, TypeError):
            pass  # typed into a prompt, or not written in Python
    return thing.__qualname__ if code is None else f"{thing.__qualname__}: {_code_digest(code)}"


def module_text(module: nn.Module) -> str:
    """Its printed structure, the shapes and kinds of its tensors, and the sources of classes that are not torch's."""
    tensors = [f"{k} {tuple(v.shape)} {v.dtype}" for k, v in module.state_dict().items()]
    kinds = {type(part) for part in module.modules() if not type(part).__module__.startswith("torch.")}
    sources = sorted(source_text(kind) for kind in kinds)
    return "\n".join([str(module), *tensors, *sources])


def _code_digest(code: CodeType) -> str:
    digest = sha256(code.co_code)
    digest.update(repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    for constant in code.co_consts:
        digest.update((_code_digest(constant) if isinstance(constant, CodeType) else repr(constant)).encode())
    return digest.hexdigest()


def params_digest(params: np.ndarray) -> str:
    return sha256(np.ascontiguousarray(params).data.cast("B")).hexdigest()
