"""Values that nobody expects, and places to put them."""

WORDS = (
    "",
    "x",
    "nan",
    "-1",
    "kind",
    "afl",
    "\x00",
    "é" * 40,
    "[red]",
    "../..",
    "1e400",
    "a" * 3000,
    "'",
    '"',
    "{",
    "%s",
)
NUMBERS = (0, 1, -1, 3, 0.5, -2.5, 1e308, -1e308, 1e-320, float("nan"), float("inf"), 2**31, 2**63, -(2**63), 2**70)


def any_value(rng, depth=0):
    """Anything that JSON can hold."""
    sort = rng.randrange(8 if depth < 3 else 5)
    if sort < 2:
        return rng.choice(NUMBERS)
    if sort == 2:
        return rng.choice(WORDS)
    if sort == 3:
        return None
    if sort == 4:
        return rng.choice((True, False))
    if sort == 5:
        return [any_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if sort == 6:
        return {rng.choice(WORDS): any_value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return nested_list(rng.choice((10, 300, 3000)))


def nested_list(depth):
    """A list in a list in a list ..."""
    nested = []
    for _ in range(depth):
        nested = [nested]
    return nested


def with_one_change(rng, plain):
    """A copy of plain values with one of them, at any depth, replaced, removed or doubled."""
    if isinstance(plain, dict) and plain and rng.random() < 0.9:
        key = rng.choice(sorted(plain))
        if rng.random() < 0.1:
            return {k: v for k, v in plain.items() if k != key}
        return {**plain, key: with_one_change(rng, plain[key])}
    if isinstance(plain, tuple):
        plain = list(plain)
    if isinstance(plain, list) and plain and rng.random() < 0.9:
        place = rng.randrange(len(plain))
        if rng.random() < 0.1:
            return plain[:place] + plain[place + 1 :]
        if rng.random() < 0.1:
            return [*plain[:place], plain[place], *plain[place:]]
        return [*plain[:place], with_one_change(rng, plain[place]), *plain[place + 1 :]]
    return like(rng, plain) if rng.random() < 0.6 else any_value(rng)


def like(rng, value):
    """Another value of the same type: what a check of types lets pass."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([number for number in NUMBERS if isinstance(number, int)])
    if isinstance(value, float):
        return float(rng.choice(NUMBERS))
    return rng.choice(WORDS) if isinstance(value, str) else any_value(rng)


def with_flipped_bytes(rng, content, most=20):
    """The bytes with up to so many of them changed, a piece cut out, or a piece repeated."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, most)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    sort = rng.randrange(6)
    start = rng.randrange(len(changed) + 1)
    if sort == 0:
        del changed[start : start + rng.randrange(200)]
    elif sort == 1:
        changed[start:start] = changed[start : start + 200]
    elif sort == 2:
        del changed[start:]
    return bytes(changed)
