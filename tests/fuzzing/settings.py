"""`--set key=value`: known keys with unexpected values, unknown keys, and texts that are neither."""

from tests.fuzzing.toml_texts import PATHOLOGICAL, toml_value
from tests.fuzzing.values import NUMBERS, WORDS

import asyncfed as af


def bad_settings(rng, folder, experiments):
    """The arguments of a run with one to three odd settings."""
    keys = known_keys(af.experiment.to_plain(rng.choice(experiments)))
    settings = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        sort = rng.randrange(8)
        if sort < 2:
            text = f"{rng.choice(keys)}={toml_value(rng)}"
        elif sort < 4:
            text = f"{rng.choice(keys)}={rng.choice(NUMBERS)}"
        elif sort == 4:
            text = rng.choice(WORDS) + rng.choice(("", "=", "==", ".=", "=.")) + rng.choice(WORDS)
        elif sort == 5:
            text = rng.choice(PATHOLOGICAL)(rng.choice((3, 600, 50_000))).replace(" = ", "=")
        elif sort == 6:
            text = f"{rng.choice(keys)}.{rng.choice(('kind', 'x', '', 'kind.kind'))}={toml_value(rng)}"
        else:
            text = f"{rng.choice(keys)}={rng.choice(WORDS)}"
        settings += ["--set", text.replace("\x00", "")]
    (folder / "small.toml").write_text(af.to_toml(rng.choice(experiments)))
    command = ["run", str(folder / "small.toml"), "--rounds", "2", "--out", str(folder / "run.sqlite"), "--force"]
    return command + settings


def known_keys(plain, prefix=""):
    """All dotted keys of an experiment that a short run may have set anew."""
    keys = []
    for key, value in plain.items():
        keys.append(prefix + key)
        if isinstance(value, dict):
            keys += known_keys(value, f"{prefix}{key}.")
    return keys
