"""The options that describe an experiment, written once for every command that takes one."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable
from dataclasses import Field, dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from asyncfed.cli.output import print_note
from asyncfed.core.errors import ConfigError

if TYPE_CHECKING:
    from asyncfed.data import PreparedData
    from asyncfed.experiment import Experiment
    from asyncfed.problems.protocol import Problem

PRESET = "regression"
"""The experiment of a command that names none."""

TABLE_OPTIONS = ("data", "target", "client_column", "problem")
"""Options about a table of one's own, which takes the place of a preset."""


class PreparedExperiment(NamedTuple):
    """An experiment, its data, prepared once, and the problem they make."""

    experiment: Experiment
    data: PreparedData
    problem: Problem


@dataclass(frozen=True)
class ExperimentOptions:
    """A preset or a TOML file, and what is changed in it. Each field is an argument or option of the command line."""

    experiment: Annotated[str, typer.Argument(help="A preset (see `asyncfed presets`) or a TOML file.")] = PRESET
    data: Annotated[
        str | None, typer.Option("--data", help="In place of a preset: a .csv or .parquet file, or data by name.")
    ] = None
    target: Annotated[str | None, typer.Option(help="The column of --data to predict.")] = None
    client_column: Annotated[str | None, typer.Option(help="The column of --data that names the owner of a row.")] = (
        None
    )
    problem: Annotated[
        str | None, typer.Option("--problem", help="For --data: a problem by name (see `asyncfed presets`).")
    ] = None
    strategy: Annotated[
        str | None, typer.Option(help="Another strategy, by name or registered kind, with the same local work.")
    ] = None
    delays: Annotated[
        str | None, typer.Option(help="Other delays by name: none, laptop, stragglers, heavy_tailed.")
    ] = None
    reading: Annotated[str | None, typer.Option(help="How a preset reads the paper: text or published.")] = None
    fraction: Annotated[float | None, typer.Option(help="Share of a preset's clients at work at once.")] = None
    clients: Annotated[int | None, typer.Option(help="Number of a preset's clients.")] = None
    rounds: Annotated[int | None, typer.Option(help="Rounds to run.")] = None
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None
    lr: Annotated[
        str | None, typer.Option(help='Learning rate: a number, or "theory" for one a theorem that applies allows.')
    ] = None
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any other key: --set strategy.max_staleness=3")
    ] = None

    def build(self) -> Experiment:
        """The experiment that these options describe, for commands without a table of one's own."""
        chosen = self._change(self._preset())
        return chosen if self.lr is None else _with_rate(chosen, self.lr)

    def prepare(self) -> PreparedExperiment:
        """The experiment that these options describe, with its data: nothing is read or prepared twice."""
        if _given(data=self.data, target=self.target, client_column=self.client_column, problem=self.problem):
            unchanged, data = self._table()
            chosen = self._change(unchanged)
        else:
            chosen = self._change(self._preset())
            data = chosen.prepare_data()
        problem = chosen.problem(data)
        chosen = chosen if self.lr is None else _with_rate(chosen, self.lr, problem)
        return PreparedExperiment(chosen, data, problem)

    def _change(self, chosen: Experiment) -> Experiment:
        """The experiment with other delays, rounds, seed and settings."""
        from asyncfed.core.record import replace
        from asyncfed.experiment import changed
        from asyncfed.presets import delays_named

        changes = {
            key: value for key, value in {"seed": self.seed, "budget.rounds": self.rounds}.items() if value is not None
        } | dict(map(parse_setting, self.settings or []))
        if self.delays is not None:
            chosen = replace(chosen, delays=delays_named(self.delays))
        return changed(chosen, changes) if changes else chosen

    def _preset(self) -> Experiment:
        """The preset or the TOML file, with the strategy that was chosen."""
        from asyncfed.core.record import replace
        from asyncfed.experiment import read_toml
        from asyncfed.presets import preset, strategy_like

        shape = _given(reading=self.reading, fraction=self.fraction, num_clients=self.clients)
        if not self.experiment.endswith(".toml"):
            return preset(self.experiment)(**shape, **_given(strategy=self.strategy))
        if shape:
            raise ConfigError(f"{', '.join(shape)} shape presets; in a TOML file, write what you mean or use --set.")
        chosen = read_toml(self.experiment)
        if self.strategy is None:
            return chosen
        return replace(chosen, strategy=strategy_like(self.strategy, chosen.strategy))

    def _table(self) -> tuple[Experiment, PreparedData]:
        """The experiment on --data, and these data: how many clients they name decides how many work at once."""
        from asyncfed.core.record import replace
        from asyncfed.presets import table, table_strategy

        if self.data is None or self.experiment != PRESET or self.reading is not None:
            raise ConfigError("--target, --client-column and --problem go with --data, which takes a preset's place.")
        settings = dict(parse_setting(text) for text in self.settings or [] if not text.startswith("strategy."))
        fraction = 0.5 if self.fraction is None else self.fraction
        described = table(
            self.data,
            target=self.target,
            client_column=self.client_column,
            problem=self.problem,
            strategy=None,
            fraction=fraction,
            num_clients=self.clients,
            seed=self.seed or 0,
            settings=settings,
        )
        data = described.prepare_data()
        strategy = table_strategy(self.strategy or "fedasync", fraction, data.clients.num_clients)
        return replace(described, strategy=strategy), data


def takes_experiment(*left_out: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator for a command whose first parameter is `ExperimentOptions`: the command line gets their fields.

    Args:
        left_out: the fields that this command does not offer.

    Returns:
        The decorator; what it gives back has the fields in place of the first parameter.
    """
    offered = [field for field in fields(ExperimentOptions) if field.name not in left_out]
    annotations = get_type_hints(ExperimentOptions, include_extras=True)

    def expand(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(**values: Any) -> None:
            options = ExperimentOptions(**{field.name: values.pop(field.name) for field in offered})
            command(options, **values)

        _, *own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [_parameter(field, annotations[field.name]) for field in offered]
        parameters += [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        vars(call)["__signature__"] = inspect.Signature(parameters)
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return call

    return expand


def _parameter(field: Field[Any], annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=annotation)


def _given(**values: Any) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def parse_setting(text: str) -> tuple[str, Any]:
    """A `key=value` of --set: the key, and the value as TOML reads it, or else as text.

    >>> parse_setting("strategy.concurrency=3"), parse_setting("split.kind=iid")
    (('strategy.concurrency', 3), ('split.kind', 'iid'))
    """
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f'--set "{text}" has no "="; write --set key=value, such as --set strategy.concurrency=3.')
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def _with_rate(chosen: Experiment, lr: str, problem: Problem | None = None) -> Experiment:
    from asyncfed.experiment import changed

    if lr == "theory":
        from asyncfed.certificates import with_theory_rate

        slowed, theorem = with_theory_rate(chosen, problem)
        print_note(f"rate {slowed.strategy.work.learning_rate:.4g}, constant: what {theorem.name} allows")
        return slowed
    try:
        return changed(chosen, {"strategy.work.learning_rate": float(lr)})
    except ValueError:
        raise ConfigError(f'--lr is "{lr}"; it must be a positive number, or "theory".') from None
