"""A live run whose strategy drops every update ends, also after crashes, and replays."""

import numpy as np

from asyncfed.core.types import Budget, Work
from asyncfed.engine import plan as plans
from asyncfed.strategies import AFLGuard

STRICT = AFLGuard(concurrency=2, distance_factor=1e-9, work=Work(epochs=1, batch_size=4, learning_rate=0.01))


def test_it_ends_after_so_many_drops_whenever_the_server_was_killed(live_run, monkeypatch):
    monkeypatch.setattr(plans, "MOST_DROPS", 30)
    monkeypatch.setattr(plans, "MOST_DROPS_A_CLIENT", 5)
    live, chance = live_run(strategy=STRICT, budget=Budget(rounds=3)), np.random.default_rng(2)
    live.commit()
    while not live.session.finished:
        live.answer(min(live.held))
        live.commit()
        if chance.random() < 0.2 and not live.session.finished:
            live.crash()
            live.commit()
    verdict, reason = live.session.state.verdict
    assert verdict == "starved"
    assert "the last 30 updates in a row were dropped" in reason
    assert len(live.events("report")) == len(live.events("drop")) == 30
    live.check_whole()
