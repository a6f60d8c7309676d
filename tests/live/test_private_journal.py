"""No update that was merged is left in a private live run's files: their raw bytes are searched after every commit."""

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.live.test_kill import events_in, wait_for_events

import asyncfed as af
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.types import Budget, Work
from asyncfed.live.checks import Limits
from asyncfed.live.session import CheckpointPolicy
from asyncfed.rules import Noised, Optimised
from asyncfed.store.events import recorded_merges
from asyncfed.store.journal import Journal
from asyncfed.strategies import FedBuff
from asyncfed.uplinks import Clip

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01, uplink=(Clip(norm=0.5),))
NOISED = Noised(clip=0.5, multiplier=0.5, divisor=3)
WINDOW = 16


def fedbuff(rule=None):
    how = {} if rule is None else {"rule": rule}
    return FedBuff(concurrency=4, buffer_size=3, server_lr=1.0, work=WORK, **how)


def windows(vector):
    """All runs of 16 bytes of a vector, at any offset; those that say nothing, being mostly zeros, are left out."""
    data = vector.tobytes()
    cut = {data[at : at + WINDOW] for at in range(len(data) - WINDOW + 1)}
    return [window for window in cut if len(set(window)) > 4]


def remains(path, vectors):
    """Which of these vectors, by ticket, the run's files hold a piece of."""
    files = [file.read_bytes() for file in path.parent.glob(f"*{path.name}*") if file.is_file()]
    assert files
    return {t for t, known in vectors.items() if any(w in data for w in known for data in files)}


class Recorded:
    """What clients sent: the windows of their change, and of the model that the server makes of it, by ticket."""

    def __init__(self, live):
        self._live, self._windows = live, {}

    def of(self, tickets):
        for ticket in set(tickets) & self._live.answered.keys() - self._windows.keys():
            change = self._live.answered[ticket][1]["change"]
            start = self._live.tasks_seen[ticket][1]["model"]
            self._windows[ticket] = [*windows(change), *windows(start + change)]
        return {ticket: self._windows[ticket] for ticket in tickets}


def merged_tickets(journal):
    merges = recorded_merges(journal.event_rows())
    return [update.ticket for merge in merges for update in merge.updates]


def play_and_look(live, seed=0, crashes=()):
    """Play to the end; after each commit, the tickets that are merged and still found, and those waiting and found."""
    live.tasks_seen = dict(live.tasks)
    recorded, choice, found = Recorded(live), np.random.default_rng(seed), []
    live.commit()
    for step in itertools.count():
        live.tasks_seen |= live.tasks
        if live.session.finished:
            break
        live.answer(int(choice.choice(list(live.held))))
        live.commit()
        if step in crashes:
            live.crash()
            live.commit()
        merged = merged_tickets(live.journal)
        waiting = [event.ticket for event in live.events("report") if event.ticket not in merged]
        found.append((remains(live.path, recorded.of(merged)), remains(live.path, recorded.of(waiting))))
    return found


@pytest.mark.parametrize("rule", [NOISED, Optimised(rule=NOISED)], ids=["noised", "noised and optimised"])
def test_a_private_run_holds_no_update_that_was_merged(live_run, rule):
    live = live_run(strategy=fedbuff(rule), budget=Budget(updates=15), checkpoints=CheckpointPolicy(seconds=1e9))
    found = play_and_look(live, crashes=(4, 7))
    assert all(not merged for merged, _ in found)
    assert any(waiting for _, waiting in found)  # what waits to be merged is there, so the search can find something
    live.check_whole()


def test_nothing_at_all_is_left_when_it_is_finished(live_run):
    """Also of updates that came too late to be merged."""
    live = live_run(strategy=fedbuff(NOISED), budget=Budget(elapsed=10.5))
    found = play_and_look(live)
    assert merged_tickets(live.journal)
    merged, waiting = found[-1]
    assert len(live.events("report")) > len(merged_tickets(live.journal))
    assert not merged
    assert not waiting
    live.check_whole()


@pytest.mark.parametrize("seconds", [0.0, 5.0, 1e9])
def test_a_run_without_noise_holds_them_so_the_search_finds_what_there_is(live_run, seconds):
    live = live_run(strategy=fedbuff(), budget=Budget(updates=15), checkpoints=CheckpointPolicy(seconds=seconds))
    assert any(merged for merged, _ in play_and_look(live))
    live.check_whole()


def test_no_update_is_judged_by_what_others_sent(live_run):
    """Whether one is merged would tell something about the others' norms, which no noise covers."""
    strict = Limits(median_of=2, times_median=1e-9, small_norm=0.0)
    private = live_run(strategy=fedbuff(NOISED), budget=Budget(updates=9), limits=strict)
    play_and_look(private)
    assert len(merged_tickets(private.journal)) == 9
    assert private.journal.checkpoint()[0]["live"]["norms"] == []


# ---- processes, and kill -9 ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_killed_session_leaves_no_merged_update_at_any_moment(live_run):
    """Looked for in the files as the dead left them, before anybody has repaired anything."""
    live_run(strategy=fedbuff(NOISED)).play()  # loads the kernels
    live = live_run(strategy=fedbuff(NOISED), budget=Budget(updates=600), checkpoints=CheckpointPolicy(seconds=5.0))
    live.commit()
    folder = live.path.parent / "sent"
    folder.mkdir()
    chance = np.random.default_rng(5)
    for kill in range(15):
        live.journal.close()
        child = os.fork()
        if child == 0:
            try:
                live.crash()
                live.commit()
                choice = np.random.default_rng(kill)
                while not live.session.finished:
                    ticket = int(choice.choice(list(live.held)))
                    change = live.result(ticket)[1]["change"]
                    np.save(folder / f"{ticket}.npy", np.stack([change, live.tasks[ticket][1]["model"] + change]))
                    live.answer(ticket)
                    live.commit()
            finally:
                os._exit(0)
        time.sleep(0.05 + 0.15 * chance.random())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        check_nothing_is_left(live.path, folder)
        live.crash()
        live.commit()
        check_nothing_is_left(live.path, folder)
    assert live.session.state.updates > 10


def check_nothing_is_left(path, folder):
    before = {file: file.read_bytes() for file in path.parent.glob(f"*{path.name}*")}
    journal = Journal.open(path)  # undoes what the dead had begun and not committed
    merged = merged_tickets(journal)
    journal.close()
    assert len(before) >= 1
    known = {t: [w for row in np.load(folder / f"{t}.npy") for w in windows(row)[:8]] for t in merged}
    assert not {t for t, cut in known.items() if any(w in data for w in cut for data in before.values())}


SERVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
import asyncfed as af
from tests.live.recording_problem import RecordingProblem

path, folder, private = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "private"
uplink = (af.uplinks.Clip(norm=0.5),)
work = af.Work(epochs=1, batch_size=8, learning_rate=0.001, uplink=uplink)
rule = {"rule": af.rules.Noised(clip=0.5, multiplier=0.01, divisor=3)} if private else {}
strategy = af.strategies.FedBuff(concurrency=4, buffer_size=3, server_lr=1.0, work=work, **rule)
experiment = af.replace(
    af.presets.regression(strategy="afl_mixing", num_clients=4),
    strategy=strategy,
    budget=af.Budget(updates=2000),  # enough to be killed three times, however late that is
    evaluation=af.Evaluation(every=50),
)
problem = RecordingProblem(experiment.problem(), folder, 0.5)
if path.exists():
    run = af.resume(path, experiment=experiment, problem=problem)
else:
    run = af.run_live(experiment, problem=problem, out=path)
sys.exit(run.verdict != "finished")
"""
ROOT = str(Path(__file__).parents[2])


def serve(path, folder, kind):
    command = [sys.executable, "-c", SERVER, str(path), str(folder), kind, ROOT]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def sent_windows(path, folder, limit=6):
    """A few windows of what clients wrote down of their merged updates, by ticket."""
    journal = Journal.open(path)
    clients = {t: c for t, c, k in ((e.ticket, e.client, e.kind) for e in journal.event_rows()) if k == 0}
    merged = merged_tickets(journal)
    journal.close()
    key = purpose_key(af.presets.regression(strategy="afl_mixing", num_clients=4).seed, "train")
    files = {t: folder / f"{draw_key(key, clients[t], t)}.npy" for t in merged}
    return {t: [w for row in np.load(file) for w in windows(row)[:limit]] for t, file in files.items()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["private", "open"])
def test_a_live_server_killed_with_its_clients_leaves_none_either(tmp_path, kind):
    path, folder = tmp_path / "live.sqlite", tmp_path / "sent"
    folder.mkdir()
    chance, done, found = np.random.default_rng(7), 0, set()
    server = serve(path, folder, kind)
    for _ in range(3):
        wait_for_events(path, server, done + 60)
        time.sleep(0.1 * chance.random())
        server.kill()
        server.communicate()
        before = [file.read_bytes() for file in tmp_path.glob("*live.sqlite*") if file.is_file()]
        cut = sent_windows(path, folder)
        found |= {t for t, known in cut.items() if any(w in data for w in known for data in before)}
        done = events_in(path)
        server = serve(path, folder, kind)
    _, complaints = server.communicate(timeout=120)
    assert server.returncode == 0, complaints.decode()
    left = remains(path, sent_windows(path, folder))
    if kind == "private":
        assert not found
        assert not left
    else:
        assert found
