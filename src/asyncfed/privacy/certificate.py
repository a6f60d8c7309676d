"""What a private run did to each client's privacy, from who took part when, and what it did not protect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from asyncfed.core.record import UNSET, Record
from asyncfed.core.types import Uplink, Work
from asyncfed.privacy.protocol import Claim, Privacy

ADJACENCY = (
    "Compared are two runs that differ in one client: in one its updates are what they are, in the other they are all "
    "zero (zero-out adjacency). When it took part is the same in both."
)


class ClientAccount(Record):
    """What a run cost one client.

    Args:
        client: its number.
        participations: how many releases it took part in, or how many uploads it was asked for.
        fewest_between: the fewest releases between two in which it took part; None if it did not take part twice.
        epsilon: what it has lost, at the claim's delta.
    """

    client: int
    participations: int
    fewest_between: int | None
    epsilon: float


class PrivacyCertificate(Record):
    """What a run promised every client, what each has lost, and whether the caps were kept.

    Args:
        claim: the promise; None if there was none, and then nothing is certified.
        releases: how many there were.
        accounts: of every client.
        broken: what the journal shows to be against the promise, a sentence each; empty if nothing is.
        measured: whether models were measured on clients' data.
        live: whether it was a live run, whose noise came from the machine's entropy.
    """

    claim: Claim | None
    releases: int
    accounts: tuple[ClientAccount, ...] = ()
    broken: tuple[str, ...] = ()
    measured: bool = True
    live: bool = False

    @property
    def holds(self) -> bool:
        """Whether there is a promise, and the journal shows nothing against it."""
        return self.claim is not None and not self.broken

    @property
    def largest_epsilon(self) -> float:
        """What the client that lost most has lost; 0 without clients."""
        return max((account.epsilon for account in self.accounts), default=0.0)


def certify_participation(
    privacy: Privacy,
    claim: Claim,
    releases: Sequence[Sequence[int]],
    tickets: Mapping[int, int],
    num_clients: int,
) -> tuple[tuple[ClientAccount, ...], tuple[str, ...]]:
    """The account of every client, and which caps were not kept.

    Args:
        privacy: the mode.
        claim: what it promised.
        releases: the clients of each release.
        tickets: how many each client was given.
        num_clients: how many there are.
    """
    taken: dict[int, list[int]] = {}
    for number, clients in enumerate(releases):
        for client in clients:
            taken.setdefault(client, []).append(number)
    accounts, broken = [], list[str]()
    for client in range(num_clients):
        numbers = taken.get(client, [])
        count = tickets.get(client, 0) if claim.mode == "local" else len(numbers)
        between = min((after - before - 1 for before, after in pairwise(numbers)), default=None)
        accounts.append(ClientAccount(client, count, between, privacy.epsilon_after(claim, count)))
        if count > claim.participations:
            broken.append(f"client {client} took part {count} times, and {claim.participations} were accounted for")
        if claim.mode != "local" and between is not None and between < claim.separation:
            broken.append(f"client {client} took part twice with {between} releases between, not {claim.separation}")
    if claim.mode == "tree" and claim.releases is not None and len(releases) > claim.releases:
        broken.append(f"there were {len(releases)} releases, and the tree has {claim.releases}")
    return tuple(accounts), tuple(broken)


def protecting_uplinks(work: Work) -> list[Uplink]:
    """The uplinks of a work that clip or add noise; codecs are not among them."""
    uplinks = () if work.uplink is UNSET else work.uplink
    return [
        uplink
        for uplink in uplinks
        if getattr(uplink, "draws_noise", False) or getattr(uplink, "change_bound", None) is not None
    ]


def claim_lines(claim: Claim) -> list[str]:
    """The promise in words.

    >>> claim_lines(Claim("central", 2.0, 1e-5, 1.0, 6.305, 10, divisor=5))[0]
    'Whoever sees the released models learns at most (epsilon 2, delta 1e-05) about any one client.'
    """
    who = "Whoever receives a client's uploads, the server too," if claim.mode == "local" else (
        "Whoever sees the released models"
    )  # fmt: skip
    promise = f"{who} learns at most (epsilon {claim.epsilon:.4g}, delta {claim.delta:g}) about any one client."
    if claim.mode == "local":
        promise += " A client without a guard of its own trusts the server to ask it for this noise."
    noise = {
        "central": f"Noise of standard deviation {claim.noise:.4g} is added to every parameter of every release",
        "tree": f"Noise of standard deviation {claim.noise:.4g} is in every parameter of every node of the tree",
        "local": f"Each client adds noise of standard deviation {claim.noise:.4g} to every parameter it sends",
    }[claim.mode]
    caps = f"a client's change is clipped to {claim.clip:g}, and it takes part at most {claim.participations} times"
    if claim.separation:
        caps += f", with at least {claim.separation} releases between"
    return [promise, ADJACENCY, f"{noise}; {caps}. No sampling is claimed."]


def cost_line(claim: Claim, num_params: int) -> str:
    """How long the noise is beside what it is added to: what accuracy has to pay.

    >>> cost_line(Claim("central", 2.0, 1e-5, 1.0, 6.0, 10, divisor=5), num_params=100)
    'The noise of a release has a length of about 12, the mean of clipped changes one of 1 at most: expect much worse \
models than without it, or merge more updates at once, lower participations, or allow a larger epsilon.'
    """
    length = claim.noise * num_params**0.5
    what = {"central": "a release", "tree": "a node of the tree", "local": "an upload"}[claim.mode]
    kind = "a clipped change" if claim.mode == "local" else "the mean of clipped changes"
    words = f"The noise of {what} has a length of about {length:.3g}, {kind} one of {claim.clip:g} at most: "
    if length > claim.clip:
        return words + (
            "expect much worse models than without it, or merge more updates at once, lower participations, or allow a "
            "larger epsilon."
        )
    return words + "single releases stay readable."


def unprotected_lines(certificate: PrivacyCertificate) -> list[str]:
    """What the promise does not cover, a sentence each."""
    lines = [
        "when a client reported, how long it took, which releases it took part in, and how much it sent",
        "settings that were chosen by looking at clients' data, such as a rate or the scales of a table's columns",
    ]
    if certificate.measured:
        lines.append("measurements of models on clients' data, which were made: they are in the run's file")
    else:
        lines.append("measurements on clients' data made later: none were made during the run")
    if certificate.claim is not None and certificate.claim.mode != "local":
        lines.append("anything from the server itself, which sees single updates and has to be trusted")
    elif certificate.claim is not None:
        lines.append(
            "clients from a server whose tickets ask for less noise, or for more uploads: clients without a guard of "
            "their own do as asked"
        )
    if not certificate.live:
        lines.append("clients from whoever knows the seed: noise of a simulation can be repeated. Deploy a live run")
    elif certificate.claim is None or certificate.claim.mode != "local":
        lines.append("clients from whoever has the run's file: it holds the keys of the noise, for replay")
    lines.append("single rows more than their client as a whole: per-example noise is the client's own affair")
    return lines
