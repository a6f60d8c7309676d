"""A certificate on the terminal."""

import pytest
from rich.console import Console

import asyncfed as af
from asyncfed.certificates import certify
from asyncfed.report.terminal.certificate_text import certificate_text, client_influence_text


@pytest.fixture(scope="module")
def certificate():
    return certify(af.presets.regression(rounds=3, strategy="afl_mixing"), seeds=1)


def printed(part):
    console = Console(width=2000)
    with console.capture() as capture:
        console.print(part)
    return capture.get()


def test_rule_checks_theorems_and_results_are_there_in_this_order(certificate):
    text = printed(certificate_text(certificate))
    places = [text.index(part) for part in ("regression: mixing", "Smooth?", "verdict", "measured: distance")]
    assert places == sorted(places)
    for check in certificate.assumption_checks:
        assert check.answer in text


def test_all_reasons_are_listed_when_wanted(certificate):
    theorem = next(g for g in certificate.guarantees if len(g.obstacles) > 1)
    assert "; ".join(theorem.obstacles) not in printed(certificate_text(certificate))
    assert "; ".join(theorem.obstacles) in printed(certificate_text(certificate, all_reasons=True))


def test_shares_are_predicted_and_counted(certificate):
    text = printed(client_influence_text(certificate.client_influence))
    assert "predicted share" in text
    assert "share of merges" in text
    assert "Prediction: " in text


def test_of_many_clients_the_extremes_are_shown():
    many = certify(af.replace(af.presets.regression(rounds=1), num_clients=30), seeds=0)
    lines = printed(client_influence_text(many.client_influence)).splitlines()
    assert sum(line.split()[:1] != [] and line.split()[0].isdigit() for line in lines) == 12
