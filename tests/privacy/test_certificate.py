"""The certificate of a run: from its journal, per client, and it notices what is not as promised."""

import json

import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.engine.plan import Churn
from asyncfed.experiment import Experiment
from asyncfed.privacy import Central, Claim, Local, Tree, epsilon_of
from asyncfed.privacy.certificate import certify_participation, unprotected_lines
from asyncfed.rules import Noised
from asyncfed.runs.privacy_record import certify_privacy
from asyncfed.strategies import FedAsync, FedBuff
from asyncfed.uplinks import Clip

WORK = Work(epochs=1, batch_size=8, learning_rate=0.05)
BUFFERED = FedBuff(concurrency=4, buffer_size=4, work=WORK)
CLAIM = Claim("central", 2.0, 1e-5, 1.0, 6.0, participations=2, separation=1, divisor=2)


def experiment_with(mode, strategy=BUFFERED):
    return Experiment(num_clients=20, strategy=strategy, budget=Budget(rounds=12), privacy=mode)


@pytest.mark.parametrize(
    ("mode", "strategy"),
    [
        (Central(epsilon=2.0), BUFFERED),
        (Tree(epsilon=2.0), BUFFERED),
        (Local(epsilon=8.0), FedAsync(concurrency=4, work=WORK)),
    ],
)
def test_of_a_run_and_in_its_file(mode, strategy, tmp_path):
    run = af.run(experiment_with(mode, strategy), out=tmp_path / "run.sqlite")
    certificate = run.privacy()
    claim = certificate.claim
    assert certificate.holds
    assert 0 < certificate.largest_epsilon <= claim.epsilon * (1 + 1e-9)
    assert len(certificate.accounts) == 20
    assert all(account.epsilon == mode.epsilon_after(claim, account.participations) for account in certificate.accounts)
    merged = [account.participations for account in certificate.accounts]
    if claim.mode != "local":
        assert merged == run.participation().tolist()
    written = af.load(tmp_path / "run.sqlite").header["privacy"]
    assert written["holds"] is True
    assert written["claim"]["epsilon"] == claim.epsilon
    assert [account["participations"] for account in written["accounts"]] == merged
    json.dumps(written)


def test_runs_that_promise_nothing_have_nothing_in_their_file():
    by_hand = replace(
        BUFFERED,
        rule=Noised(clip=1.0, multiplier=9.0, divisor=4),
        work=replace(WORK, uplink=(Clip(norm=1.0),)),
    )
    run = af.run(Experiment(num_clients=20, strategy=by_hand, budget=Budget(rounds=3)))
    assert "privacy" not in run.header
    assert run.privacy().claim is None
    assert not run.privacy().holds


def test_caps_that_were_not_kept_are_named():
    accounts, broken = certify_participation(Central(epsilon=2.0), CLAIM, [[0, 1], [0, 2], [0, 1]], {}, 4)
    assert broken == (
        "client 0 took part 3 times, and 2 were accounted for",
        "client 0 took part twice with 0 releases between, not 1",
    )
    assert [account.participations for account in accounts] == [3, 2, 1, 0]
    assert accounts[1].fewest_between == 1
    assert accounts[3].epsilon == 0.0
    assert accounts[2].epsilon == epsilon_of(6.0, 1, 1e-5)


def test_a_client_twice_in_one_release_is_noticed():
    _, broken = certify_participation(Central(epsilon=2.0), replace(CLAIM, separation=0), [[0, 0]], {}, 1)
    assert broken == ("client 0 took part twice with -1 releases between, not 0",)


def test_a_tree_with_more_releases_than_leaves_is_noticed():
    claim = replace(CLAIM, mode="tree", releases=2, separation=0)
    _, broken = certify_participation(Tree(epsilon=2.0), claim, [[0], [1], [2]], {}, 3)
    assert broken == ("there were 3 releases, and the tree has 2",)


def test_uploads_count_whether_they_were_merged_or_not():
    claim = replace(CLAIM, mode="local", separation=0)
    accounts, broken = certify_participation(Local(epsilon=2.0), claim, [[0]], {0: 3, 1: 1}, 2)
    assert [account.participations for account in accounts] == [3, 1]
    assert broken == ("client 0 took part 3 times, and 2 were accounted for",)


def test_a_run_with_less_clipping_or_heavier_weights_than_promised_is_noticed():
    """The journal of a run with other settings, read as if it had been this experiment."""
    run = af.run(experiment_with(Central(multiplier=9.0, clip=5.0)))
    looser = certify_privacy(run.journal, experiment_with(Central(multiplier=9.0, clip=1.0)))
    assert looser.broken[0] == "a ticket asked for other clipping or noise than was promised"
    smaller = replace(BUFFERED, buffer_size=5)
    assert any("counted 0.25" in line for line in certify_privacy(
        run.journal, experiment_with(Central(multiplier=9.0, clip=5.0), smaller)).broken)  # fmt: skip


def test_an_experiment_that_was_changed_in_the_file_is_noticed():
    run = af.run(experiment_with(Central(multiplier=3.0)))
    louder = certify_privacy(run.journal, experiment_with(Central(multiplier=30.0)))
    assert len(louder.broken) == 1
    assert "one of them was changed" in louder.broken[0]
    assert run.privacy().holds


def test_what_is_not_protected_depends_on_the_run():
    run = af.run(experiment_with(Central(epsilon=2.0, unprotected_evaluation=True)))
    measured = unprotected_lines(run.privacy())
    assert any("measurements of models on clients' data, which were made" in line for line in measured)
    assert any("knows the seed" in line for line in measured)
    live = unprotected_lines(replace(run.privacy(), live=True, measured=False))
    assert any("keys of the noise" in line for line in live)
    assert any("none were made" in line for line in live)
    assert any("server itself" in line for line in live)


def test_a_resumed_private_run_is_the_run_itself(tmp_path):
    from asyncfed.runs.simulate import simulate

    experiment = replace(experiment_with(Tree(epsilon=2.0)), budget=Budget(rounds=100))
    whole = tmp_path / "whole.sqlite"
    simulate(experiment, out=whole)

    class StopError(Exception):
        pass

    def observer(execution, merge):
        if execution.version == 80:
            raise StopError

    part = tmp_path / "part.sqlite"
    with pytest.raises(StopError):
        simulate(experiment, out=part, observer=observer, checkpoint_seconds=0.0)
    assert af.load(part).journal.checkpoint()[0]["server"]["version"] > 0
    assert af.resume(part).sha256 == af.load(whole).sha256


def test_what_goes_by_measurements_refuses_private_experiments():
    private = experiment_with(Central(epsilon=2.0))
    with pytest.raises(ConfigError, match="a private run makes none"):
        af.compare(private, {"fedbuff": BUFFERED}, seeds=[0], workers=1)
    with pytest.raises(ConfigError, match="a private run makes none"):
        af.certify(private)


def test_clients_that_come_go_and_lose_tickets_keep_the_promise(tmp_path):
    churn = [Churn(time=2.0 + client, client=client, event="leave") for client in range(8)]
    churn += [Churn(time=9.0 + client, client=client, event="join") for client in range(4)]
    delays = Delays(compute=Exponential(mean=1.0), dropout=0.2)
    experiment = replace(experiment_with(Central(epsilon=2.0, separation=1)), churn=tuple(churn), delays=delays)
    run = af.run(experiment, out=tmp_path / "run.sqlite")
    assert run.privacy().holds
    assert run.rounds["lost"][-1] > 0
    assert af.verify(tmp_path / "run.sqlite").ok
