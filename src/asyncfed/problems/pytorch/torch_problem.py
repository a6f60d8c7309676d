"""What is learnt by a PyTorch module: a `Problem`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from hashlib import sha256
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_model
from torch import Tensor, nn

from asyncfed.core.errors import ConfigError, DataError, did_you_mean
from asyncfed.core.types import Work
from asyncfed.kernels.row_orders import epoch_orders
from asyncfed.kernels.threads import SMALL, run_split
from asyncfed.problems.client_rows import client_rows
from asyncfed.problems.initial_params import initial_key
from asyncfed.problems.one_client import OneClient
from asyncfed.problems.protocol import (
    AheadTraining,
    Array,
    ClientScores,
    Initialisation,
    Jobs,
    NamedData,
    PackedData,
)
from asyncfed.problems.pytorch.ahead_training import CompiledAhead, ModuleAhead
from asyncfed.problems.pytorch.code_fingerprint import module_text, params_digest, source_text
from asyncfed.problems.pytorch.compiled_training import CompiledTraining, Paths, Ticket, layers_of
from asyncfed.problems.pytorch.held_out_rows import held_out_rows, unowned_rows
from asyncfed.problems.pytorch.module_evaluation import ModuleEvaluation, RowSums
from asyncfed.problems.pytorch.module_replica import Path, Replica, draws_numbers, seed_torch, tensor_of, use_one_thread
from asyncfed.problems.pytorch.tensor_clients import Pairs, TensorClients
from asyncfed.problems.pytorch.tensor_rows import check_targets, class_numbers, features, targets_like
from asyncfed.problems.pytorch.torch_losses import CLASSES, Loss, accuracy

ModelFunction = Callable[[], nn.Module]
Metric = Callable[[Tensor, Tensor], Tensor]

_TIMES_FASTER = 8
"""How many multiply-adds of the compiled kernel take as long as one of those that `run_split` thinks of."""

_PASSES = 3
"""Over all params for each row of a step: forward, and twice as much back."""

_LEAST_COMPILED, _LEAST_IN_TORCH = 3_000_000, SMALL
"""Multiply-adds of a ticket (25 µs of the compiled kernel; about 1 ms of torch) from which on it is trained ahead."""

_KNOWN_METRICS: dict[str, Metric] = {"accuracy": accuracy}


class TorchProblem:
    """A PyTorch module, a loss and each client's rows: a `Problem`, made by `af.problems.torch_problem`.

    F(p) = (1/C) Σ_c (1/n_c) Σ_{i in c} loss(module_p(x_i), y_i)

    Args:
        model_fn: makes the module; see `af.problems.torch_problem` for this and all that follow.
        loss_fn: a name, a loss of torch, or a function of (outputs, targets).
        clients: the rows to train on.
        metrics: names, or functions of (outputs, targets) that give one number per row.
        held_out: rows of the clients to measure on, by the name of the part.
        test: an (x, y) of rows that belong to no client.
        device: "cpu" or "cuda".
        together: whether the compiled kernel trains what it can.
    """

    def __init__(
        self,
        model_fn: ModelFunction,
        loss_fn: str | Callable[..., Tensor],
        clients: NamedData | Pairs,
        metrics: Sequence[str] | Mapping[str, Metric] | None = None,
        held_out: Mapping[str, PackedData | Pairs] | None = None,
        test: tuple[Any, Any] | None = None,
        device: str = "cpu",
        together: bool = True,
    ) -> None:
        self._given = (model_fn, loss_fn, clients, metrics, held_out, test, device, together)
        self.clients: NamedData = TensorClients.from_pairs(clients) if isinstance(clients, Sequence) else clients
        self.held_out = held_out_rows(held_out, self.clients)
        self._untrained = self.held_out | unowned_rows(test, self.held_out, self.clients)
        self._model_fn, self._loss, self._device = model_fn, Loss(loss_fn), _device(device)
        self._metrics = _choose_metrics(metrics, self._loss)
        self._template = self._module(0)
        self._check_template()
        self._offsets = np.ascontiguousarray(self.clients.offsets, dtype=np.int64)
        self.num_examples: NDArray[np.int64] = np.diff(self._offsets)
        if self.num_examples.min() < 1:
            raise DataError(f"Client {self.num_examples.argmin()} has no rows; leave it out, or give it some.")
        self._x, self._y = self._rows(self.clients)
        self._draws = draws_numbers(self._template, self._x[[0, -1]], self._device)
        self._free = [self._new_replica()]
        self._evaluations = {"training": self._evaluation_on(self._x, self._y, self._offsets)}
        for part, rows in self._untrained.items():
            self._evaluations[part] = self._evaluation_on(*self._rows(rows), np.asarray(rows.offsets, np.int64))
        self._adapt()
        possible = together and self._device.type == "cpu" and self._x.is_floating_point()
        layers = layers_of(self._template, self._loss, tuple(self._x.shape[1:])) if possible else None
        self._compiled = None if layers is None else CompiledTraining(layers, self._loss, self._x, self._y)

    def __reduce__(self) -> tuple[Any, ...]:
        return TorchProblem, self._given

    # ---- what it is ------------------------------------------------------------------------------------------

    @property
    def num_clients(self) -> int:
        """C, the number of clients."""
        return len(self.num_examples)

    @cached_property
    def num_params(self) -> int:
        """Numbers in the flat vector: all parameters, then all buffers of floating point."""
        return sum(t.numel() for t in _tensors(self._template).values())

    @cached_property
    def param_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of those tensors, in their order."""
        return tuple(tuple(t.shape) for t in _tensors(self._template).values())

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The precision of the module's parameters, float32 or float64."""
        return np.dtype(str(next(self._template.parameters()).dtype).removeprefix("torch."))

    @property
    def together(self) -> bool:
        """True if the compiled kernel trains all clients of a call (`compiled_training.py`), false if torch does."""
        return self._compiled is not None

    def init(self, seed: int, client: int | None = None, how: Initialisation = "zeros") -> Array:
        """The params of `model_fn()`, its draws keyed by the seed (and the client). `how` does not matter here."""
        module = self._module(initial_key(seed, client))
        tensors = _tensors(module)
        shapes, wanted = ({k: tuple(t.shape) for k, t in some.items()} for some in (tensors, _tensors(self._template)))
        if shapes != wanted:
            raise ConfigError("model_fn gives modules of different shapes; it must give the same structure each time.")
        params: Array = torch.cat([t.detach().reshape(-1) for t in tensors.values()]).cpu().numpy()
        return params

    def shard(self, client: int) -> TorchShard:
        """This client's part of the problem, with a copy of its own rows and of no other's."""
        first, last = self._range(client)
        return self.shard_of(*(np.array(column[first:last]) for column in (self.clients.x, self.clients.y)))

    def shard_of(self, x: Array, y: Array) -> TorchShard:
        """A client's part of the problem with these rows, which are nobody's."""
        model_fn, loss_fn, *_, together = self._given
        return TorchShard(model_fn, loss_fn, np.asarray(x), np.asarray(y), together)

    def on_rows(self, clients: NamedData, held_out: Mapping[str, PackedData] | None = None) -> TorchProblem:
        """The same module and loss for other rows; test rows that belong to no client stay."""
        model_fn, loss_fn, _, metrics, _, test, device, together = self._given
        unowned = None if "test" in (held_out or {}) else test
        return TorchProblem(model_fn, loss_fn, clients, metrics, held_out, unowned, device, together)

    @cached_property
    def num_classes(self) -> int | None:
        """How many classes the module tells apart; None if its targets are no numbers of classes."""
        if self._loss.name not in CLASSES:
            return None
        with torch.no_grad(), seed_torch(0, self._device), use_one_thread():
            return int(deepcopy(self._template).eval()(self._x[:1]).shape[1])

    def module(self, params: Array) -> nn.Module:
        """A module of your own with these params, on the CPU and ready to predict."""
        module = deepcopy(self._template).cpu().eval()
        values = tensor_of(np.ascontiguousarray(self._check_params(np.asarray(params)[None])[0])).clone()
        tensors = list(_tensors(module).values())
        for tensor, part in zip(tensors, values.split([t.numel() for t in tensors]), strict=True):
            tensor.data.copy_(part.view(tensor.shape))
        return module

    def export(self, params: Array, path: FilePath | str) -> None:
        """Write the module with these params as a safetensors file, under the names of its `state_dict`."""
        save_model(self.module(params), str(path))

    def fingerprint(self) -> str:
        """SHA-256 of all data, the module's structure and code, its first params, the loss, and how it is trained.

        What code refers to elsewhere is not seen: global values, files, other functions. Nor is the device.
        """
        first = params_digest(self.init(0))
        code = (module_text(self._template), source_text(self._model_fn), self._loss.text)
        untrained = (f"{part} {rows.sha256()}" for part, rows in self._untrained.items())
        how = "compiled" if self.together else "False"  # "True" in files of versions that rounded differently
        return sha256("\n".join(("torch", self.clients.sha256(), *code, first, how, *untrained)).encode()).hexdigest()

    def optimum(self) -> None:
        """Not known."""

    # ---- training --------------------------------------------------------------------------------------------

    def local_train(self, params: Array, client: int, work: Work, key: int) -> Array:
        """The client's params after its local work."""
        trained: Array = self.local_train_many(Jobs(np.asarray(params)[None], [client], [work], [key]))[0]
        return trained

    def local_train_many(self, jobs: Jobs, threads: int = 1) -> Array:
        """k independent trainings, to the last bit the same alone, together and on any number of threads."""
        starts = self._check_params(jobs.starts)
        tickets = self._tickets(jobs)
        corrections, done = self._corrections(jobs), _room_for_counts(jobs)
        trained = starts if jobs.overwrite and starts.flags.writeable else np.empty_like(starts)
        compiled, alone = self._split_jobs(tickets)

        def run(first: int, last: int) -> None:
            with use_one_thread():
                for ticket in alone[first:last]:
                    trained[ticket.place], done[ticket.place] = self._train_alone(starts, ticket, corrections)

        self._train_compiled(compiled, starts, trained, None, corrections, done, threads)
        if alone:
            run_split(run, self._costs(alone), self._side_by_side(threads))
        if jobs.steps_done is not None:
            jobs.steps_done[:] = done
        return trained

    def train_ahead(self, threads: int) -> AheadTraining | None:
        """Trainings that other threads do while the caller does something else; None for a module that draws."""
        threads = self._side_by_side(threads)
        if threads < 2:
            return None
        if self._compiled is not None:
            return CompiledAhead(
                self._compiled, self._ticket, self.num_params, self.dtype, _LEAST_COMPILED // _PASSES, threads
            )
        return ModuleAhead(self._train_ticket, self._ticket, self.num_params, _LEAST_IN_TORCH // _PASSES, threads)

    def local_path_moments(self, jobs: Jobs, threads: int = 1) -> tuple[Array, Array, Array]:
        """(I, Σ (y_i − y_0), Σ |y_i − y_0|²) of each training of `local_train_many`, i = 0 … I−1, in float64."""
        starts = self._check_params(jobs.starts)
        tickets = self._tickets(jobs)
        corrections, done = self._corrections(jobs), _room_for_counts(jobs)
        paths = Paths(np.zeros(starts.shape), np.zeros(len(starts)))
        compiled, alone = self._split_jobs(tickets)

        def run(first: int, last: int) -> None:
            with use_one_thread():
                for ticket in alone[first:last]:
                    path = Path(torch.from_numpy(starts[ticket.place].copy()))
                    _, done[ticket.place] = self._train_alone(starts, ticket, corrections, path)
                    paths.sums[ticket.place], paths.squares[ticket.place] = path.sums.numpy(), path.squares

        self._train_compiled(compiled, starts, np.empty_like(starts), paths, corrections, done, threads)
        if alone:
            run_split(run, self._costs(alone), self._side_by_side(threads))
        if jobs.steps_done is not None:
            jobs.steps_done[:] = done
        return done.astype(np.float64), paths.sums, paths.squares

    def _train_compiled(
        self,
        tickets: list[Ticket],
        starts: Array,
        trained: Array,
        paths: Paths | None,
        corrections: Array | None,
        done: Array,
        threads: int,
    ) -> None:
        """Let the compiled kernel train these into their rows of `trained`."""
        compiled = self._compiled
        if compiled is None or not tickets:
            return
        tasks = compiled.tasks(tickets)

        def run(first: int, last: int) -> None:
            compiled.train(starts, tasks, (first, last), trained, paths, corrections)

        run_split(run, self._costs(tickets) // _TIMES_FASTER, threads)
        done[tasks.counts[:, 0]] = tasks.counts[:, 4]

    def _split_jobs(self, tickets: list[Ticket]) -> tuple[list[Ticket], list[Ticket]]:
        """Those for the compiled kernel, and those for torch, as patient clients are: it knows the loss of a batch."""
        if self._compiled is None:
            return [], tickets
        return [t for t in tickets if not t.work.patience], [t for t in tickets if t.work.patience]

    def _train_ticket(self, starts: Array, ticket: Ticket) -> Array:
        """The params that a ticket arrives at from its row of `starts`, by torch on one thread."""
        with use_one_thread():
            return self._train_alone(self._check_params(starts), ticket, None)[0]

    def _train_alone(
        self, starts: Array, ticket: Ticket, corrections: Array | None, path: Path | None = None
    ) -> tuple[Array, int]:
        """The params that a ticket arrives at, and the steps it made."""
        place, first, count, work, key = ticket
        epochs = -(-ticket.steps // ticket.per_epoch)
        orders = torch.from_numpy(epoch_orders(key, count, epochs)).to(self._device)
        batches = [order.split(ticket.batch) for order in orders]
        batches[-1] = batches[-1][: ticket.steps - (epochs - 1) * ticket.per_epoch]
        x, y = self._x[first : first + count], self._y[first : first + count]
        replica = self._replica()
        try:
            replica.load(starts[place])
            correction = None if corrections is None else replica.correction_of(corrections[place])
            if self._draws:
                with seed_torch(key, self._device):
                    done = replica.train(x, y, batches, work, self._loss, path, correction)
            else:
                done = replica.train(x, y, batches, work, self._loss, path, correction)
            return replica.params(), done
        except (ValueError, RuntimeError) as error:
            smallest = len(batches[0][-1])
            error.add_note(f"It happened in the training of a client of {count} rows, its last batch of {smallest}.")
            raise
        finally:
            self._free.append(replica)

    def _tickets(self, jobs: Jobs) -> list[Ticket]:
        starts, clients, works, keys = jobs[:4]
        if not len(starts) == len(clients) == len(works) == len(keys):
            raise ConfigError(
                f"There are {len(starts)} starts, {len(clients)} clients, {len(works)} works and {len(keys)} keys; "
                "each task needs one of each."
            )
        given = zip(clients, works, keys, strict=True)
        return [self._ticket(client, work, key, place) for place, (client, work, key) in enumerate(given)]

    def _ticket(self, client: int, work: Work, key: int, place: int = 0) -> Ticket:
        first, last = self._range(client)
        return Ticket(place, first, last - first, work, key)

    def _corrections(self, jobs: Jobs) -> Array | None:
        """The vectors to be added to gradients, in the params' precision."""
        if jobs.corrections is None:
            return None
        needed = (len(jobs.clients), self.num_params)
        if jobs.corrections.shape != needed:
            raise DataError(f"corrections has shape {jobs.corrections.shape}; {needed[0]} jobs need {needed}.")
        for work in jobs.works:
            if work.momentum:
                raise ConfigError(
                    f"work.momentum is {work.momentum}, but a vector is to be added to the gradient of every local "
                    "step, which is exact for plain SGD only. Leave momentum out, or take a strategy without them."
                )
        return np.ascontiguousarray(jobs.corrections, dtype=self.dtype)

    def _costs(self, tickets: list[Ticket]) -> Array:
        """Multiply-adds, roughly."""
        return np.array([_PASSES * t.row_steps for t in tickets], np.int64) * self.num_params

    def _side_by_side(self, threads: int) -> int:
        """torch has one generator for all threads, so a module that draws is trained on one."""
        return 1 if self._draws else threads

    def _replica(self) -> Replica:
        """One that is not in use; the caller appends it to `_free` when done."""
        try:
            return self._free.pop()
        except IndexError:
            return self._new_replica()

    def _new_replica(self) -> Replica:
        replica = Replica(self._template, self._device)
        replica.use_known_gradients(self._loss, self._x, self._y)
        return replica

    # ---- measuring -------------------------------------------------------------------------------------------

    def evaluate(self, params: Array, threads: int = 1) -> dict[str, float]:
        """`objective`, `pooled_loss`, each metric as a mean over clients and, `pooled_…`, over rows.

        Of rows not trained on, `validation_…` and `test_…`: the loss and each metric, as means over the clients that
        have such rows of each one's mean.
        """
        measured = self._sums("training", params, threads)
        sizes, rows = self.num_examples, len(self._y)
        result = {"objective": float(np.mean(measured.loss / sizes)), "pooled_loss": float(measured.loss.sum()) / rows}
        for name, sums in measured.metrics.items():
            result[name] = float(np.mean(sums / sizes))
            result[f"pooled_{name}"] = float(sums.sum()) / rows
        for part, held in self._untrained.items():
            measured, sizes = self._sums(part, params, threads), np.diff(held.offsets)
            for name, sums in {"loss": measured.loss, **measured.metrics}.items():
                result[f"{part}_{name}"] = float(np.mean(sums[sizes > 0] / sizes[sizes > 0]))
        return result

    @property
    def parts(self) -> tuple[str, ...]:
        """`training`, and the names of what is held out."""
        return ("training", *self.held_out)

    @property
    def client_names(self) -> tuple[str, ...]:
        """What the clients are called; empty if they have only numbers."""
        return self.clients.names

    def client_scores(self, params: Array, part: str, threads: int = 1) -> ClientScores:
        """A model (p,), or each client's own (C, p), measured on each client's rows of a part."""
        if part not in self.parts:
            raise ConfigError(f'part is "{part}". {did_you_mean(part, self.parts)}')
        measured = self._sums(part, params, threads)
        rows = np.diff(self.clients.offsets if part == "training" else self.held_out[part].offsets)
        some = np.where(rows > 0, rows, np.nan)
        right = measured.metrics.get("accuracy")
        return ClientScores(rows, measured.loss / some, None if right is None else right / some)

    def client_optimum(self, client: int) -> None:
        """Not known."""

    def client_losses(self, params: Array, threads: int = 1) -> Array:
        """Each client's mean loss, shape (C,), the module in evaluation mode."""
        return self._sums("training", params, threads).loss / self.num_examples

    def client_loss(self, params: Array, client: int) -> float:
        """One client's mean loss, the module in evaluation mode."""
        first, last = self._range(client)
        params = self._check_params(np.asarray(params)[None])[0]
        return self._evaluations["training"].loss_of(params, first, last) / (last - first)

    def client_row_losses(self, params: Array, client: int) -> Array:
        """The loss of each row of one client, the module in evaluation mode, shape (n_c,)."""
        if not self._loss.has_rows:
            raise ConfigError(
                "work.start_rms asks for the losses of single rows, and loss_fn gives only their mean. Let loss_fn "
                "give one loss per row, or use a strategy that does without start_rms."
            )
        first, last = self._range(client)
        params = self._check_params(np.asarray(params)[None])[0]
        return self._evaluations["training"].row_losses_of(params, first, last)

    def gradient(self, params: Array, client: int) -> Array:
        """The gradient of `client_loss` over all the client's rows, in double precision; 0 for buffers."""
        first, last = self._range(client)
        return self._evaluations["training"].gradient(self._check_params(np.asarray(params)[None])[0], first, last)

    def _sums(self, part: str, params: Array, threads: int) -> RowSums:
        """Sums over each client's rows of a part, by one model or by its own."""
        evaluation, threads = self._evaluations[part], self._side_by_side(threads)
        if np.ndim(params) == 1:
            return evaluation.sum_by_one_model(self._check_params(np.asarray(params)[None])[0], threads)
        models = self._check_params(np.asarray(params))
        if len(models) != self.num_clients:
            raise DataError(f"There are {len(models)} models for {self.num_clients} clients; give one each.")
        return evaluation.sum_by_own_models(models, threads)

    def _evaluation_on(self, x: Tensor, y: Tensor, offsets: Array) -> ModuleEvaluation:
        return ModuleEvaluation(
            x, y, offsets, self._loss, self._metrics, self._replica, self._free.append, self._device
        )

    # ---- setting up ------------------------------------------------------------------------------------------

    def _module(self, key: int) -> nn.Module:
        with seed_torch(key, self._device):
            module = self._model_fn()
        if not isinstance(module, nn.Module):
            raise ConfigError(f"model_fn gives a {type(module).__name__}; it must give a torch.nn.Module.")
        return module.to(self._device)

    def _check_template(self) -> None:
        kinds = {t.dtype for t in _tensors(self._template).values()}
        if not list(self._template.parameters()):
            raise ConfigError("The module has no parameters, so there is nothing to learn.")
        if len(kinds) != 1 or not kinds <= {torch.float32, torch.float64}:
            names = ", ".join(sorted(map(str, kinds)))
            raise ConfigError(f"The module's tensors are of {names}; all must be float32, or all float64.")

    def _rows(self, rows: PackedData) -> tuple[Tensor, Tensor]:
        kind = next(self._template.parameters()).dtype
        inputs = features(rows.x, self.clients.x, kind, self._device)
        if self._loss.name in CLASSES:
            return inputs, class_numbers(rows.y, self._device)
        with torch.no_grad(), seed_torch(0, self._device), use_one_thread():
            outputs = deepcopy(self._template).eval()(inputs[:1])
        return inputs, targets_like(outputs, features(rows.y, self.clients.y, kind, self._device))

    def _adapt(self) -> None:
        """One small step, thrown away: it shows what the loss gives, and whether the module can be trained at all."""
        replica = self._free[0]
        replica.load(self.init(0))
        replica.module.eval()
        with seed_torch(0, self._device), use_one_thread():
            outputs = replica.module(self._x[[0, -1]])
            for part, measuring in self._evaluations.items():
                whose = "y" if part == "training" else f"y of {part}"
                check_targets(self._loss.name, outputs, measuring.y, whose)
            self._loss.adapt(outputs, self._y[[0, -1]])
            self._loss.mean(outputs, self._y[[0, -1]]).backward()
        replica.check_bound()
        replica.gradient.zero_()

    def _check_params(self, params: Array) -> Array:
        if params.ndim != 2 or params.shape[1] != self.num_params:
            raise DataError(f"params has shape {params.shape}; this module has {self.num_params} numbers.")
        return np.ascontiguousarray(params, dtype=self.dtype)

    def _range(self, client: int) -> tuple[int, int]:
        rows = client_rows(self._offsets, client)
        return rows.start, rows.stop


class TorchShard(OneClient):
    """A module and one client's rows: a `ClientShard`, which trains to the bits of the whole problem.

    Args:
        model_fn: makes the module.
        loss_fn: the loss, as for `af.problems.torch_problem`.
        x: the client's inputs, one entry per row.
        y: its targets.
        together: as for the whole problem, so that results agree to the last bit.
    """

    def __init__(
        self, model_fn: ModelFunction, loss_fn: str | Callable[..., Tensor], x: Array, y: Array, together: bool
    ) -> None:
        self._given = (model_fn, loss_fn, x, y, together)
        self._alone = TorchProblem(model_fn, loss_fn, [(x, y)], together=together)

    def __reduce__(self) -> tuple[Any, ...]:
        return TorchShard, self._given


def _room_for_counts(jobs: Jobs) -> Array:
    count = len(jobs.clients)
    if jobs.steps_done is not None and jobs.steps_done.shape != (count,):
        raise DataError(f"steps_done has shape {jobs.steps_done.shape}; {count} jobs need {(count,)}.")
    return np.zeros(count, np.int64)


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    """What the flat vector holds, in its order: parameters, then buffers of floating point."""
    buffers = {k: b for k, b in module.named_buffers() if b.is_floating_point()}
    return {**dict(module.named_parameters()), **buffers}


def _device(name: str) -> torch.device:
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f'device is "{name}", but torch sees no CUDA device here; use device="cpu".')
    return device


def _choose_metrics(chosen: Sequence[str] | Mapping[str, Metric] | None, loss: Loss) -> dict[str, Metric]:
    if chosen is None:
        return {"accuracy": accuracy} if loss.name in CLASSES else {}
    if isinstance(chosen, Mapping):
        return dict(chosen)
    for name in chosen:
        if name not in _KNOWN_METRICS:
            raise ConfigError(
                f'metrics names "{name}". {did_you_mean(name, _KNOWN_METRICS)} Or give a function of your own: '
                "metrics={name: function(outputs, targets)}, one number per row."
            )
    return {name: _KNOWN_METRICS[name] for name in chosen}
