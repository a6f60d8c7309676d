"""Known mistakes of public implementations, each as a change of one expression of AsyncFed's own source.

A mistake names the function whose text is changed, what its text becomes, where the mistake was seen, and the check
that has to notice it. The text must still be there, so that a mistake cannot quietly stop being one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple


class Mistake(NamedTuple):
    """One mistake.

    Args:
        what: a line about it.
        seen: where it was seen.
        where: "module:function" or "module:Class.method", below `asyncfed`.
        text: what stands there, once.
        becomes: what the mistake makes of it.
        check: whose agreement with its independent implementation must break; or "law: NAME" of `test_laws`.
        helpers: names that the changed text needs.
    """

    what: str
    seen: str
    where: str
    text: str
    becomes: str
    check: str
    helpers: Callable[[], dict[str, Any]] = dict


@contextmanager
def injected(mistake: Mistake) -> Iterator[None]:
    """AsyncFed with this mistake, while it lasts: the function gets the code of its changed text."""
    module_name, path = mistake.where.split(":")
    module = import_module(f"asyncfed.{module_name}")
    function = _function(module, path)
    before, names = function.__code__, mistake.helpers()
    module.__dict__.update(names)
    _forget_answers(module)
    function.__code__ = _changed_code(str(module.__file__), path, mistake.text, mistake.becomes)
    try:
        yield
    finally:
        function.__code__ = before
        _forget_answers(module)
        for name in names:
            del module.__dict__[name]


def _forget_answers(module: Any) -> None:
    """Functions of the module that keep their answers begin anew."""
    for part in list(vars(module).values()):
        if hasattr(part, "cache_clear"):
            part.cache_clear()


def _function(module: Any, path: str) -> Any:
    found = module
    for name in path.split("."):
        found = vars(found)[name]
    if isinstance(found, property):
        found = found.fget
    return unwrap(getattr(found, "__func__", found))


def _changed_code(file: str, path: str, text: str, becomes: str) -> CodeType:
    source = Path(file).read_text()
    start, end = _place_of(source, path)
    lines = source.splitlines(keepends=True)
    body = "".join(lines[start:end])
    assert body.count(text) == 1, f"{path} of {file} has {text!r} {body.count(text)} times; it must have it once"
    changed = "".join([*lines[:start], body.replace(text, becomes), *lines[end:]])
    return _find_code(compile(changed, file, "exec"), path)


@cache
def _place_of(source: str, path: str) -> tuple[int, int]:
    nodes: Any = ast.parse(source).body
    for name in path.split("."):
        node = next(n for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == name)
        nodes = node.body
    return node.lineno - 1, node.end_lineno or 0


def _find_code(code: CodeType, path: str) -> CodeType:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_qualname == path:
                return constant
            if path.startswith(f"{constant.co_qualname}."):
                return _find_code(constant, path)
    raise LookupError(path)


def _compounding() -> dict[str, Any]:
    """`kept(s)`: the product of all discounts so far."""
    product = [1.0]

    def kept(discount: float) -> float:
        product[0] *= discount
        return product[0]

    return {"kept": kept}


def _two_models_ago() -> dict[str, Any]:
    """`older(x)`: the model of two versions before x, as far as there is one."""
    seen: list[Any] = []

    def older(params: Any) -> Any:
        if not seen or seen[-1] is not params:
            seen.append(params)
        return seen[-3] if len(seen) > 2 else seen[0]

    return {"older": older}


SHEET = "twelve public FedAsync and FedBuff implementations were read; seen in one or more of them"

MISTAKES = [
    # ---- staleness and what an update is ----
    Mistake(
        "staleness counted from 1, so that a fresh update is already discounted",
        SHEET,
        "core.types:staleness_of",
        "version - dispatch.base_version",
        "version - dispatch.base_version + 1",
        "fedasync",
    ),
    Mistake(
        "a lost ticket is not replaced, so that ever fewer clients are at work",
        "simulators that count a time-out as an arrival",
        "strategies.dispatch:KeepBusy.on_lost",
        "self.refill(state, view, [])",
        "(state, [])",
        "law: test_ages_sum_to_the_number_of_others_out_times_the_versions[fedasync]",
    ),
    Mistake(
        "staleness guessed from the number of merges, because the report does not carry its version",
        SHEET,
        "core.types:staleness_of",
        "version - dispatch.base_version",
        "max(0, version - dispatch.ticket)",
        "fedbuff",
    ),
    Mistake(
        "the change taken against the present model instead of the downloaded one",
        SHEET,
        "rules.vectors:Vectors.merge",
        "kernels.add_step(self.params, model, start, weight, own)",
        "kernels.add_step(self.params, model, self.params, weight, own)",
        "async_sgd",
    ),
    Mistake(
        "FedAsync: mixing *= s(tau), so that the discount compounds for ever",
        SHEET,
        "strategies.fedasync:FedAsync.on_update",
        "self.discount.weight(update.staleness)",
        "kept(self.discount.weight(update.staleness))",
        "fedasync",
        _compounding,
    ),
    Mistake(
        "FedAsync: the model is added to the whole of the old one",
        "what is kept and what is mixed in do not sum to 1",
        "strategies.fedasync:FedAsync.on_update",
        "keep=1.0 - weight",
        "keep=1.0",
        "law: test_what_is_kept_and_what_is_mixed_in_sum_to_one[fedasync]",
    ),
    Mistake(
        "FedBuff: divided by the number of clients at work instead of K",
        SHEET,
        "strategies.fedbuff:FedBuff._step",
        "self.server_lr / self.buffer_size * s",
        "self.server_lr / self.concurrency * s",
        "fedbuff",
    ),
    Mistake(
        "FedBuff: divided by K twice",
        SHEET,
        "strategies.fedbuff:FedBuff._step",
        "self.server_lr / self.buffer_size * s",
        "self.server_lr / self.buffer_size / self.buffer_size * s",
        "fedbuff",
    ),
    Mistake(
        "FedBuff: no staleness weight at all",
        SHEET,
        "strategies.fedbuff:FedBuff.on_update",
        "self.discount.weight(update.staleness)",
        "1.0",
        "fedbuff",
    ),
    Mistake(
        "FedBuff: whole stale models averaged where changes are meant",
        SHEET,
        "strategies.fedbuff:FedBuff._step",
        'Merge(tickets, weights, keep=1.0, of="delta", ends_round=True)',
        'Merge(tickets, weights, keep=1.0 - sum(weights), of="model", ends_round=True)',
        "fedbuff",
    ),
    Mistake(
        "FedBuff: divided by the sum of the discounts instead of K",
        "a data-dependent denominator, which also breaks the sensitivity of private sums",
        "strategies.fedbuff:FedBuff._step",
        "self.server_lr / self.buffer_size * s",
        "self.server_lr / sum(discounts) * s",
        "fedbuff",
    ),
    Mistake(
        "hinge without the + 1, so that it jumps at its edge",
        SHEET,
        "strategies.discounts:Hinge.weight",
        "(self.slope * (staleness - self.grace) + 1.0)",
        "(self.slope * (staleness - self.grace))",
        "fedasync",
    ),
    Mistake(
        "hinge with tau + b instead of tau - b",
        SHEET,
        "strategies.discounts:Hinge.weight",
        "(staleness - self.grace)",
        "(staleness + self.grace)",
        "fedasync",
    ),
    Mistake(
        "polynomial discount of tau instead of 1 + tau",
        SHEET,
        "strategies.discounts:Polynomial.weight",
        "(1 + staleness)",
        "max(1, staleness)",
        "fedasync",
    ),
    Mistake(
        "AFL, latest: only clients that have reported are in the mean",
        "the divisor is the number heard instead of all clients",
        "rules.latest_average:LatestAverage.apply",
        "memory.total = total",
        "memory.total = total = min(total, len(memory.row_of) + 1)",
        "afl",
    ),
    Mistake(
        "AFL, average of deltas: not divided by J",
        "the paper's proofs, whose sum is J times the average of its text",
        "strategies.afl:AFL._weights",
        '1.0 / self.concurrency if self.aggregate == "delta_mean" else 1.0',
        "1.0",
        "afl_delta_mean",
    ),
    Mistake(
        "the paper's rate: the spread is the longest delay instead of longest minus shortest",
        "the published scripts' text and code differ on what the delay is",
        "core.server:Server.end_round",
        "self.delay_spread = longest - shortest",
        "self.delay_spread = longest",
        "afl",
    ),
    Mistake(
        "FedAvg: one sample too many in the divisor, so that weights do not sum to 1",
        "n_i over something else than the sum of the flush",
        "strategies.dispatch:mean_of_models",
        "total = sum(counts)",
        "total = sum(counts) + 1",
        "law: test_what_is_kept_and_what_is_mixed_in_sum_to_one[fedavg]",
    ),
    Mistake(
        "the proximal term has no effect (its gradient is detached)",
        "AFL-Lib, ASO-Fed",
        "problems.sgd_tasks:_task_numbers",
        "return work_numbers(work)",
        "return (*work_numbers(work)[:4], 0.0)",
        "fedprox",
    ),
    # ---- SCAFFOLD ----
    Mistake(
        "SCAFFOLD: c moved by the mean over the cohort instead of over all clients",
        "several; the sheet: divide by n, not |S|",
        "rules.client_table:ClientTable.mean",
        "self.sum() / self.num_clients",
        "self.sum() / max(1, self._counts[1])",
        "scaffold",
    ),
    Mistake(
        "SCAFFOLD: divides by epochs, without the rate",
        "AFL-Lib",
        "rules.scaffold:Scaffold.prepare",
        "moved / sum_of_rates(a.work, a.steps, a.num_examples)",
        "moved / a.work.epochs",
        "scaffold",
    ),
    Mistake(
        "SCAFFOLD: steps counted as epochs",
        "AFL-Lib",
        "rules.scaffold:Scaffold.prepare",
        "sum_of_rates(a.work, a.steps, a.num_examples)",
        "sum_of_rates(a.work, a.work.epochs, a.num_examples)",
        "scaffold",
    ),
    Mistake(
        "SCAFFOLD: the rate is read after the schedule has moved on",
        "fluke",
        "rules.scaffold:Scaffold.prepare",
        "sum_of_rates(a.work, a.steps, a.num_examples)",
        "(a.work.learning_rate / (a.work.epochs + 1) ** a.work.decay * a.steps)",
        "scaffold",
    ),
    Mistake(
        "SCAFFOLD: the variate is made without the correction that was in the steps",
        "option II misread",
        "rules.scaffold:Scaffold.prepare",
        ' - a.sent["correction"]',
        "",
        "scaffold",
    ),
    Mistake(
        "asynchronous SCAFFOLD: the present c - c_i instead of the one that was downloaded",
        "the sheet: then c_i is no longer the mean gradient of its pass",
        "rules.scaffold:Scaffold.prepare",
        'a.sent["correction"]',
        "(table.mean() - table.row(a.client))",
        "scaffold_async",
    ),
    Mistake(
        "SCAFFOLD: the correction with the wrong sign",
        "c_i - c where c - c_i is added",
        "rules.scaffold:Scaffold.send",
        "(table.mean() - own)",
        "(own - table.mean())",
        "scaffold",
    ),
    Mistake(
        "SCAFFOLD: clients weighted by their samples",
        "fluke, by default",
        "strategies.fedavg:FedAvg.merges",
        'self.weighting == "samples" and any(examples)',
        "any(examples)",
        "scaffold",
    ),
    # ---- FedNova and server optimisers ----
    Mistake(
        "FedNova: steps instead of normalised gradients with a proximal term",
        "the authors' code, tau_eff with mu != 0",
        "rules.fednova:count_gradients",
        "-expm1(steps * log1p(-pull)) / pull",
        "float(steps)",
        "fednova",
    ),
    Mistake(
        "FedNova: whole models scaled, whose weights do not sum to 1",
        "fluke",
        "rules.fednova:FedNova.prepare",
        "a.start + scale * a.change",
        "scale * a.model",
        "fednova",
    ),
    Mistake(
        "FedNova: tau_eff is the plain mean of steps, not weighted by samples",
        "p_i forgotten in tau_eff",
        "rules.fednova:FedNova.prepare",
        "sum(a.weight * count for a, count in zip(arrivals, counts, strict=True)) / total",
        "sum(counts) / len(counts)",
        "fednova",
    ),
    Mistake(
        "FedAdam: second moment starts at 0",
        "Flower, fluke",
        "rules.optimiser:Adaptive.init",
        "self.eps**2 if self.v0 is UNSET else self.v0",
        "0.0",
        "fedadam",
    ),
    Mistake(
        "FedAdam: bias correction with the power round + 1",
        "Flower",
        "rules.adam:Adam.update",
        'int(memory["count"]) + 1',
        'int(memory["count"]) + 2',
        "fedadam",
    ),
    Mistake(
        "FedAdam: eps inside the root",
        "many optimisers",
        "rules.optimiser:Adaptive.step",
        "(np.sqrt(v) + self.eps)",
        "np.sqrt(v + self.eps)",
        "fedadam",
    ),
    Mistake(
        "FedYogi: the sign turned round",
        "v + (1 - b2) D^2 sign(v - D^2)",
        "rules.yogi:Yogi.second_moment",
        "v - (1.0 - self.b2)",
        "v + (1.0 - self.b2)",
        "fedyogi",
    ),
    # ---- DC-ASGD, CA2FL, FADAS ----
    Mistake(
        "DC-ASGD: compensates in the wrong direction",
        "w_base - w where w - w_base is meant",
        "rules.dc_asgd:DcAsgd._compensate",
        "(params - arrival.start)",
        "(arrival.start - params)",
        "dc_asgd",
    ),
    Mistake(
        "CA2FL: the memory of calibration is never filled",
        "AFL-Lib",
        "rules.ca2fl:CA2FL.prepare",
        "table.put(arrival.client, arrival.change)",
        "pass",
        "ca2fl",
    ),
    Mistake(
        "CA2FL: the table is filled before the step is made",
        "the new h and h_i in v",
        "rules.ca2fl:CA2FL.prepare",
        "        h = table.mean()\n",
        "        for a in arrivals:\n            table.put(a.client, a.change)\n        h = table.mean()\n",
        "ca2fl",
    ),
    Mistake(
        "FADAS: v in place of its maximum",
        "AFL-Lib",
        "rules.amsgrad:Amsgrad.update",
        "np.maximum(",
        "(lambda u, v: v)(",
        "fadas",
    ),
    Mistake(
        "FADAS, as in its authors' code: the moments are not corrected for how they began",
        "the paper's rule, run with the code's settings",
        "rules.fadas:Fadas.optimiser",
        'self.reading == "code"',
        "False",
        "fadas",
    ),
    Mistake(
        "FADAS, as in the paper: the code's eta / tau_max",
        "the authors' code does not do what their paper says",
        "rules.fadas:Fadas.step_size",
        "min(self.lr, 1.0 / largest_staleness)",
        "self.lr / largest_staleness",
        "fadas_paper",
    ),
    Mistake(
        "delay-adaptive SGD: the step shrinks by one version too much, as if staleness were counted from 1",
        "an edge of one version",
        "strategies.delay_adaptive:DelayAdaptive.weight",
        "self.server_lr * self.threshold / staleness",
        "self.server_lr * self.threshold / (staleness + 1)",
        "delay_adaptive",
    ),
    # ---- Ringmaster, FedCompass, AFLGuard ----
    Mistake(
        "Ringmaster: merges what is exactly R versions old",
        "d <= R where d < R is meant",
        "strategies.ringmaster:Ringmaster.on_update",
        "if update.staleness >= limit",
        "if update.staleness > limit",
        "ringmaster",
    ),
    Mistake(
        "Ringmaster: who becomes R versions old is stopped one merge too late",
        "the delay before the merge instead of after it",
        "strategies.ringmaster:Ringmaster.on_update",
        "view.version + 1",
        "view.version",
        "ringmaster",
    ),
    Mistake(
        "FedCompass: momentum of speeds the wrong way round",
        ".9 old + .1 new",
        "strategies.fedcompass:FedCompass._measure_speed",
        "before + self.speed_momentum * (speed - before)",
        "speed + self.speed_momentum * (before - speed)",
        "fedcompass",
    ),
    Mistake(
        "FedCompass: an extra factor of 1 / number of clients",
        "APPFL",
        "strategies.fedcompass:FedCompass._weight",
        "return self.server_lr * share",
        "return self.server_lr / len(view.clients) * share",
        "fedcompass",
    ),
    Mistake(
        "FedCompass: a new group always gets the most steps, whenever the others come back",
        "the arrival of open groups is not looked at",
        "strategies.arrival_groups:steps_of_new_group",
        "max((q for q in options if q <= most), default=most)",
        "most",
        "fedcompass",
    ),
    Mistake(
        "AFLGuard: compared with the length of the client's change instead of the trusted one",
        "lam |g_i| where lam |g_s| is meant",
        "rules.trusted_distance:TrustedDistance.measure",
        '"trusted_norm": float(np.linalg.norm(trusted))',
        '"trusted_norm": float(np.linalg.norm(arrival.change))',
        "aflguard",
    ),
    # ---- client tables ----
    Mistake(
        "ACE: steps in the warm-up, with 0 for who has not reported",
        "the card of ACE; public code waits for all",
        "strategies.ace:ACE.on_update",
        "if state.warming:",
        "if False:",
        "ace",
    ),
    Mistake(
        "ACE: the arriving change alone, in place of the mean of all",
        "plain asynchronous SGD under the name of ACE",
        "rules.table_mean:TableMean.prepare",
        "arrival.start + h)",
        "arrival.start + arrival.change)",
        "ace",
    ),
    Mistake(
        "MIFA: 0 is filled in for clients that have not reported",
        "a public strategy for Flower",
        "rules.table_mean:TableMean.prepare",
        "table.mean_of_rows()",
        "table.mean()",
        "mifa",
    ),
    Mistake(
        "ACED: age counted from the arrival of a change instead of from the model it was made from",
        "the card of ACED",
        "rules.table_mean:_forget_old",
        "= version - arrival.staleness",
        "= version",
        "aced",
    ),
    Mistake(
        "ACED: entries that are exactly as old as the limit are left out",
        "an edge of one version",
        "rules.table_mean:_forget_old",
        "version - made_from > max_age",
        "version - made_from >= max_age",
        "aced",
    ),
    Mistake(
        "FedVARP: the mean over y made after y_i = D_i, which counts the cohort twice",
        "the card of FedVARP",
        "rules.ca2fl:CA2FL.prepare",
        "        h = table.mean()\n",
        "        old = [table.row(a.client).copy() for a in arrivals]\n"
        "        for a in arrivals:\n            table.put(a.client, a.change)\n"
        "        h = table.mean()\n"
        "        for a, row in zip(arrivals, old):\n            table.put(a.client, row)\n",
        "fedvarp",
    ),
    Mistake(
        "FedDyn: h moved by the mean over the cohort instead of by the sum over n",
        "public implementations",
        "rules.feddyn:FedDyn.prepare",
        "h = table.mean()",
        "h = table.sum() / len(arrivals)",
        "feddyn",
    ),
    Mistake(
        "FedDyn: g_i sent with the wrong sign",
        "F_i(w) + <g_i, w>",
        "rules.feddyn:FedDyn.send",
        '-ClientTable(memory, "g").row(client)',
        'ClientTable(memory, "g").row(client)',
        "feddyn",
    ),
    Mistake(
        "ASO-Fed: the change against the downloaded model instead of the client's last one",
        "FedOpt",
        "rules.aso_fed:AsoFed.prepare",
        "prepared.append(a._replace(start=last))",
        "prepared.append(a)",
        "aso_fed",
    ),
    # ---- time-optimal ----
    Mistake(
        "Rennala: divided by the number of workers instead of S",
        "the card of Rennala",
        "strategies.rennala:Rennala.on_update",
        "self.server_lr / size",
        "self.server_lr / len(view.clients)",
        "rennala",
    ),
    Mistake(
        "Rennala: changes of an older model are counted, because nobody is stopped",
        "staleness is no longer 0",
        "strategies.rennala:Rennala.on_update",
        '*self.begin_anew(view, "the batch is full without it")',
        "self.train(update.report.client)",
        "rennala",
    ),
    Mistake(
        "Malenia: stops as soon as every B_i >= 1, whatever S",
        "public code of the authors' group",
        "strategies.malenia:harmonic_mean_exceeds",
        "len(counts) ** 2 > changes * _sum_of_inverses(counts)",
        "True",
        "malenia",
    ),
    Mistake(
        "Malenia: the arithmetic mean of the counts instead of the harmonic one",
        "the card of Malenia",
        "strategies.malenia:harmonic_mean_exceeds",
        "len(counts) ** 2 > changes * _sum_of_inverses(counts)",
        "sum(counts) > changes",
        "malenia",
    ),
    Mistake(
        "Malenia: the plain mean over all changes, which fast clients dominate",
        "the card of Malenia",
        "strategies.malenia:Malenia._step",
        "share / len(state.of(c))",
        "self.server_lr / sum(len(state.of(d)) for d in view.clients)",
        "malenia",
    ),
    Mistake(
        "Ringleader: the present model is sent to clients that had their step, so that a batch mixes points",
        "the reference code",
        "strategies.ringleader:Ringleader.on_update",
        "self.train(client, base)",
        "self.train(client)",
        "ringleader",
    ),
    Mistake(
        "Ringleader: the first step before every client has a batch",
        "steps in phase 1",
        "strategies.ringleader:_is_complete",
        "all(state.of(client) for client in view.clients)",
        "any(state.of(client) for client in view.clients)",
        "ringleader",
    ),
    Mistake(
        "MindFlayer: divided by the number that finished instead of the number expected",
        "the public code",
        "strategies.mindflayer:MindFlayer._step_if_done",
        "self.server_lr / expected",
        "self.server_lr / len(tickets)",
        "mindflayer",
    ),
    # ---- more of staleness ----
    Mistake(
        "AsGrad, shuffled: the worker that has just finished is assigned, in place of the next of the permutation",
        "the authors' code evaluates the gradient on the finished worker's data",
        "strategies.asgrad:AsGrad._assign",
        'if self.order == "pure":',
        "if True:",
        "asgrad_shuffled",
    ),
    Mistake(
        "Generalized AsyncSGD: 1 / (n p_i) left out",
        "the card; it then converges to the optimum of those drawn often",
        "strategies.generalized_async_sgd:GeneralizedAsyncSGD.on_update",
        "self.server_lr * factor",
        "self.server_lr",
        "generalized_async_sgd",
    ),
    Mistake(
        "AsyncFedED: weighs by 1 / (t - version)",
        "a public class of this name",
        "strategies.asyncfeded:AsyncFedED.on_update",
        "self.weight(*lengths)",
        "self.server_lr / max(1, update.staleness)",
        "asyncfeded",
    ),
    Mistake(
        "PORT: the cosine with the move since the model of two rounds ago, not since the client's download",
        "Plato",
        "rules.moved_since:MovedSince.measure",
        "moved = params.astype(np.float64) - arrival.start",
        "moved = params.astype(np.float64) - older(params)",
        "port",
        _two_models_ago,
    ),
    Mistake(
        "ASO-Fed: the step of slow clients is not lengthened",
        "AFL-Lib: r is missing",
        "strategies.aso_fed:ASOFed.step_factor",
        "max(1.0, log(relative))",
        "1.0",
        "aso_fed",
    ),
    Mistake(
        "PORT: weights that are not normalised over the buffer",
        "the card of PORT",
        "strategies.port:_weights",
        "[share / total for share in shares]",
        "list(shares)",
        "port",
    ),
    Mistake(
        "PORT: the cosine itself in place of (cos + 1) / 2",
        "a negative weight where 0 is the least",
        "strategies.port:Port.factor",
        "(cosine + 1.0) / 2.0",
        "cosine",
        "port",
    ),
    Mistake(
        "FedFa: the newest place is overwritten again and again",
        "a queue that never moves on",
        "rules.last_models:LastModels.step",
        "oldest = (oldest + 1) % self.queue_size",
        "oldest = 0",
        "fedfa",
    ),
    Mistake(
        "FedASMU: t counted from 0",
        "the card of FedASMU; then 1/sqrt(t) has to be patched",
        "strategies.fedasmu:FedASMU.on_update",
        "view.version + 1",
        "max(1, view.version)",
        "fedasmu",
    ),
    # ---- semi-synchronous ----
    Mistake(
        "FedAT: weights by the tier's own count, which lets fast tiers win twice",
        "the card of FedAT",
        "strategies.fedat:tier_weights",
        "reversed(rounds)",
        "rounds",
        "fedat",
    ),
    Mistake(
        "over-selection: late clients are not stopped, and report into the next round",
        "the card of over-selection",
        "strategies.over_selection:OverSelection._begin",
        "actions += [Cancel(ticket, why) for ticket in view.outstanding]",
        "actions += []",
        "over_selection",
    ),
    Mistake(
        "aggregation every T seconds: whole models averaged, which pulls back to what slow clients started from",
        "the card",
        "strategies.periodic:Periodic._merge",
        'keep=1.0, of="delta"',
        'keep=1.0 - sum(weights), of="model"',
        "periodic",
    ),
    Mistake(
        "SAFA: models that were not picked are merged in the same round, which makes Q meaningless",
        "the card of SAFA",
        "rules.model_cache:ModelCache.step",
        "if place < picked:",
        "if True:",
        "safa",
    ),
    Mistake(
        "SAFA: weights over the picked alone instead of n_k / n over all clients",
        "the card of SAFA",
        "rules.model_cache:ModelCache.step",
        'memory["counts"][client] / total',
        'memory["counts"][client] / sum(counts[:picked])',
        "safa",
    ),
    Mistake(
        "SAFA: who was deprecated keeps its old model in the cache",
        "the order of cache and mean",
        "rules.model_cache:ModelCache.step",
        "table.put(client, params - first)",
        "pass",
        "safa",
    ),
    # ---- selection and fairness ----
    Mistake(
        "q-fair: weights F^q divided by their sum, without h",
        "the card of q-fair",
        "rules.qfair:QFair.scales",
        "power * (1.0 + self.q * smoothness * float(change.dot(change)) / loss)",
        "power",
        "qfair",
    ),
    Mistake(
        "Pisces: merges on every arrival, where no bound on staleness holds",
        "the card of Pisces",
        "strategies.pisces:Pisces._merge_if_due",
        "left = state.merged_at + max(at_work, default=0.0) / self.staleness_bound - now",
        "left = 0.0",
        "pisces",
    ),
    Mistake(
        "Pisces: staleness does not count in the utility",
        "Oort's utility under the name of Pisces",
        "strategies.pisces:PiscesSampler.utility",
        "** self.staleness_power",
        "** 0.0",
        "pisces",
    ),
    Mistake(
        "Oort: the number of samples forgotten in the utility",
        "U_i = rms_i",
        "strategies.oort:OortSampler.utilities",
        "report.num_examples * report.loss",
        "report.loss",
        "oort",
    ),
    # ---- robust aggregates ----
    Mistake(
        "CTMA: keeps all within the (n - f)-th distance, and divides by n - f",
        "published code of the authors",
        "rules.aggregators.ctma:Ctma.aggregate",
        "kept_rows[nearest[: len(rows) - self.tolerates(len(rows))]] = True",
        "kept_rows[:] = found <= found[nearest[len(rows) - self.tolerates(len(rows)) - 1]]",
        "law: test_robust_aggregates_are_the_independent_ones[ctma]",
    ),
    Mistake(
        "CTMA: by weight, the last one counts in full",
        "nearest until 1 - lambda is passed",
        "rules.aggregators.ctma:_trim_weight",
        "min(float(weights[place]), left)",
        "float(weights[place])",
        "law: test_robust_aggregates_are_the_independent_ones[ctma by weight]",
    ),
    Mistake(
        "Krum: a vector counts as its own neighbour",
        "sorted rows of a distance matrix, diagonal included",
        "rules.aggregators.krum:Neighbourly.scores",
        "np.fill_diagonal(squares, np.inf)",
        "np.fill_diagonal(squares, 0.0)",
        "law: test_robust_aggregates_are_the_independent_ones[krum]",
    ),
    Mistake(
        "multi-Krum: f more neighbours count, so that liars do",
        "n - 2 nearest in place of n - f - 2",
        "rules.aggregators.krum:Neighbourly.scores",
        "len(rows) - self.tolerates(len(rows)) - 2",
        "len(rows) - 2",
        "law: test_robust_aggregates_are_the_independent_ones[multi_krum]",
    ),
    Mistake(
        "median: weights are ignored",
        "np.median over updates that count differently",
        "rules.aggregators.median:coordinate_median",
        "if are_equal(weights):",
        "if True:",
        "law: test_robust_aggregates_are_the_independent_ones[median]",
    ),
    Mistake(
        "centred clipping: clipped vectors are averaged, not what they are from the centre",
        "clipping around 0",
        "rules.aggregators.centered_clipping:CenteredClipping.aggregate",
        "max(0.0, 1.0 - float(pulls.sum())) * center + weighted_sum",
        "0.0 * center + weighted_sum",
        "law: test_robust_aggregates_are_the_independent_ones[centered_clipping]",
    ),
    Mistake(
        "Oort: nobody is cut off",
        "drawn among all known clients",
        "strategies.oort:OortSampler._draw_best",
        "if values[client] >= least",
        "if True",
        "oort",
    ),
    # ---- robust ----
    Mistake(
        "Zeno++: scaled by the inverse ratio |g| / |v|",
        "a public version, which also takes it against the model's norm",
        "strategies.zeno:Zeno.on_update",
        "(trusted_norm / change_norm)",
        "(change_norm / trusted_norm)",
        "zeno",
    ),
    Mistake(
        "Zeno++: the cost of the step's length added instead of subtracted",
        "the sign turned round together with the gradients",
        "strategies.zeno:Zeno.score",
        "(self.gamma * cosine - self.rho)",
        "(self.gamma * cosine + self.rho)",
        "zeno",
    ),
    Mistake(
        "BASGD: the mean with the count before it is raised, so that the first change of a bucket is lost",
        "Catalyst's code",
        "rules.bucket_aggregate:_mean",
        "for change in changes:",
        "for change in changes[1:]:",
        "basgd",
    ),
    Mistake(
        "robust momentum: the first momentum begins at 0",
        "(1 - beta) of the first change, where its paper begins with the change itself",
        "rules.latest_momenta:LatestMomenta.step",
        "self.momentum if table.has_row(arrival.client) else 0.0",
        "self.momentum",
        "robust_momentum",
    ),
    Mistake(
        "robust momentum: every client counts the same, however often it reports",
        "liars counted as a share of clients instead of updates",
        "rules.latest_momenta:LatestMomenta.step",
        'memory["reports"][clients] if self.by_count else np.ones(len(clients))',
        "np.ones(len(clients))",
        "robust_momentum",
    ),
    Mistake(
        "Kardam: the frequency filter counts the candidate's own updates only",
        "Catalyst's code, and an earlier algorithm sheet",
        "strategies.kardam:Kardam._refusal",
        "sum(count for _, count in busiest)",
        "(*state.accepted, client).count(client)",
        "kardam",
    ),
    Mistake(
        "Kardam: a fresh change is damped already",
        "Catalyst's code, staleness counted from 1",
        "strategies.kardam:Kardam.on_update",
        "exp(-self.damping * update.staleness)",
        "exp(-self.damping * (update.staleness + 1))",
        "kardam",
    ),
]
