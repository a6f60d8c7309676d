"""What a class promises of its own methods, for code that does what they do without calling them."""


def promises(value: object, name: str) -> bool:
    """Whether the value's own class has this attribute, and it is not False.

    An inherited one does not count, nor does one that is handed through from a wrapped value: a subclass or a wrapper
    may do something else, and has to make the promise anew.

    >>> class Sure:
    ...     known_ahead = True
    >>> class Perhaps(Sure):
    ...     pass
    >>> promises(Sure(), "known_ahead"), promises(Perhaps(), "known_ahead")
    (True, False)
    """
    return bool(vars(type(value)).get(name, False))
