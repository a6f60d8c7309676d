"""The defences of the study, by name: what an operator would set who expects a share of the clients to lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from asyncfed.core.record import Record, replace
from asyncfed.core.types import Work
from asyncfed.presets.robust_defaults import make_robust
from asyncfed.rules.aggregators.centered_clipping import CenteredClipping
from asyncfed.rules.aggregators.ctma import Ctma
from asyncfed.rules.aggregators.geometric_median import GeometricMedian
from asyncfed.rules.aggregators.krum import Krum, MultiKrum
from asyncfed.rules.aggregators.median import Median
from asyncfed.rules.aggregators.protocol import Aggregator
from asyncfed.rules.aggregators.trimmed_mean import TrimmedMean
from asyncfed.rules.latest_momenta import LatestMomenta
from asyncfed.rules.norm_bounded import NormBounded
from asyncfed.rules.protocol import ServerRule
from asyncfed.rules.robust import Robust
from asyncfed.strategies.aflguard import AFLGuard
from asyncfed.strategies.async_sgd import AsyncSGD
from asyncfed.strategies.basgd import BASGD
from asyncfed.strategies.fedbuff import FedBuff
from asyncfed.strategies.kardam import Kardam
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.zeno import Zeno

NUM_CLIENTS = 20
"""All of them are at work all the time."""

BUFFER = 20
"""Updates that are merged together by defences over a buffer: as many as there are clients."""

EXPECTED_SHARE = 0.4
"""The share of liars that the settings are for."""

EXPECTED = 8
"""Liars among `NUM_CLIENTS` clients or `BUFFER` updates that the settings are for."""

MOST_KARDAM = (NUM_CLIENTS - 1) // 3
"""Liars that Kardam allows among so many clients."""

OUTLIER = 2.0
"""How many times the median distance from the centre an update stands out at, where only outliers are left out."""

SERVER_LR = 1.0 / NUM_CLIENTS
"""What a change counts that is merged on arrival."""

Group = Literal["undefended", "over a buffer", "on arrival", "with trusted data"]


class Defence(Record):
    """A strategy with its defence.

    Args:
        name: what it is called in the study.
        summary: a line about it, with its settings.
        group: of which kind it is.
        base: the undefended strategy that it is compared with.
        make: the strategy for a work.
    """

    name: str
    summary: str
    group: Group
    base: str
    make: Callable[[Work], Strategy]

    @property
    def trusted(self) -> bool:
        """Whether the server needs rows that it trusts."""
        return self.group == "with trusted data"


def _buffered(rule: ServerRule | None = None) -> Callable[[Work], Strategy]:
    plain = FedBuff(concurrency=NUM_CLIENTS, buffer_size=BUFFER)
    return lambda work: replace(plain, work=work) if rule is None else replace(plain, work=work, rule=rule)


def _over_a_buffer(name: str, summary: str, rule: ServerRule) -> Defence:
    return Defence(name, summary, "over a buffer", "fedbuff", _buffered(rule))


def _robust(name: str, summary: str, aggregator: Aggregator) -> Defence:
    return _over_a_buffer(name, summary, Robust(aggregator=aggregator))


def _undefended() -> list[Defence]:
    summary = f"undefended: the mean of a buffer of {BUFFER} updates"
    arriving = f"undefended: every change counts 1/{NUM_CLIENTS} as it arrives"
    return [
        Defence("fedbuff", summary, "undefended", "fedbuff", _buffered()),
        Defence(
            "async_sgd",
            arriving,
            "undefended",
            "async_sgd",
            lambda work: AsyncSGD(concurrency=NUM_CLIENTS, server_lr=SERVER_LR, work=work),
        ),
    ]


def _with_a_buffer() -> list[Defence]:
    rest = BUFFER - EXPECTED
    return [
        _over_a_buffer("norm_bounded", "changes shortened to twice the median length", NormBounded()),
        _robust("median", "the median of each coordinate", Median(liars=EXPECTED)),
        _robust(
            "trimmed_mean",
            f"the mean of each coordinate without its {EXPECTED} largest and {EXPECTED} smallest",
            TrimmedMean(liars=EXPECTED),
        ),
        _robust("geometric_median", "the geometric median", GeometricMedian()),
        _robust("krum", f"the one update with the nearest neighbours, for {EXPECTED} liars", Krum(liars=EXPECTED)),
        _robust("multi_krum", f"the mean of the {rest} best updates by Krum's score", MultiKrum(liars=EXPECTED)),
        _robust(
            "centered_clipping",
            "the last aggregate, moved towards each update by at most the running median of the distances, 3 times",
            CenteredClipping(iterations=3),
        ),
        Defence(
            "robust_default",
            f"what `--robust` puts in for {EXPECTED} liars: updates far from all clients' latest count as their median",
            "over a buffer",
            "fedbuff",
            lambda work: make_robust(_buffered()(work), NUM_CLIENTS, EXPECTED)[0],
        ),
        _robust("ctma", f"the mean of the {rest} updates nearest to the median", Ctma(liars=EXPECTED)),
        _robust(
            "ctma_outliers",
            f"the mean without those of the {EXPECTED} farthest that are {OUTLIER:g} times as far as the median one",
            Ctma(anchor=GeometricMedian(), liars=EXPECTED, factor=OUTLIER),
        ),
    ]


def _on_arrival() -> list[Defence]:
    return [
        Defence(
            "momentum_ctma",
            f"on every arrival, of all clients' latest momenta those nearest to the median, {EXPECTED_SHARE:g} of the "
            "weight left out",
            "on arrival",
            "async_sgd",
            lambda work: AsyncSGD(
                concurrency=NUM_CLIENTS,
                server_lr=SERVER_LR,
                work=work,
                rule=LatestMomenta(aggregator=Ctma(share=EXPECTED_SHARE)),
            ),
        ),
        Defence(
            "basgd",
            f"BASGD: the median of {2 * EXPECTED + 1} buckets of clients, as soon as none is empty",
            "on arrival",
            "async_sgd",
            lambda work: BASGD(
                concurrency=NUM_CLIENTS, buckets=2 * EXPECTED + 1, aggregator=Median(liars=EXPECTED), work=work
            ),
        ),
        Defence(
            "kardam",
            f"Kardam's Lipschitz and frequency filters for {MOST_KARDAM} liars, the most it allows; damping 0.02",
            "on arrival",
            "async_sgd",
            lambda work: Kardam(
                concurrency=NUM_CLIENTS, liars=MOST_KARDAM, damping=0.02, server_lr=SERVER_LR, work=work
            ),
        ),
    ]


def _with_trust() -> list[Defence]:
    return [
        Defence(
            "zeno",
            "Zeno++ with trusted rows: scaled to the trusted change, dropped if it points elsewhere",
            "with trusted data",
            "async_sgd",
            lambda work: Zeno(concurrency=NUM_CLIENTS, trusted_client="server", server_lr=SERVER_LR, work=work),
        ),
        Defence(
            "aflguard",
            "AFLGuard with trusted rows: dropped if further than 1.5 lengths from the trusted change",
            "with trusted data",
            "async_sgd",
            lambda work: AFLGuard(concurrency=NUM_CLIENTS, trusted_client="server", server_lr=SERVER_LR, work=work),
        ),
    ]


DEFENCES: dict[str, Defence] = {
    defence.name: defence for defence in (*_undefended(), *_with_a_buffer(), *_on_arrival(), *_with_trust())
}
"""All defences by name, in the order in which they are listed."""

BASES = tuple(name for name, defence in DEFENCES.items() if defence.group == "undefended")
"""The undefended strategies."""
