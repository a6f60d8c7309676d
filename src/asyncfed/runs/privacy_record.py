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
from asyncfed.store.schema import DISPATCH, MERGE


def certify_privacy(journal: Journal, experiment: Experiment) -> PrivacyCertificate:
    """What the journal's run promised its clients and what it did to each, whether it is over or not.

    Besides the caps it is checked that every ticket asked for the clipping or the noise that was promised, that no
    update counted more than the noise was made for, that every release of a live run drew noise of its own, and that
    the promise is the one that was written down at the run's end. That the noise is in the models is seen by
    `runs.verify` alone, which makes them again.
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
    if claim.mode != "local" and "live" in header:
        broken += faults_of_noise(journal)
    written = header.get("privacy", {}).get("claim")
    if written is not None and written != to_plain(claim):
        words = f"the file's certificate promised epsilon {written['epsilon']:.4g} by other numbers than its experiment"
        broken += (f"{words}, which promises {claim.epsilon:.4g}: one of them was changed",)
    return PrivacyCertificate(
        claim, len(merges), accounts, broken, measured=privacy.unprotected_evaluation, live="live" in header
    )


def faults_of_noise(journal: Journal) -> tuple[str, ...]:
    """What is wrong with the keys that the releases of a live run drew their noise from."""
    keys = [event.info.get("noise_key") for event in journal.event_rows() if event.kind == MERGE]
    known = [str(key) for key in keys if key is not None]
    faults = []
    if len(known) < len(keys):
        faults.append(f"{len(keys) - len(known)} releases have no key of noise")
    if len(set(known)) < len(known):
        faults.append(
            f"{len(known) - len(set(known))} releases have the same noise as another, and their difference none"
        )
    return tuple(faults)


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
