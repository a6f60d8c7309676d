"""`check_rule` refuses what is broken and says why; rules/test_conformance.py shows what it accepts."""

from itertools import count

import numpy as np
import pytest

from asyncfed import registry
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Work
from asyncfed.rules import Rule
from asyncfed.testing import check_rule


class Sound(Rule, Config, tag_field="kind", tag="sound"):
    """A rule that passes: the mean of the changes and a part of its last step. The broken ones below are it."""

    part: float = 0.5

    def init(self, params, num_clients):
        return {"last": np.zeros_like(params)}

    def send(self, memory, client):
        return {"correction": memory["last"].copy()}

    def measure(self, memory, params, arrival, probe):
        return {"distance": float(np.abs(probe(params, 0, arrival.work, 0) - arrival.model).max())}

    def step(self, memory, params, arrivals, merge, key):
        memory["last"] *= self.part
        for arrival in arrivals:
            memory["last"] += arrival.weight * arrival.change
        return params + memory["last"], memory, {"updates": len(arrivals)}


@pytest.fixture
def known(monkeypatch):
    """`known(cls)`: a rule of this class, registered while the test lasts."""

    def make(made, **settings):
        monkeypatch.setitem(registry._parts["rule"].members, made.__struct_config__.tag, made)
        return made(**settings)

    return make


def test_the_rule_the_broken_ones_are_made_from_passes(known):
    check_rule(known(Sound))
    check_rule(known(Sound, part=0.0), num_clients=1, num_params=1, merge_size=1, seed=3)


def test_one_that_is_not_registered_is_refused():
    with pytest.raises(AssertionError, match="is it a Config with a tag, and registered"):
        check_rule(Sound())


class RefusesModels(Sound, tag_field="kind", tag="refuses_models"):
    def step(self, memory, params, arrivals, merge, key):
        if merge.of == "model":
            raise ConfigError("changes only")
        return super().step(memory, params, arrivals, merge, key)


def test_one_that_refuses_some_merges_passes(known):
    check_rule(known(RefusesModels))


class RefusesAll(Sound, tag_field="kind", tag="refuses_all"):
    def step(self, memory, params, arrivals, merge, key):
        raise ConfigError("not today")


class RefusesWork(Sound, tag_field="kind", tag="refuses_work"):
    def check(self, work):
        if work.epochs == 1:
            raise ConfigError("too short")


def test_a_work_of_its_own_may_be_passed(known):
    check_rule(known(RefusesWork), work=Work(epochs=2))
    with pytest.raises(
        AssertionError, match=r"check refuses the work .* pass another as `work`: ConfigError: too short"
    ):
        check_rule(known(RefusesWork))


class ChangesTheModel(Sound, tag_field="kind", tag="changes_the_model"):
    def step(self, memory, params, arrivals, merge, key):
        params += 1.0
        return params, memory, {}


class ChangesAnArrival(Sound, tag_field="kind", tag="changes_an_arrival"):
    def step(self, memory, params, arrivals, merge, key):
        arrivals[-1].model[0] = 0.0
        return super().step(memory, params, arrivals, merge, key)


class KeepsTheModel(Sound, tag_field="kind", tag="keeps_the_model"):
    """What it answers with is its memory, which it changes with the next merge."""

    def step(self, memory, params, arrivals, merge, key):
        memory["last"] += arrivals[0].change
        return memory["last"], memory, {}


class SendsItsMemory(Sound, tag_field="kind", tag="sends_its_memory"):
    def send(self, memory, client):
        return {"correction": memory["last"]}


class SendsTheUnknown(Sound, tag_field="kind", tag="sends_the_unknown"):
    def send(self, memory, client):
        return {"momentum": memory["last"].copy()}


class SendsTooMuch(Sound, tag_field="kind", tag="sends_too_much"):
    def send(self, memory, client):
        return {"correction": np.zeros(100)}


class Widens(Sound, tag_field="kind", tag="widens"):
    def step(self, memory, params, arrivals, merge, key):
        return params.astype(np.float64), memory, {}


class DividesByZero(Sound, tag_field="kind", tag="divides_by_zero"):
    def step(self, memory, params, arrivals, merge, key):
        with np.errstate(all="ignore"):
            return params / np.zeros_like(params), memory, {}


class Forgets(Sound, tag_field="kind", tag="forgets"):
    """Remembers on the side, where no checkpoint finds it."""

    seen = {}  # noqa: RUF012

    def init(self, params, num_clients):
        self.seen.clear()
        return super().init(params, num_clients)

    def step(self, memory, params, arrivals, merge, key):
        self.seen[params.tobytes()] = True
        return params + params.dtype.type(len(self.seen)), memory, {}


COUNTER = count()


class DependsOnTheClock(Sound, tag_field="kind", tag="depends_on_the_clock"):
    def step(self, memory, params, arrivals, merge, key):
        return params + params.dtype.type(next(COUNTER)), memory, {}


class MeasuresTheClock(Sound, tag_field="kind", tag="measures_the_clock"):
    def measure(self, memory, params, arrival, probe):
        return {"clock": float(next(COUNTER))}


class FindsAnArray(Sound, tag_field="kind", tag="finds_an_array"):
    def step(self, memory, params, arrivals, merge, key):
        return params, memory, {"norm": np.float64(3.0)}


class FindsNaN(Sound, tag_field="kind", tag="finds_nan"):
    def measure(self, memory, params, arrival, probe):
        return {"norm": float("nan")}


class RemembersObjects(Sound, tag_field="kind", tag="remembers_objects"):
    def init(self, params, num_clients):
        return {"last": np.array([{}])}


class RemembersAList(Sound, tag_field="kind", tag="remembers_a_list"):
    def init(self, params, num_clients):
        return {"last": [0.0] * params.size}


class Raises(Sound, tag_field="kind", tag="raises"):
    def step(self, memory, params, arrivals, merge, key):
        raise ZeroDivisionError("by nothing")


class WithAList(Sound, tag_field="kind", tag="with_a_list"):
    parts: list[float] = []  # noqa: RUF012


class NoMeasure(Config, tag_field="kind", tag="no_measure"):
    pass


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (RefusesAll, "refuses every merge it is tested with: not today"),
        (ChangesTheModel, "merge 0: step changed the model in place"),
        (ChangesAnArrival, r"step changed ticket \d's model in place"),
        (KeepsTheModel, "merge 1.*changed the model in place|merge 1 changed model 1"),
        (SendsItsMemory, r"what ticket \d+ was sent"),
        (SendsTheUnknown, r"send gives \['momentum'\], which clients do not know"),
        (SendsTooMuch, r"the correction that send gives has shape \(100,\); it must have \(6,\)"),
        (Widens, "the model that step gives holds float64; it must hold float32"),
        (DividesByZero, "the model that step gives is not finite"),
        (Forgets, "run twice|resumed from checkpoints|another model from a copy"),
        (DependsOnTheClock, "step gives another model from a copy of the same memory"),
        (MeasuresTheClock, "run twice: merge 0 differs in measured"),
        (FindsAnArray, r"info says norm = .*3\.0.* \(float64\); it must be a plain finite number"),
        (FindsNaN, "what is measured says norm = nan"),
        (RemembersObjects, 'the memory that init gives holds object as "last"'),
        (RemembersAList, 'the memory that init gives holds a list as "last"; make it an array'),
        (Raises, "changes of one update added, merge 0: ZeroDivisionError: by nothing"),
        (WithAList, "not hashable"),
        (NoMeasure, "lacks a method or property of ServerRule"),
    ],
)
def test_what_is_broken_is_refused(known, made, message):
    with pytest.raises(AssertionError, match=message):
        check_rule(known(made))
