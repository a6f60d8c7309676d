"""The certificate of a private run, from its journal."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from asyncfed.core.errors import JournalError
from asyncfed.core.record import UNSET, from_plain, to_plain
from asyncfed.core.types import Work
from asyncfed.experiment import Experiment, stored
from asyncfed.privacy.certificate import PrivacyCertificate, certify_participation, protecting_uplinks
from asyncfed.store.events import recorded_merges
from asyncfed.store.journal import Journal
from asyncfed.store.schema import DISPATCH


def certify_privacy(journal: Journal, experiment: Experiment) -> PrivacyCertificate:
    """What the journal's run promised its clients and what it did to each, whether it is over or not.

    Besides the caps it is checked that every ticket asked for the clipping or the noise that was promised, and that no
    update counted more than the noise was made for.
    """
    header = journal.header()
    merges = list(recorded_merges(journal.event_rows()))
    privacy, num_clients = experiment.privacy, header["num_clients"]
    claim = experiment.privacy_claim(num_clients)
    if privacy is UNSET or claim is None:
        return PrivacyCertificate(None, len(merges), live="live" in header)
    dispatches = [event for event in journal.event_rows() if event.kind == DISPATCH]
    tickets = Counter(event.require_client() for event in dispatches)
    releases = [[update.client for update in merge.updates] for merge in merges]
    accounts, broken = certify_participation(privacy, claim, releases, tickets, num_clients)
    due = protecting_uplinks(experiment.run_strategy(num_clients).work)
    works = [from_plain(json.loads(text or "{}"), Work) for text in {event.detail for event in dispatches}]
    if any(protecting_uplinks(work) != due for work in works):
        broken += ("a ticket asked for other clipping or noise than was promised",)
    heaviest = max((abs(update.weight) for merge in merges for update in merge.updates), default=0.0)
    if claim.mode != "local" and heaviest > (1.0 + 1e-12) / claim.divisor:
        broken += (f"an update counted {heaviest:.4g}, and the noise was made for 1/{claim.divisor}",)
    return PrivacyCertificate(
        claim, len(merges), accounts, broken, measured=privacy.unprotected_evaluation, live="live" in header
    )


def privacy_header(journal: Journal) -> dict[str, Any]:
    """What the header of a private run says at its end: its certificate. Nothing for other runs."""
    header = journal.header()
    if "privacy" not in header.get("experiment", {}):
        return {}
    try:
        experiment = stored(header["experiment"], journal.path)
    except JournalError:  # with parts that are not registered: `asyncfed privacy audit` needs them too
        return {}
    certificate = certify_privacy(journal, experiment)
    return {"privacy": {"holds": certificate.holds, **to_plain(certificate)}}
