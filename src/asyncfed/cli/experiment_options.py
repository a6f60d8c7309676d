"""The options that describe an experiment, written once for every command that takes one."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import Field, dataclass, fields
from dataclasses import replace as replace_options
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_type_hints

import typer

from asyncfed.cli.output import complaints, print_note
from asyncfed.core.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from asyncfed.data import PreparedData
    from asyncfed.experiment import Experiment
    from asyncfed.presets import PreparedTable
    from asyncfed.problems.protocol import Problem
    from asyncfed.strategies.protocol import Strategy

PRESET = "regression"
"""The experiment of a command that names none."""

OWN = "that of the preset, the file, or tables"
NO_OWNER = "rows are assigned at random"
EPSILON = 2.0
"""What a client may lose in a private run that does not say."""

DELAY_NAMES = "none, laptop, stragglers, heavy_tailed, cluster, hospital or phones"


class PreparedExperiment(NamedTuple):
    """An experiment, its data, prepared once, and the problem they make; a population has no data to prepare."""

    experiment: Experiment
    prepared: PreparedData | None
    problem: Problem

    @property
    def data(self) -> PreparedData:
        """The data, for a command that needs all rows: those of a small population are written out."""
        return self.experiment.prepare_data() if self.prepared is None else self.prepared


@dataclass(frozen=True)
class ExperimentOptions:
    """What to run, and what is changed in it. Each field is an argument or option of the command line."""

    experiment: Annotated[
        str | None,
        typer.Argument(
            help="A preset, a .toml file, a table (a .csv or .parquet file, or a folder of them), or data by name; "
            "`asyncfed list` names all.",
            show_default=PRESET,
        ),
    ] = None
    data: Annotated[str | None, typer.Option("--data", help="A table or data by name: the same as the argument.")] = (
        None
    )
    target: Annotated[str | None, typer.Option(help="The column of the table to predict.")] = None
    client_column: Annotated[
        str | None, typer.Option(help="The column of the table that names the owner of a row.", show_default=NO_OWNER)
    ] = None
    problem: Annotated[
        str | None,
        typer.Option("--problem", help="What to learn on a table: see below.", show_default="what suits the data"),
    ] = None
    strategy: Annotated[
        str | None,
        typer.Option(
            help="Another strategy, with the same local work: one of those below, or a registered kind.",
            show_default=OWN,
        ),
    ] = None
    delays: Annotated[str | None, typer.Option(help="Other delays: see below.", show_default=OWN)] = None
    reading: Annotated[
        str | None, typer.Option(help="How a preset reads the paper: text or published.", show_default="text")
    ] = None
    fraction: Annotated[
        float | None,
        typer.Option(help="Share of the clients at work at once, up to 1.", show_default="0.5"),
    ] = None
    num_clients: Annotated[
        int | None, typer.Option(help="Clients of a preset, or of a table without a client column.", show_default="10")
    ] = None
    concurrency: Annotated[
        int | None, typer.Option(help="Clients at work at once, in place of --fraction.", show_default=OWN)
    ] = None
    rounds: Annotated[int | None, typer.Option(help="Rounds to run at most.", show_default=OWN)] = None
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.", show_default="0")] = None
    lr: Annotated[
        str | None,
        typer.Option(
            help='Learning rate: a number, or "theory" for one a theorem that applies allows.', show_default=OWN
        ),
    ] = None
    attack: Annotated[
        str | None,
        typer.Option(
            help="Some clients lie: how, with its own settings; `asyncfed list attacks`.", show_default="nobody lies"
        ),
    ] = None
    liars: Annotated[
        str | None,
        typer.Option(help="Who lies: a share of the clients (0.3) or a number of them (3).", show_default="0.3"),
    ] = None
    robust: Annotated[
        bool, typer.Option("--robust", help="Withstand clients that send false updates, up to a third of them.")
    ] = False
    privacy: Annotated[
        str | None,
        typer.Option(
            help="Promise clients differential privacy: central, tree or local; see docs/privacy.md.",
            show_default="no promise",
        ),
    ] = None
    epsilon: Annotated[
        float | None, typer.Option(help="With --privacy: what a client may lose at most.", show_default=EPSILON)
    ] = None
    compress: Annotated[
        str | None,
        typer.Option(
            help="Clients send less: top_k, sign, rand_k, low_rank, qsgd, bfloat16, send_if or ef21, with settings "
            "that serve; see docs/communication.md.",
            show_default="models are sent whole",
        ),
    ] = None
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any other key: --set strategy.max_staleness=3")
    ] = None

    def with_experiment(self, preset: str) -> ExperimentOptions:
        """The same, with this preset if nothing to run was named."""
        named = self.experiment is not None or self.data is not None
        return self if named else replace_options(self, experiment=preset)

    def build(self) -> Experiment:
        """The experiment that these options describe, where no data are needed: a preset or a TOML file."""
        chosen = self._change(self._preset())
        return chosen if self.lr is None else _with_rate(chosen, self.lr)

    def defend(self, strategy: Strategy, num_clients: int) -> Strategy:
        """With --robust, the strategy with a defence against liars, of which is said what it is."""
        if not self.robust:
            return strategy
        from asyncfed.presets import make_robust

        defended, words = make_robust(strategy, num_clients)
        print_note(words)
        return defended

    def prepare(self) -> PreparedExperiment:
        """The experiment that these options describe, with its data: nothing is read or prepared twice.

        What was left out of the data and filled is printed.
        """
        with _reading_shown(f"preparing the data of {self.data or self.experiment or PRESET}"):
            table = self._table_source()
            if table is not None:
                data: PreparedData | None
                unchanged, data, problem = self._table(table)
                chosen = self._change(unchanged, is_table=True)
                problem = chosen.attacked(problem)
            else:
                chosen = self._change(self._preset())
                data = None if chosen.makes_rows_late else chosen.prepare_data()
                problem = chosen.problem(data)
        if table is not None and not chosen.data.names_clients:
            count = problem.num_clients
            print_note(f"no column names the owner of a row: rows are assigned to {count} clients at random")
        for note in () if data is None else data.notes:
            print_note(note)
        chosen = chosen if self.lr is None else _with_rate(chosen, self.lr, problem)
        return PreparedExperiment(chosen, data, problem)

    @property
    def names_preset(self) -> bool:
        """Whether a preset or a TOML file is run, not a table."""
        return self._table_source() is None

    def default_file(self, ending: str = ".sqlite") -> Path:
        """Where the run's file is if --out does not say: known before any data are read."""
        from asyncfed.presets import table_name

        table, settings = self._table_source(), dict(map(parse_setting, self.settings or []))
        if table is None:
            chosen = self._change(self._preset())
            name, seed = chosen.name, chosen.seed
        else:
            name, seed = settings.get("name", table_name(table)), settings.get("seed", self.seed or 0)
        return Path("runs") / f"{name}-{seed}{ending}"

    def _table_source(self) -> str | None:
        """The table's path or the name of the data, whether they were named by the argument or by --data, else None."""
        from asyncfed.presets import BUILT_IN, PRESETS

        if self.data is not None and self.experiment is not None:
            raise ConfigError(
                f'The argument is "{self.experiment}" and --data is "{self.data}"; both say what to run. Give one.'
            )
        named = self.data or self.experiment or PRESET
        known = named in PRESETS or named.endswith(".toml")
        if self.data is not None or named in BUILT_IN or (not known and ("." in named or Path(named).exists())):
            if self.reading is not None:
                raise ConfigError("--reading is about presets, and what is run here is a table. Leave it out.")
            return named
        if not known:
            raise ConfigError(
                f'There is no preset "{named}", nor data of that name. {did_you_mean(named, [*PRESETS, *BUILT_IN])} '
                "A table is a .csv or .parquet file or a folder, an experiment of your own a .toml file."
            )
        if _given(target=self.target, client_column=self.client_column, problem=self.problem):
            raise ConfigError(
                f'--target, --client-column and --problem are about a table, and "{named}" is none. Name a file: '
                "asyncfed run shops.csv --target sold."
            )
        return None

    def _change(self, chosen: Experiment, is_table: bool = False) -> Experiment:
        """The experiment with other delays, rounds, seed and settings."""
        from asyncfed.core.record import replace, to_plain
        from asyncfed.experiment import changed
        from asyncfed.presets import compression_named, delays_named, table_delays

        changes = {
            key: value for key, value in {"seed": self.seed, "budget.rounds": self.rounds}.items() if value is not None
        } | dict(map(parse_setting, self.settings or []))
        if self.delays is not None:
            named = delays_named(self.delays)
            chosen = replace(chosen, delays=table_delays(chosen.strategy.work, named) if is_table else named)
        if self.concurrency is not None:
            field = next((name for name in ("concurrency", "cohort_size") if name in to_plain(chosen.strategy)), None)
            if field is None:
                raise ConfigError("--concurrency is for strategies with a number at work at once, and this has none.")
            chosen = changed(chosen, {f"strategy.{field}": self.concurrency})
        if self.attack is not None or self.liars is not None:
            chosen = changed(chosen, {"attack": _liars_named(self.attack, self.liars, chosen)})
        if self.compress is not None:
            chosen = changed(chosen, {"strategy.work.uplink": [to_plain(compression_named(self.compress))]})
        if self.privacy is not None or self.epsilon is not None:
            changes = {"privacy": _privacy_named(self.privacy, self.epsilon, chosen), **changes}
        return changed(chosen, changes) if changes else chosen

    def explain_privacy(self, experiment: Experiment, problem: Problem) -> None:
        """Of a private experiment: what is promised, what that costs, and what is not measured."""
        from asyncfed.core.record import UNSET

        if experiment.privacy is UNSET:
            return
        from asyncfed.privacy.certificate import claim_lines, cost_line

        claim = experiment.privacy_claim(problem.num_clients)
        assert claim is not None
        for line in [*claim_lines(claim), cost_line(claim, problem.num_params)]:
            print_note(line)
        if not experiment.privacy.unprotected_evaluation:
            print_note(
                "Nothing is measured on clients' data, since nothing would protect it. To see losses all the same: "
                "--set privacy.unprotected_evaluation=true"
            )

    def _preset(self) -> Experiment:
        """The preset or the TOML file, with the strategy that was chosen."""
        from asyncfed.core.record import replace
        from asyncfed.experiment import read_toml
        from asyncfed.presets import preset, strategy_like

        shape = _given(reading=self.reading, fraction=self.fraction, num_clients=self.num_clients)
        named = self.experiment or PRESET
        if not named.endswith(".toml"):
            return preset(named)(**shape, **_given(strategy=self.strategy))
        if shape:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in shape)
            raise ConfigError(f"{options}: for presets and tables; in a TOML file, write what you mean or use --set.")
        chosen = read_toml(named)
        if self.strategy is None:
            return chosen
        return replace(chosen, strategy=strategy_like(self.strategy, chosen.strategy))

    def _table(self, source: str) -> PreparedTable:
        """The experiment on a table, with what follows from its data: rate, penalty, how many work at once."""
        from asyncfed.presets import prepare_table

        named = _given(strategy=self.strategy, fraction=self.fraction, rounds=self.rounds, seed=self.seed)
        return prepare_table(
            source,
            target=self.target,
            client_column=self.client_column,
            problem=self.problem,
            num_clients=self.num_clients,
            settings=dict(map(parse_setting, self.settings or [])),
            **named,
        )


@contextmanager
def _reading_shown(words: str) -> Iterator[None]:
    """Within it, a bar on standard error shows how far the reading of a table is."""
    from asyncfed.report.terminal.progress import reading_bar

    with reading_bar(complaints, words) as watch:
        from asyncfed.data import watch_reading  # while the bar is there: loading takes a while

        with watch_reading(watch):
            yield


def takes_experiment(*left_out: str, preset: str = PRESET) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator for a command whose first parameter is `ExperimentOptions`: the command line gets their fields.

    Args:
        left_out: the fields that this command does not offer.
        preset: what it runs if no experiment is named; help says so.

    Returns:
        The decorator; what it gives back has the fields in place of the first parameter.
    """
    offered = [field for field in fields(ExperimentOptions) if field.name not in left_out]
    annotations = get_type_hints(ExperimentOptions, include_extras=True)
    kind, argument = get_args(annotations["experiment"])
    argument = copy(argument)
    argument.show_default = preset
    annotations["experiment"] = Annotated[kind, argument]

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
    from asyncfed.experiment import check_keys

    check_keys(text, f"--set {text[:40]}...")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except RecursionError:
        raise ConfigError(f"--set {key[:60]} has a value that is nested more deeply than TOML can be read.") from None
    except ValueError:
        return key.strip(), value.strip()


def _privacy_named(mode: str | None, epsilon: float | None, chosen: Experiment) -> dict[str, Any]:
    """The promise that --privacy and --epsilon describe; what is left out of them is the experiment's."""
    from asyncfed.core.record import UNSET, to_plain
    from asyncfed.registry import find

    plain: dict[str, Any] = {} if chosen.privacy is UNSET else dict(to_plain(chosen.privacy))
    if mode is not None and plain.get("kind") != mode:
        find("privacy", mode)  # names the nearest if there is none
        plain = {"kind": mode, "epsilon": EPSILON}
    elif not plain:
        raise ConfigError(f"--epsilon is {epsilon}, but nothing says how to keep it. Give --privacy, say central.")
    return plain if epsilon is None else {**plain, "epsilon": epsilon}


def _liars_named(attack: str | None, liars: str | None, chosen: Experiment) -> dict[str, Any]:
    """The liars that --attack and --liars describe; what is left out of them is the experiment's, or 0.3."""
    from asyncfed.core.record import UNSET, to_plain

    plain: dict[str, Any] = {} if chosen.attack is UNSET else dict(to_plain(chosen.attack))
    if attack is not None:
        from asyncfed.registry import find

        find("attack", attack)  # names the nearest if there is none
        plain["attack"] = {"kind": attack}
    elif not plain:
        raise ConfigError(f"--liars is {liars}, but nobody says how they lie. Give --attack, say sign_flip.")
    if liars is not None or not plain.keys() & {"share", "count", "clients"}:
        plain = {"attack": plain["attack"], **_who_lies(liars or "0.3")}
    return plain


def _who_lies(text: str) -> dict[str, float | int]:
    """A share of the clients, or a number of them.

    >>> _who_lies("0.3"), _who_lies("3")
    ({'share': 0.3}, {'count': 3})
    """
    try:
        return {"count": int(text)} if text.strip().isdigit() else {"share": float(text)}
    except ValueError:
        raise ConfigError(f'--liars is "{text}"; it must be a share such as 0.3, or a number of clients.') from None


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
