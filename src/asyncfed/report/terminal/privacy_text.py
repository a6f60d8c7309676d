"""What a private run promises and did, for the terminal and the page."""

from __future__ import annotations

from rich import box
from rich.table import Table

from asyncfed.privacy.certificate import PrivacyCertificate, claim_lines, unprotected_lines
from asyncfed.privacy.planning import NoisePlan

MOST_CLIENTS = 20
"""Of a table for the terminal: those that lost most."""

NO_CLAIM = "privacy: nothing is claimed. The experiment has no `privacy`, so nobody capped how often clients take part."


def summary_lines(certificate: PrivacyCertificate) -> list[str]:
    """The certificate in a line or two."""
    claim = certificate.claim
    if claim is None:
        return [NO_CLAIM]
    if certificate.broken:
        return [f"PRIVACY WAS NOT KEPT: {sentence}" for sentence in certificate.broken]
    most = max((account.participations for account in certificate.accounts), default=0)
    promised = f"privacy, {claim.mode}: epsilon {claim.epsilon:.4g} promised at delta {claim.delta:g}"
    lost = f"lost so far at most {certificate.largest_epsilon:.4g}, by {most} of {claim.participations} participations"
    return [f"{promised}; {lost}. The caps were kept."]


def certificate_lines(certificate: PrivacyCertificate) -> list[str]:
    """The whole certificate but its table of clients."""
    if certificate.claim is None:
        return summary_lines(certificate)
    protected = [f"  - {line}" for line in unprotected_lines(certificate)]
    return [*summary_lines(certificate), *claim_lines(certificate.claim), "Not protected:", *protected]


def account_rows(certificate: PrivacyCertificate) -> list[dict[str, str]]:
    """A row a client, by the names of the columns."""
    return [
        {
            "client": str(account.client),
            "participations": str(account.participations),
            "fewest releases between": "" if account.fewest_between is None else str(account.fewest_between),
            "epsilon": f"{account.epsilon:.4g}",
        }
        for account in certificate.accounts
    ]


def account_table(certificate: PrivacyCertificate) -> Table:
    """What each client has lost; of many clients, those that lost most."""
    order = sorted(certificate.accounts, key=lambda account: (-account.epsilon, account.client))
    shown = PrivacyCertificate(certificate.claim, certificate.releases, tuple(order[:MOST_CLIENTS]))
    table = Table(title="What each client has lost", title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    for name in ("client", "participations", "fewest releases between", "epsilon"):
        table.add_column(name, justify="right")
    for row in account_rows(shown):
        table.add_row(*row.values())
    if len(order) > MOST_CLIENTS:
        table.caption = f"the {MOST_CLIENTS} of {len(order)} clients that lost most"
    return table


def plan_table(plan: NoisePlan) -> Table:
    """What each number of participations costs."""
    table = Table(title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    table.add_column("participations", justify="right")
    table.add_column("epsilon", justify="right")
    for count, epsilon in plan.growth:
        table.add_row(str(count), f"{epsilon:.6g}", style="bold" if count == plan.participations else "")
    return table
