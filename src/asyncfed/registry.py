"""Parts by kind: how a TOML file, the command line and other packages name strategies, samplers, delays, splits, ...

A part is a `Config` with a tag, `class Mine(Config, tag_field="kind", tag="mine")`, registered under the name of what
it is: "strategy", "rule", "aggregator", "optimiser", "uplink", "sampler", "discount", "schedule", "distribution",
"delays", "availability", "variation", "split", "data", "problem", "attack" or "privacy". Shipped parts register
themselves the same way as anybody else's. A package adds its own by an entry point of the group `asyncfed.parts` that
names a module; the module is imported when a kind is asked for that is not known yet.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, TypeVar

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import Config, ValidationError, from_plain, kind_of, use_part_decoder

ENTRY_POINT_GROUP = "asyncfed.parts"

T = TypeVar("T")
C = TypeVar("C", bound=type[Config])


class Part:
    """One sort of part: its name, the protocol its members satisfy, its members by kind.

    `default` is what a table without a `kind` stands for, if it may be left out.
    """

    def __init__(self, name: str, protocol: type[Any], default: type[Config] | None) -> None:
        self.name = name
        self.protocol = protocol
        self.default = default
        self.members: dict[str, type[Config]] = {}


_parts: dict[str, Part] = {}
_part_of_protocol: dict[type[Any], Part] = {}
_loaded_entry_points = False


def declare_part(name: str, protocol: type[Any], default: type[Config] | None = None) -> None:
    """Say that fields annotated with `protocol` hold parts of this name. Called once, beside the protocol.

    Args:
        name: what parts of this sort are called.
        protocol: what they satisfy; it must be `runtime_checkable`.
        default: what a table without a `kind` stands for; None if there must be one.
    """
    _parts[name] = _part_of_protocol[protocol] = Part(name, protocol, default)


def register(name: str) -> Callable[[C], C]:
    """A decorator that makes a part known by its tag: TOML files, the command line and saved runs may then name it.

    Args:
        name: what it is: "strategy", "rule", "aggregator", "optimiser", "uplink", "sampler", "discount", "schedule",
            "distribution", "delays", "availability", "variation", "split", "data", "problem", "attack" or "privacy".

    Returns:
        The decorator; it gives the class back unchanged.

    Raises:
        ConfigError: the class has no tag, or another class has the same one.
    """
    part = _part(name)

    def add(member: C) -> C:
        kind = kind_of(member)
        if kind is None:
            raise ConfigError(
                f"{member.__name__} cannot be registered: it has no kind. Write `class {member.__name__}(Config, "
                'tag_field="kind", tag="...")`.'
            )
        known = part.members.get(kind)
        if known is not None and (known.__module__, known.__qualname__) != (member.__module__, member.__qualname__):
            raise ConfigError(
                f'{member.__module__}.{member.__qualname__} cannot be registered as the {name} "{kind}": '
                f"{known.__module__}.{known.__qualname__} has that kind already. Give yours another tag."
            )
        part.members[kind] = member
        return member

    return add


def kinds(name: str) -> dict[str, type[Config]]:
    """All registered parts of one sort, those of installed packages included.

    Args:
        name: the sort, such as "strategy".

    Returns:
        The classes by kind.
    """
    _load_entry_points()
    return dict(_part(name).members)


def find(name: str, kind: str) -> type[Config]:
    """A registered part.

    Args:
        name: the sort, such as "strategy".
        kind: its tag.

    Returns:
        The class.

    Raises:
        ConfigError: there is none; it suggests the nearest kind.
    """
    member = _find(_part(name), kind)
    if member is None:
        raise ConfigError(f'There is no {name} of kind "{kind}". {did_you_mean(kind, kinds(name))}')
    return member


def part_members(protocol: Any) -> list[type[Config]] | None:
    """What a field of an experiment may hold.

    Args:
        protocol: the field's annotation.

    Returns:
        The registered classes, or None if fields of this annotation hold no parts.
    """
    part = _part_of_protocol.get(protocol) if isinstance(protocol, type) else None
    if part is None:
        return None
    return [*part.members.values(), *([] if part.default is None else [part.default])]


def _decode_part(protocol: type[Any], plain: Any) -> Any:
    part = _part_of_protocol.get(protocol)
    if part is None or isinstance(plain, protocol):
        return plain
    if not isinstance(plain, dict):
        raise ValueError(f"Expected `object`, got `{type(plain).__name__}`")
    kind = plain.get("kind")
    member = part.default if kind is None else _find(part, kind)
    if member is None:
        raise ValueError("Object missing required field `kind`" if kind is None else f"Invalid kind {kind!r}")
    try:
        return from_plain(plain, member)
    except ValidationError as error:
        raise ValueError(str(error)) from error  # the path of the field that holds the part is appended to it


use_part_decoder(_decode_part)


def _find(part: Part, kind: str) -> type[Config] | None:
    if kind not in part.members:
        _load_entry_points()
    return part.members.get(kind)


def _part(name: str) -> Part:
    if name not in _parts:
        raise ConfigError(f'There is no sort of part called "{name}". {did_you_mean(name, _parts)}')
    return _parts[name]


def _load_entry_points() -> None:
    """Import the modules that installed packages name, once; they register what they bring."""
    global _loaded_entry_points
    if _loaded_entry_points:
        return
    _loaded_entry_points = True
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            point.load()
        except Exception as error:
            raise ConfigError(
                f'The package "{point.dist.name if point.dist else point.value}" offers parts for AsyncFed '
                f"({point.value}), but they cannot be loaded: {error!r}. Mend or uninstall it."
            ) from error


def promises(value: object, name: str) -> bool:
    """Whether the value's own class has this attribute, and it is not False.

    An inherited one does not count, nor does one that is handed through from a wrapped value: a subclass or a wrapper
    may do something else, and has to make the promise anew.

    Args:
        value: a part, such as a strategy or a distribution.
        name: what is promised, such as "arrival_rule" or "as_numbers".

    Returns:
        Whether code may rely on it instead of calling the part's other methods.

    >>> class Sure:
    ...     known_ahead = True
    >>> class Perhaps(Sure):
    ...     pass
    >>> promises(Sure(), "known_ahead"), promises(Perhaps(), "known_ahead")
    (True, False)
    """
    return bool(vars(type(value)).get(name, False))
