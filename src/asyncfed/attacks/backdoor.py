"""Backdoor: liars teach the model to answer a trigger with a class of their choice, and to answer all else rightly.

Sends: the change that the client's own rows bring after a share of them got the trigger and the target class;
multiplied, if it is to outweigh honest changes.
Equation: in `share` of the rows x[features] = value and y = target; lie = boost * change on these rows.
Knows: its own data and the model it was sent; a real client can do this.
Paper: Bagdasaryan, Veit, Hua, Estrin & Shmatikov, "How To Backdoor Federated Learning", AISTATS 2020; Gu,
Dolan-Gavitt & Garg, "BadNets", 2017.
Aims at: everything that watches the loss: accuracy on clean rows stays. Long changes (a boost) are seen by their
length; without a boost it is a small part of an honest change.
Measured by: `backdoor_success`, the share of honest clients' rows of other classes (test rows, where some are held
out) that the model puts into the target class once the trigger is set.
"""

from __future__ import annotations

import numpy as np

from asyncfed.attacks.protocol import LiarView, Lying, Targets
from asyncfed.attacks.settings import require_finite, require_positive, require_share
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.problems.protocol import Array
from asyncfed.registry import register


@register("attack")
class Backdoor(Lying, Config, tag_field="kind", tag="backdoor"):
    """Trains on rows some of which have a trigger and the target class, and sends what that brings, multiplied.

        x[features] = value and y = target in `share` of the rows;    lie = boost * change

    Needs classes or labels, on a table or on images, with PyTorch or without it.

    Args:
        features: the features that are the trigger, by number; of images, numbers into the flat row. At least one.
        value: what they are set to, finite.
        target: the class that the trigger is to bring; -1 or 1 of labels.
        share: the share of the liar's rows that get the trigger, above 0 and at most 1.
        boost: what the change is multiplied by, above 0.

    >>> Backdoor(features=())
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: attack.features is empty; a trigger needs at least one feature, by its number.
    """

    features: tuple[int, ...] = (0,)
    value: float = 1.0
    target: int = 0
    share: float = 0.5
    boost: float = 1.0
    poisons_rows = True
    measures = "backdoor_success"

    def __post_init__(self) -> None:
        if not self.features or min(self.features) < 0:
            found = "empty" if not self.features else f"{self.features}"
            raise ConfigError(f"attack.features is {found}; a trigger needs at least one feature, by its number.")
        require_finite("attack.value", self.value)
        require_share("attack.share", self.share)
        require_positive("attack.boost", self.boost)

    def check(self, targets: Targets | None) -> None:
        """Refuse problems without classes, and a target that is none."""
        if targets is None:
            return
        if targets.kind == "numbers":
            raise ConfigError("attack: a backdoor needs a problem with classes, and this one predicts numbers.")
        known = (-1, 1) if targets.kind == "labels" else tuple(range(targets.num_classes))
        if self.target not in known:
            raise ConfigError(f"attack.target is {self.target}; it must be one of the classes {known}.")

    def lie(self, view: LiarView) -> Array:
        """boost * change on the poisoned rows."""
        return view.change if self.boost == 1.0 else self.boost * view.change

    def poison(self, x: Array, y: Array, targets: Targets, key: int) -> tuple[Array, Array]:
        """The rows, `share` of them, drawn by the key, with trigger and target; at least one."""
        from asyncfed.kernels.keyed_normals import keyed_uniforms  # loads scipy

        count = max(1, round(self.share * len(y)))
        chosen = np.sort(np.argsort(keyed_uniforms(key, len(y)), kind="stable")[:count])
        poisoned, answers = x.copy(), y.copy()
        poisoned[chosen] = self._with_trigger(x[chosen])
        answers[chosen] = self.target
        return poisoned, answers

    def trigger(self, x: Array, y: Array, targets: Targets) -> tuple[Array, Array]:
        """The rows of other classes with the trigger set, their answer the target."""
        others = y != self.target
        triggered = self._with_trigger(x[others])
        return triggered, np.full_like(y[others], self.target)

    def _with_trigger(self, x: Array) -> Array:
        flat = x.reshape(len(x), -1).copy()
        if max(self.features) >= flat.shape[1]:
            raise ConfigError(
                f"attack.features names feature {max(self.features)}; a row has {flat.shape[1]}, numbered from 0."
            )
        flat[:, list(self.features)] = self.value
        return flat.reshape(x.shape)
