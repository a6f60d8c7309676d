"""Record and Config: the two frozen, slotted kinds of value everything is made of.

The only place that imports msgspec. It builds a record in about a tenth of a microsecond (a frozen dataclass takes
ten times as long, and five are built per simulated update), checks types when a TOML or JSON text is read, and
names the path of what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast, dataclass_transform

import msgspec
from msgspec import UNSET as UNSET
from msgspec import UnsetType as UnsetType
from msgspec import field as field

ValidationError = msgspec.ValidationError
T = TypeVar("T")

if TYPE_CHECKING:  # tells type checkers what msgspec's own annotations cannot: subclasses are frozen too

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    class Record:
        def __init_subclass__(cls, *, tag_field: str | None = None, tag: str | None = None) -> None: ...

    @dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
    class Config:
        def __init_subclass__(cls, *, tag_field: str | None = None, tag: str | None = None) -> None: ...

else:

    class Record(msgspec.Struct, frozen=True, gc=False):
        """A frozen value with positional fields: what the server and the engines hand each other.

        The garbage collector need not look at it: a frozen value made of values cannot be part of a cycle.
        """

    class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
        """A frozen value with keyword fields: what a user writes. Unknown keys are refused when read from text."""


def replace(record: T, **changes: Any) -> T:
    """A copy with some fields changed, checked like a new one.

    Args:
        record: any `Record` or `Config`, such as an experiment or a strategy.
        changes: fields by name.

    Returns:
        The copy; `record` itself never changes.
    """
    return msgspec.structs.replace(record, **changes)  # type: ignore[type-var]


def with_field_type(record: type[T], name: str, kind: Any) -> type[T]:
    """The record with this type for a field declared `Any`, so that `from_plain` makes what was written of it."""
    return cast(type[T], _with_field_type(cast(Any, record), name, kind))


@cache  # the fields of a new class are read anew, which takes longer than to make a value of it
def _with_field_type(record: Any, name: str, kind: Any) -> Any:
    return type(record)(record.__name__, (record,), {"__annotations__": {name: kind}}, kw_only=True)


def leave_out(record: Any, name: str) -> None:
    """Set a field to UNSET, for use in `__post_init__` only. A field that is UNSET is not written down at all."""
    msgspec.structs.force_setattr(record, name, UNSET)


def to_plain(value: Any) -> Any:
    """Dicts, lists, numbers and strings only: what JSON and TOML can hold."""
    return msgspec.to_builtins(value)


_part_decoders: list[Callable[[type[Any], Any], Any]] = []


def use_part_decoder(decode: Callable[[type[Any], Any], Any]) -> None:
    """From now on `decode(annotation, plain)` makes what is annotated with a class that is no record."""
    _part_decoders[:] = [decode]


def _decode_part(annotation: type[Any], plain: Any) -> Any:
    return _part_decoders[0](annotation, plain) if _part_decoders else plain


def from_plain(plain: Any, kind: type[T]) -> T:
    """The inverse of `to_plain`, checked. Raises `ValidationError`, which names the path of what is wrong."""
    return msgspec.convert(plain, kind, dec_hook=_decode_part)


def kind_of(config: type[Any]) -> str | None:
    """The tag by which a table in TOML names this class, or None if it has none."""
    tag = config.__struct_config__.tag if issubclass(config, msgspec.Struct) else None
    return None if tag is None else str(tag)


_json = msgspec.json.Encoder(order="deterministic")


def to_json(value: Any) -> str:
    """One line of JSON, the same for equal values; numbers that are not finite become null."""
    return _json.encode(value).decode()


_packed = msgspec.msgpack.Encoder().encode


def pack_rows(rows: Sequence[tuple[Any, ...]]) -> bytes:
    """The bytes of rows of numbers, texts and Nones: the same on every machine, and joined if the rows are joined.

    >>> pack_rows([(1, None)]) + pack_rows([(2.0, "x")]) == pack_rows([(1, None), (2.0, "x")])
    True
    """
    count = len(rows)
    header = 1 if count < 16 else 3 if count < 65536 else 5  # MessagePack says first how long an array is
    return _packed(rows)[header:]


def pack(record: Any) -> bytes:
    """A record as MessagePack."""
    return _packed(record)


def unpack(packed: bytes | bytearray, kind: type[T]) -> T:
    """The inverse of `pack`, checked. Raises `ValidationError` if the bytes are no MessagePack or no such record."""
    try:
        return cast(T, _decoder(kind).decode(packed))  # type: ignore[arg-type]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise ValidationError(str(error)) from error


@cache
def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind, dec_hook=_decode_part)


def unpack_rows(packed: bytes, count: int, row: Any = list[Any]) -> list[Any]:
    """The inverse of `pack_rows`, checked like `unpack`; `count` is how many rows there are, `row` their type."""
    return unpack(b"\xdd" + count.to_bytes(4, "big") + packed, list[row])
