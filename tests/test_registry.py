"""Parts of one's own: registered by kind, or by a package's entry point, they are read like shipped ones."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import asyncfed as af
from asyncfed import registry
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Budget
from asyncfed.rules import Mean
from asyncfed.strategies import AFL, FedAsync, FedBuff, KeepBusy, UniformIdle
from asyncfed.uplinks import ErrorFeedback

PARTS = '''
import numpy as np

from asyncfed.rules import Mean, Rule
from asyncfed.core.record import Config
from asyncfed.core.types import Merge, Work
from asyncfed.registry import register
from asyncfed.strategies import ConstantRate, KeepBusy, Sampler, Schedule, UniformIdle
from asyncfed.strategies.dispatch import SamplerState


@register("sampler")
class LowestNumber(Config, tag_field="kind", tag="lowest_number"):
    """The idle clients with the lowest numbers; it counts its draws."""

    step: int = 1

    @property
    def queues(self):
        return False

    @property
    def memory_type(self):
        return tuple[int, ...]

    def start(self):
        return (0,)

    def draw(self, memory, view, k):
        idle = sorted(view.idle[i] for i in range(len(view.idle)))
        return idle[:k], (memory[0] + self.step,)


@register("strategy")
class Halving(KeepBusy, Config, tag_field="kind", tag="halving"):
    """Every arrival is mixed by one half, and is a round."""

    concurrency: int = 2
    sampler: Sampler = LowestNumber()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    def on_update(self, state, update, view):
        merge = Merge((update.report.ticket,), (0.5,), 0.5, "model", ends_round=True)
        return self.refill(state, view, [merge])


@register("rule")
class Averaged(Rule, Config, tag_field="kind", tag="averaged"):
    """The weighted sum, mixed with a running mean of all models, which it remembers."""

    share: float = 0.1

    def init(self, params, num_clients):
        return {"mean": params.copy()}

    def step(self, memory, params, arrivals, merge, key):
        merged, _, _ = Mean().step({}, params, arrivals, merge, key)
        mean = (1 - self.share) * memory["mean"] + self.share * merged
        return mean, {"mean": mean}, {"moved": float(abs(mean - params).max())}


@register("uplink")
class FirstHalf(Config, tag_field="kind", tag="first_half"):
    """The first half of what is left to send; the client keeps the rest."""

    remembers = True

    def init(self, num_params, dtype):
        return {"rest": np.zeros(num_params, dtype)}

    def size(self, num_params, itemsize):
        return (num_params + 1) // 2 * itemsize

    def encode(self, memory, change, key):
        wanted = memory["rest"] + change
        half = (wanted.size + 1) // 2
        return {"half": wanted[:half]}, {"rest": np.concatenate([np.zeros_like(wanted[:half]), wanted[half:]])}

    def decode(self, message, num_params, dtype):
        half = message["half"]
        if half.shape != ((num_params + 1) // 2,) or half.dtype != dtype:
            raise ValueError("half of the change is due")
        return np.concatenate([half, np.zeros(num_params - half.size, dtype)])
'''


@pytest.fixture
def package(tmp_path):
    """An installed package, as far as the interpreter can tell: a module, and metadata with an entry point."""
    (tmp_path / "other_parts.py").write_text(PARTS)
    info = tmp_path / "other_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-parts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[asyncfed.parts]\nmine = other_parts\n")
    return tmp_path


@pytest.fixture
def command(package):
    """`command("run", ...)` in a process of its own, which can import the package."""

    def call(*arguments, expect=0):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run(
            [sys.executable, "-m", "asyncfed", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment,
            cwd=package,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout + done.stderr

    return call


def described(folder: Path, small) -> Path:
    toml = folder / "experiment.toml"
    text = af.to_toml(small(strategy=FedAsync(concurrency=2, work=af.Work(batch_size=4)), budget=Budget(rounds=30)))
    head, tail = text.split("[strategy]\n")
    rest = tail[tail.index("[strategy.work]") :]
    toml.write_text(
        f'{head}[strategy]\nkind = "halving"\nconcurrency = 2\nsampler = {{ kind = "lowest_number" }}\n\n{rest}'
    )
    return toml


@pytest.mark.slow
def test_an_installed_package_brings_a_strategy_and_a_sampler(package, command, small):
    toml = described(package, small)
    command("run", toml, "--out", "one.sqlite")
    shown = command("show", "one.sqlite", "--toml")
    assert "halving" in shown
    assert "lowest_number" in shown


@pytest.mark.slow
def test_an_installed_package_brings_them_to_every_command(package, command, small):
    toml = described(package, small)
    command("run", toml, "--out", "one.sqlite")
    command("verify", "one.sqlite")
    command("resume", "one.sqlite")
    assert "halving" in command("compare", toml, "--strategies", "halving,sync", "--seeds", "1", "--workers", "1")
    assert "halving" in command("compare", toml, "--strategies", "halving,sync", "--seeds", "2", "--workers", "2")
    command("certify", toml, "--seeds", "1")


def with_rule_and_uplink(folder, small) -> Path:
    toml = folder / "other_half.toml"
    work = af.Work(batch_size=4, uplink=(ErrorFeedback(),))
    strategy = FedBuff(concurrency=2, buffer_size=2, work=work, rule=Mean())
    text = af.to_toml(small(strategy=strategy, budget=Budget(rounds=12)))
    text = text.replace('kind = "mean"', 'kind = "averaged"')
    toml.write_text(re.sub(r'\{ kind = "error_feedback".*\}', '{ kind = "first_half" }', text))
    return toml


@pytest.mark.slow
def test_an_installed_package_brings_a_rule_and_an_uplink(package, command, small):
    toml = with_rule_and_uplink(package, small)
    command("run", toml, "--out", "one.sqlite")
    shown = command("show", "one.sqlite", "--toml")
    assert "averaged" in shown
    assert "first_half" in shown
    assert "rule: moved" in command("show", "one.sqlite")
    command("verify", "one.sqlite")


@pytest.mark.slow
def test_an_installed_package_brings_a_rule_and_an_uplink_to_live_runs(package, command, small):
    toml = with_rule_and_uplink(package, small)
    command("live", toml, "--out", "live.sqlite")
    command("verify", "live.sqlite")
    command("run", toml, "--out", "one.sqlite")
    command("resume", "one.sqlite")
    command("certify", toml, "--seeds", "1")
    assert "fedbuff" in command("compare", toml, "--strategies", "fedbuff,sync", "--seeds", "2", "--workers", "2")


@pytest.mark.slow
def test_a_report_page_about_parts_of_ones_own(package, command, small):
    pytest.importorskip("plotly")
    command("run", described(package, small), "--out", "one.sqlite")
    command("report", "one.sqlite", "--out", "page.html")
    assert "halving" in (package / "page.html").read_text()


def test_a_package_that_cannot_be_loaded_is_named(package, command, small):
    (package / "other_parts.py").write_text("import a_module_that_is_not_there\n")
    complaint = " ".join(command("run", described(package, small), expect=2).split())
    assert 'The package "other-parts" offers parts for AsyncFed (other_parts), but they cannot be loaded' in complaint
    assert "uninstall it" in complaint


def test_a_kind_is_registered_once():
    with pytest.raises(
        ConfigError, match=r'cannot be registered as the strategy "afl": asyncfed\.strategies\.afl\.AFL'
    ):

        @registry.register("strategy")
        class Other(KeepBusy, Config, tag_field="kind", tag="afl"):
            """Not AFL."""


def test_a_part_needs_a_kind():
    with pytest.raises(ConfigError, match=r"Untagged cannot be registered: it has no kind"):

        @registry.register("strategy")
        class Untagged(KeepBusy, Config):
            """Has no tag."""


def test_unknown_sorts_and_kinds_are_refused_with_the_nearest_word():
    with pytest.raises(ConfigError, match=r'no sort of part called "stratgy". Did you mean "strategy"'):
        registry.register("stratgy")
    with pytest.raises(ConfigError, match=r'no sampler of kind "uniform_idel". Did you mean "uniform_idle"'):
        registry.find("sampler", "uniform_idel")


def test_registering_again_after_a_reload_is_fine():
    assert registry.register("strategy")(AFL) is AFL
    assert registry.find("strategy", "afl") is AFL
    assert registry.kinds("sampler")["uniform_idle"] is UniformIdle


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"strategy": {"kind": "afll"}}, r'strategy\.kind is "afll", which does not exist\. Did you mean "afl"'),
        ({"strategy": {"kind": "afl", "concurency": 3}}, r"\[strategy\] has no key `concurency`\. Did you mean"),
        (
            {"strategy": {"kind": "afl", "sampler": {"kind": "uniform_idle", "depth": 2}}},
            r"\[strategy\.sampler\] has no key `depth`",
        ),
        (
            {"strategy": {"kind": "afl", "sampler": {"kind": "shortest_queue", "depth": "two"}}},
            r"Expected `int`, got `str` - at `strategy\.sampler\.depth`",
        ),
        ({"strategy": "afl"}, r"Expected `object`, got `str` - at `strategy`"),
        ({"strategy": {"concurrency": 3}}, r"missing required field `kind` - at `strategy`"),
        (
            {
                "strategy": {
                    "kind": "bounded_staleness",
                    "max_staleness": 1,
                    "strategy": {"kind": "fedbuff", "bufer": 1},
                }
            },
            r"\[strategy\.strategy\] has no key `bufer`",
        ),
    ],
)
def test_a_wrong_part_is_named_with_its_whole_path(plain, message):
    from asyncfed.experiment import from_dict

    with pytest.raises(ConfigError, match=message):
        from_dict(plain)


def test_a_strategy_inside_another_is_read_back():
    from asyncfed.strategies import BoundedStaleness, ParticipationWeighted

    inner = ParticipationWeighted(strategy=FedAsync(concurrency=3))
    experiment = af.Experiment(strategy=BoundedStaleness(strategy=inner, max_staleness=2, when_stale="damp"))
    assert af.from_toml(af.to_toml(experiment)) == experiment
