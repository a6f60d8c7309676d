"""Who will take part how often, how late and how fast: predicted before a run from mean durations alone.

C clients, J tickets in flight, m_c the mean seconds a ticket keeps client c at work. Every report is merged by itself
and answered with one new ticket. How often each client is then merged depends on who gets that ticket:

    queued_dispatch   anyone, busy or not; the busy queue it     share_c = chance of being named
    idle_dispatch     an idle client, the finisher included      share_c ∝ P(c busy) / m_c; with J = C it is ∝ 1/m_c
    cohort_dispatch   no one, until the whole cohort is back     share_c = 1/C

Staleness counts the merges between a ticket's dispatch and its own merge. In either asynchronous case Little's law,
with merges as the clock, gives (staleness_c + 1) · share_c = tickets of c in flight just after a dispatch; and who has
just reported sees the others as if one ticket fewer were in flight. Hence mean staleness is J − 1 whatever the speeds.

Means come from `asyncfed.delays`: `expected_durations` of a description, `estimate_durations` of any model.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, log, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from asyncfed.core.errors import ConfigError

Array = NDArray[np.float64]

_TAIL_EXPONENT = 40.0
"""Chances below exp(-40) are left out: they are smaller than what rounding does to the others."""

_ROUND_NODES = 128

QUEUED_LIMITS = (
    "Shares are exact for any durations. Throughput, times and staleness are exact once the run has settled, if "
    "computing times are exponential and downloads constant (uploads may vary as they like); otherwise they are "
    "approximate, the worse the heavier the tails. Not covered: lost, dropped or held-back updates, clients that come "
    "and go, absences."
)
IDLE_LIMITS = (
    "Exact once the run has settled, whatever the distribution of the durations: only their means matter (if many "
    "durations are multiples of one step, so that reports coincide, small differences remain; with heavy tails the run "
    "settles slowly). Not covered: lost, dropped or held-back updates, clients that come and go, absences."
)
COHORT_LIMITS = (
    "Shares and staleness are exact for any durations. The time of a round, and so the throughput, is exact for "
    "exponential durations only: it depends on the slowest of a cohort, that is on the tails. Not covered: lost "
    "updates, clients that come and go, absences."
)


@dataclass(frozen=True, eq=False)
class Prediction:
    """What to expect of each client (arrays of length C) in the long run.

    Attributes:
        dispatch: how clients are drawn: "idle", "queued" or "cohort".
        in_flight: J ≥ 1, tickets out at once.
        share: of all merges, (C,), summing to 1.
        throughput: merges per second, of all clients together.
        tickets: at the client on average, (C,), waiting or worked on.
        sojourn: seconds from dispatch to report, (C,).
        utilisation: the fraction of time the client computes, (C,); where it holds one ticket at a time, is at work.
        staleness: in merges, (C,); NaN for a client that is never drawn.
        limits: when this is exact, in words.
    """

    dispatch: str
    in_flight: int
    share: Array
    throughput: float
    tickets: Array
    sojourn: Array
    utilisation: Array
    staleness: Array
    limits: str

    @property
    def client_throughput(self) -> Array:
        """Merges per second of each client."""
        return self.throughput * self.share

    @property
    def mean_staleness(self) -> float:
        """Over all merges, of whichever client."""
        drawn = self.share > 0
        return float(self.share[drawn] @ self.staleness[drawn])

    @property
    def jain_index(self) -> float:
        """Of the shares: 1 when all clients are merged equally often, 1/C when only one is."""
        return float(1.0 / (len(self.share) * np.sum(self.share**2)))


# ---- tickets go to anyone, and queue -------------------------------------------------------------------------


def queued_dispatch(
    mean_service: ArrayLike, in_flight: int, routing: ArrayLike | None = None, mean_transfer: ArrayLike = 0.0
) -> Prediction:
    """Each new ticket goes to client c with chance `routing[c]` (equal if None), who works first come first served.

    A closed product-form network (Gordon & Newell 1967): P(n_1 … n_C tickets) ∝ Π ρ_c^n_c with ρ_c = routing_c · m_c,
    m_c = `mean_service`, exponential. `mean_transfer` is what a ticket spends besides, without keeping the client from
    others (download and upload). With G_j the sum of those products over all ways to place j tickets,

        throughput = G_{J−1} / G_J
        tickets_c = Σ_{k=1..J} ρ_c^k G_{J−k} / G_J
        staleness_c = tickets_c(in a network of J − 1 tickets) / routing_c

    the last by what is said at the top. Cost O(C·J + J²): 10 000 clients with 1 000 tickets take about 0.1 s.

    >>> twice_as_fast = queued_dispatch([1.0, 2.0], in_flight=2)
    >>> twice_as_fast.share.tolist(), round(twice_as_fast.throughput, 6), twice_as_fast.staleness.round(6).tolist()
    ([0.5, 0.5], 0.857143, [0.666667, 1.333333])
    """
    service = _durations(mean_service, "mean_service", least=0.0)
    transfer = np.broadcast_to(_durations(mean_transfer, "mean_transfer", least=0.0), service.shape)
    _require_in_flight(in_flight)
    chance = _chances(routing, len(service), "routing")
    demand, think = chance * service, float(chance @ transfer)
    scale = max(float(demand.max()), think / in_flight)
    if scale <= 0.0:
        raise ConfigError("every client that may be drawn takes 0 s; a prediction needs some duration above 0.")
    shrink, throughputs = _placements(demand / scale, think / scale, in_flight)
    throughput, one_fewer = float(throughputs[-1] / scale), float(throughputs[-2] / scale)
    queue, queue_of_fewer = (service / scale * _polynomial(demand / scale, falling) for falling in shrink)
    sojourn = queue / throughput + transfer
    return Prediction(
        dispatch="queued",
        in_flight=in_flight,
        share=chance,
        throughput=throughput,
        tickets=throughput * chance * sojourn,
        sojourn=sojourn,
        utilisation=throughput * demand,
        staleness=np.where(chance > 0, queue_of_fewer + one_fewer * transfer, np.nan),
        limits=QUEUED_LIMITS,
    )


def _placements(demand: Array, think: float, in_flight: int) -> tuple[tuple[Array, Array], Array]:
    """Ratios of the sums G_j of Π ρ_c^n_c · think^n_0/n_0! over all placements of j tickets.

    Gives G_{j−k}/G_j, k = 1 … J, for j = J and j = J − 1, and G_{j−1}/G_j for j = 0 … J. By Newton's identities, all of
    whose terms are positive here: j G_j = Σ_k P_k G_{j−k}, P_k = Σ_c ρ_c^k (P_1 also counts `think`). The caller scales
    such that G never falls with j, so no ratio exceeds 1.
    """
    power, sums = np.ones_like(demand), np.empty(in_flight)
    for k in range(in_flight):
        power *= demand
        sums[k] = power.sum()
    sums[0] += think
    falling = np.zeros(in_flight + 1)
    falling[0] = 1.0
    ratios = np.zeros(in_flight + 1)
    for j in range(1, in_flight + 1):
        of_fewer = falling.copy()
        growth = float(sums[:j] @ falling[:j]) / j
        ratios[j] = 1.0 / growth
        falling[1 : j + 1] = falling[:j] / growth
    return (falling[1:], of_fewer[1:]), ratios


def _polynomial(at: Array, coefficients: Array) -> Array:
    """Σ_k coefficients[k] · at^k, for many points at once."""
    value = np.zeros_like(at)
    for coefficient in coefficients[::-1]:
        value = value * at + coefficient
    return value


# ---- tickets go to idle clients only -------------------------------------------------------------------------


def idle_dispatch(mean_service: ArrayLike, in_flight: int, weights: ArrayLike | None = None) -> Prediction:
    """Each new ticket goes to an idle client, drawn in proportion to `weights` (equal if None), the finisher included.

    `mean_service` is a ticket's whole time: download, computing, upload. The set S of clients at work has the law

        P(S) ∝ Π_{c in S} x_c, |S| = J, x_c = weight_c · m_c

    for replacing c by d balances exactly with replacing d by c. It stays the same for durations of any distribution
    with these means: with the ages a_c of the tickets it is Π_{c in S} weight_c · P(duration_c > a_c), and the flow
    into "c just began" equals, rest by rest, the flow out of "c ends". Then, with the elementary symmetric polynomials
    e_j,

        P(c busy) = x_c e_{J−1}(x without c) / e_J(x)       throughput = Σ P(c busy) / m_c
        share_c = P(c busy) / (m_c · throughput)
        staleness_c = m_c Σ_{d≠c} weight_d e_{J−2}(x without c, d) / e_{J−1}(x without c)

    With in_flight = C all clients always work and share_c ∝ 1/m_c. See `_leave_one_out` for how the e_j are found;
    the answers are exact but for rounding. 100 000 clients with 1 000 tickets take about a second.

    >>> thrice_as_fast = idle_dispatch([1.0, 3.0], in_flight=2)
    >>> thrice_as_fast.share.round(6).tolist(), thrice_as_fast.staleness.round(6).tolist()
    ([0.75, 0.25], [0.333333, 3.0])
    """
    service = _durations(mean_service, "mean_service")
    _require_in_flight(in_flight)
    chance = _chances(weights, len(service), "weights")
    drawn = chance > 0
    if in_flight > np.count_nonzero(drawn):
        raise ConfigError(
            f"in_flight is {in_flight}, but only {np.count_nonzero(drawn)} clients may be drawn and each holds one "
            "ticket at a time. Lower in_flight, or use queued_dispatch."
        )
    busy, staleness = np.zeros(len(service)), np.full(len(service), np.nan)
    busy[drawn], staleness[drawn] = _busy_and_staleness(service[drawn], in_flight, chance[drawn])
    throughput = float(np.sum(busy / service))
    return Prediction(
        dispatch="idle",
        in_flight=in_flight,
        share=busy / service / throughput,
        throughput=throughput,
        tickets=busy,
        sojourn=service,
        utilisation=busy,
        staleness=staleness,
        limits=IDLE_LIMITS,
    )


def _busy_and_staleness(service: Array, in_flight: int, weights: Array) -> tuple[Array, Array]:
    """P(c busy) and the mean staleness of each client, from the sums of `_leave_one_out`."""
    odds = weights * service
    tilt = _tilt(odds, in_flight - 0.5)
    chance = tilt * odds / (1.0 + tilt * odds)
    fewer, all_of_them, pairs = _leave_one_out(chance, in_flight, weights)
    at_work, at_rest = chance * fewer, (1.0 - chance) * all_of_them
    return at_work / (at_work + at_rest), tilt * service * pairs / fewer


def _tilt(odds: Array, mean: float) -> float:
    """The θ for which independent clients, each at work with chance θ x_c / (1 + θ x_c), are `mean` on average."""
    even = log(mean / (len(odds) - mean))
    low, high = even - log(float(odds.max())), even - log(float(odds.min()))
    if high - low < 1e-12:
        return exp(low)

    def excess(log_tilt: float) -> float:
        return float(np.sum(1.0 / (1.0 + np.exp(-log_tilt) / odds))) - mean

    return exp(brentq(excess, low - 1e-9, high + 1e-9))


def _leave_one_out(chance: Array, in_flight: int, weights: Array) -> tuple[Array, Array, Array]:
    """With c left out: the chances that J − 1 and that J others are at work, and the weighted sum over pairs.

    The others are at work independently with chances q_d, so P(k at work) is the coefficient of z^k of
    Π (1 − q_d + q_d z), and proportional to θ^k e_k. It is read off by a discrete Fourier sum on the unit circle: the
    tilt puts k next to the mean, where chances are largest and so exact in relation, and there are as many points as
    keep all but chances beyond Bernstein's bound exp(−40) from folding onto each other. The third answer is the
    coefficient of z^{J−2} of Σ_{d≠c} weight_d Π_{e≠c,d}, each left-out factor being worth 1 − q.
    """
    variance = float(np.sum(chance * (1.0 - chance)))
    reach = _TAIL_EXPONENT / 3 + sqrt((_TAIL_EXPONENT / 3) ** 2 + 2 * _TAIL_EXPONENT * variance)
    half = min(len(chance) + 1, ceil(reach) + 4) // 2  # 2·half + 1 points, an odd number: −1 is never one of them
    points = 2 * half + 1
    fewer, all_of_them, pairs = np.zeros((3, len(chance)))
    lone = weights * (1.0 - chance)
    for index in range(half + 1):
        z = np.exp(2j * pi * index / points)
        factors = 1.0 - chance + chance * z
        without = np.prod(factors) / factors * ((1.0 if index == 0 else 2.0) / points)
        own = lone / factors
        fewer += (without * z ** (1 - in_flight)).real
        all_of_them += (without * z**-in_flight).real
        pairs += (without * (own.sum() - own) * z ** (2 - in_flight)).real
    return fewer, np.maximum(all_of_them, 0.0), np.maximum(pairs, 0.0)


# ---- cohorts -------------------------------------------------------------------------------------------------


def cohort_dispatch(mean_service: ArrayLike, cohort_size: int) -> Prediction:
    """A cohort of J clients, drawn uniformly without replacement, works; all are merged together when the last is back.

    Every client's share is 1/C and nothing is stale. A round takes E max of the cohort's durations, here exponential:

        ∫ 1 − e_J(F_1(t) … F_C(t)) / (C choose J) dt,   F_c(t) = 1 − exp(−t/m_c)

    by Gauss-Legendre quadrature in u = 1 − exp(−t / max m). Cost O(C·J) times 128 nodes.

    Args:
        mean_service: m_c > 0, mean durations of the clients' tickets, (C,), in seconds.
        cohort_size: J, 1 ≤ J ≤ C.

    >>> pair = cohort_dispatch([1.0, 1.0, 1.0], cohort_size=2)
    >>> round(2 / pair.throughput, 6), pair.mean_staleness
    (1.5, 0.0)
    """
    service = _durations(mean_service, "mean_service")
    clients = len(service)
    _require_in_flight(cohort_size)
    if cohort_size > clients:
        raise ConfigError(f"cohort_size is {cohort_size}, but there are only {clients} clients. Lower it.")
    throughput = cohort_size / _mean_longest(service, cohort_size)
    share = np.full(clients, 1.0 / clients)
    return Prediction(
        dispatch="cohort",
        in_flight=cohort_size,
        share=share,
        throughput=throughput,
        tickets=throughput * share * service,
        sojourn=service,
        utilisation=throughput * share * service,
        staleness=np.zeros(clients),
        limits=COHORT_LIMITS,
    )


def _mean_longest(service: Array, cohort_size: int) -> float:
    """E of the longest of J exponential durations, the J clients drawn uniformly."""
    nodes, heights = np.polynomial.legendre.leggauss(_ROUND_NODES)
    late, longest = 0.5 * (1.0 - nodes), float(service.max())
    size = np.arange(1, cohort_size + 1)[:, None]
    # all_back[j] = the mean of Π F over all j-subsets of the clients so far: an average, so it cannot overflow.
    all_back = np.zeros((cohort_size + 1, _ROUND_NODES))
    all_back[0] = 1.0
    for count, mean in enumerate(service, start=1):
        back = -np.expm1(np.log(late) * (longest / mean))
        all_back[1:] += (np.minimum(size, count) / count) * (back * all_back[:-1] - all_back[1:])
    return longest * float(0.5 * heights @ ((1.0 - all_back[-1]) / late))


# ---- what is refused -----------------------------------------------------------------------------------------


def _durations(given: ArrayLike, name: str, least: float | None = None) -> Array:
    """Mean durations as an array; refuses what no prediction can be made from. Without `least`, 0 is refused too."""
    means = np.atleast_1d(np.asarray(given, dtype=np.float64))
    if means.ndim != 1 or means.size == 0:
        raise ConfigError(f"{name} has shape {means.shape}; give one number of seconds per client.")
    if np.isinf(means).any():
        client = int(np.argmax(np.isinf(means)))
        raise ConfigError(
            f"{name}[{client}] is infinite, so there is no long run to predict: a tail this heavy (a Pareto shape of 1 "
            "or less) has no mean. Raise the shape, or simulate."
        )
    wrong = ~(means >= 0.0) if least is not None else ~(means > 0.0)
    if wrong.any():
        client = int(np.argmax(wrong))
        limit = "zero or more" if least is not None else "above zero"
        raise ConfigError(f"{name}[{client}] is {means[client]}; a mean duration must be a number {limit}.")
    return means


def _chances(given: ArrayLike | None, clients: int, name: str) -> Array:
    """The chances of being drawn, made to sum to one."""
    if given is None:
        return np.full(clients, 1.0 / clients)
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (clients,):
        raise ConfigError(f"{name} has shape {weights.shape}, but there are {clients} clients; give one number each.")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise ConfigError(f"{name} must be finite, zero or more, and not all zero.")
    chances: Array = weights / weights.sum()
    return chances


def _require_in_flight(tickets: int) -> None:
    if tickets < 1:
        raise ConfigError(f"{tickets} tickets in flight; at least 1 client must be at work.")
