"""Experiment: one frozen description of a run. TOML is its written form."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, get_args, get_type_hints

import tomli_w

from asyncfed.attacks import Liars, hold_back, with_liars
from asyncfed.core.errors import ConfigError, JournalError, did_you_mean
from asyncfed.core.record import UNSET, Config, UnsetType, ValidationError, from_plain, kind_of, replace, to_plain
from asyncfed.core.types import Budget
from asyncfed.data import (
    DEFAULT_CLIENTS,
    IID,
    Clients,
    DataRequest,
    DataSource,
    Dtype,
    HeterogeneityReport,
    Holdout,
    MakesRowsLate,
    PaperRegression,
    PreparedData,
    Split,
    measure_heterogeneity,
)
from asyncfed.delays import DelayDescription, DelayModel, Delays
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.plan import Churn, Plan, check_churn
from asyncfed.engine.stopping import Stopping
from asyncfed.privacy import Claim, Privacy, Setting
from asyncfed.problems.linear import LinearModel
from asyncfed.problems.population import build_population
from asyncfed.problems.protocol import Initialisation, Problem, ProblemDescription
from asyncfed.problems.trusted_rows import TrustedData, draws_from_clients
from asyncfed.registry import part_members
from asyncfed.rules.secure_aggregation import SecureAggregation
from asyncfed.strategies import AFL
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.secure_sums import with_secure_sums

NOT_PART_OF_THE_RUN = frozenset({"name", "evaluation"})
"""What may differ between two descriptions of the same run: it changes what is measured, not what happens."""


class Experiment(Config):
    """One frozen description of a run. TOML is its written form: see `to_toml` and `read_toml`.

    Args:
        name: what it is called in files and reports.
        seed: of everything random, 0 or more.
        num_clients: how many clients there are, 1 or more; None for as many as the data name, or 10.
        data: where the rows come from.
        split: which client owns which row, where the data do not say.
        holdout: which rows are kept from training, for validation and test; None for none.
        dtype: what the model is trained in, "float32" or "float64".
        model: what is learnt.
        init: the first model: "zeros", or "torch" for PyTorch's default initialisation of a linear layer.
        strategy: who trains when, and what a report counts.
        delays: how long work takes and who is there, in virtual time.
        budget: when the run ends by itself; it must set a limit.
        stopping: rules that end it earlier; None for none.
        churn: clients that join and leave during the run.
        evaluation: when the model is measured, and what else is.
        divergence_norm: the run has diverged when the model's norm is above this at the end of a round; above 0.
        attack: clients that lie, and how; left out, nobody does. What is measured is then of the honest clients only.
        trusted: rows of the server's own, for strategies that compare updates with them; left out, it has none.
        secure_aggregation: the arithmetic of secure sums, simulated; left out, sums are of floating-point numbers. It
            hides nothing from the server.
        privacy: what clients are promised, and the clipping, noise and caps that it takes; left out, nothing.

    >>> Experiment(seed=-1)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: seed is -1; it must be zero or a positive whole number.
    """

    name: str = "experiment"
    seed: int = 0
    num_clients: int | None = None
    data: DataSource = PaperRegression()
    split: Split = IID()
    holdout: Holdout | None = None
    dtype: Dtype = "float64"
    model: ProblemDescription = LinearModel()
    init: Initialisation = "zeros"
    strategy: Strategy = AFL()
    delays: DelayDescription = Delays()
    budget: Budget = Budget(rounds=100)
    stopping: Stopping | None = None
    churn: tuple[Churn, ...] = ()
    evaluation: Evaluation = Evaluation()
    divergence_norm: float = 1e9
    attack: Liars | UnsetType = UNSET
    trusted: TrustedData | UnsetType = UNSET
    secure_aggregation: SecureAggregation | UnsetType = UNSET
    privacy: Privacy | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.num_clients is not None and self.num_clients < 1:
            raise ConfigError(f"num_clients is {self.num_clients}; an experiment needs at least 1 client.")
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}; it must be zero or a positive whole number.")
        if self.budget == Budget():
            raise ConfigError("budget is empty, so the run would never end; set rounds, updates or elapsed.")
        if not self.divergence_norm > 0:
            raise ConfigError(f"divergence_norm is {self.divergence_norm}; it must be positive.")
        if self.num_clients is not None or not self.data.names_clients:
            check_churn(self.churn, self.count_clients())
        if self.num_clients is not None or self.privacy is UNSET:
            self.run_strategy()  # refuses what does not go together

    def run_strategy(self, num_clients: int | None = None) -> Strategy:
        """The strategy as a run has it: with what else the experiment puts into its rule, its work, and around it.

        Secure sums come innermost, so that whatever is done to a merge is done to its sum. `num_clients`, which privacy
        depends on, saves counting those that the data name.
        """
        strategy = self.strategy
        if self.privacy is not UNSET:
            strategy = self.privacy.compose(strategy, self._private_setting(num_clients))
        if self.secure_aggregation is not UNSET:
            strategy = with_secure_sums(strategy, self.secure_aggregation)
        return strategy

    def privacy_claim(self, num_clients: int | None = None) -> Claim | None:
        """What a run promises every client; None if nothing."""
        if self.privacy is UNSET:
            return None
        return self.privacy.claim(self.strategy, self._private_setting(num_clients))

    @property
    def measures_clients(self) -> bool:
        """Whether models may be measured on clients' data: not in private runs, unless they say it is unprotected."""
        return self.privacy is UNSET or self.privacy.unprotected_evaluation

    def require_measurements(self, purpose: str) -> None:
        """Refuse to do something by measurements, in an experiment whose runs make none."""
        if not self.measures_clients:
            raise ConfigError(
                f"{purpose} goes by measurements on clients' data, and a private run makes none. Leave `privacy` out, "
                "or set privacy.unprotected_evaluation where the data are nobody's secret."
            )

    def _private_setting(self, num_clients: int | None) -> Setting:
        return Setting(
            num_clients=self.count_clients() if num_clients is None else num_clients,
            budget=self.budget,
            stops_by_measurement=self.stopping is not None and self.stopping.measures,
            measures_drift=self.evaluation.drift,
            shares_rows=self.trusted is not UNSET and draws_from_clients(self.trusted),
        )

    def prepare_data(self) -> PreparedData:
        """Generate or read the data: who has which rows to train on, and which were held out."""
        return self.data.prepare(self._data_request())

    def _data_request(self) -> DataRequest:
        several = getattr(self.model, "targets", "") == "classes"
        return DataRequest(
            self.split, self.num_clients, self.seed, self.dtype, self.holdout, self.model.labels, several
        )

    @property
    def makes_rows_late(self) -> bool:
        """Whether clients' rows are made when they train, so that no data are prepared."""
        return isinstance(self.data, MakesRowsLate)

    def clients(self) -> Clients:
        """The clients with the rows they train on."""
        return self.prepare_data().clients

    def problem(self, prepared: PreparedData | None = None) -> Problem:
        """What is to be learnt, with every client's data. `prepared` saves preparing the data again."""
        if prepared is None and isinstance(self.data, MakesRowsLate):
            return self.attacked(build_population(self.model, self.data.virtual_clients(self._data_request())))
        data = self.prepare_data() if prepared is None else prepared
        return self.attacked(self.model.build(data.clients, data.held_out))

    def attacked(self, problem: Problem) -> Problem:
        """The problem with the experiment's liars among its clients; itself, if nobody lies or it has them already."""
        return problem if self.attack is UNSET else with_liars(problem, self.attack, self.seed, self.init)

    def bind_delays(self, num_clients: int, given: DelayModel | None = None) -> DelayModel:
        """How long work takes: as the experiment says, or as `given`; liars may report later than that."""
        model = self.delays.bind(num_clients, self.seed) if given is None else given
        return model if self.attack is UNSET else hold_back(model, self.attack, num_clients, self.seed)

    def count_clients(self) -> int:
        """How many clients there are: as was said, or as the data say."""
        if self.num_clients is None and self.data.names_clients:
            return self.clients().num_clients
        return self.num_clients or DEFAULT_CLIENTS

    def measure_heterogeneity(self, clients: Clients | None = None) -> HeterogeneityReport:
        """How different the clients' data really are, and whether they have the skew that the split claims.

        Of clients that the data name nothing is claimed. `clients` saves preparing them again.
        """
        clients = self.clients() if clients is None else clients
        return measure_heterogeneity(clients, None if clients.names else self.split.claimed_skew, self.seed)

    def plan(self, threads: int, num_clients: int | None = None) -> Plan:
        """What an engine needs to run it; `num_clients` saves counting those that the data name."""
        return Plan(
            strategy=self.run_strategy(num_clients),
            seed=self.seed,
            budget=self.budget,
            init=self.init,
            churn=self.churn,
            evaluation=self.evaluation,
            measures=self.measures_clients,
            divergence_norm=self.divergence_norm,
            stopping=self.stopping,
            threads=threads,
            trusted=None if self.trusted is UNSET else self.trusted,
        )


# ---- the written form ----------------------------------------------------------------------------------------

MOST_LEVELS = 64
"""How deeply tables and lists may be nested in a written experiment, and how many parts a dotted key may have."""

LARGEST_WHOLE_NUMBER = 2**63 - 1
"""What TOML guarantees and what arrays, files and random keys can hold."""

_LEVELS_NEEDED = "An experiment has no more than ten levels; check for a missing bracket or quotation mark."
_KEY_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"""(?<![\w"'-]){_KEY_PART}(?:[ \t]*+\.[ \t]*+{_KEY_PART}){{{MOST_LEVELS}}}""")


def to_toml(experiment: Experiment) -> str:
    """The experiment as TOML.

    Args:
        experiment: any; parts of your own need a kind, and to be registered where the text is to be read.

    Returns:
        The text, from which `from_toml` makes an equal experiment.

    >>> from_toml(to_toml(Experiment(seed=3))).seed
    3
    """
    return plain_to_toml(to_plain(experiment))


def plain_to_toml(plain: dict[str, Any]) -> str:
    """An experiment as the header of a run holds it, as TOML; also one with parts that are not registered here."""
    return tomli_w.dumps(_without_none(plain))


def from_toml(text: str, source: str = "the TOML text") -> Experiment:
    """The experiment that a TOML text describes; keys left out have their defaults.

    Args:
        text: the TOML.
        source: what error messages call it.

    Returns:
        The experiment.

    Raises:
        ConfigError: it names the key that is wrong and, if it is misspelt, the nearest one.
    """
    return from_dict(parse_toml(text, source), source)


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """The plain values of a TOML text, which may come from anybody.

    Args:
        text: the TOML.
        source: what error messages call it.

    Returns:
        The values.

    Raises:
        ConfigError: it is not valid, or nested more deeply than any experiment is.
    """
    check_keys(text, source)
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ConfigError(f"{source} is nested more deeply than TOML can be read. {_LEVELS_NEEDED}") from error
    except ValueError as error:  # TOMLDecodeError is one; so is a number of thousands of digits
        raise ConfigError(f"{source} is not valid TOML: {error}.") from error


def check_keys(text: str, source: str) -> None:
    """Refuse a TOML text with a dotted key of very many parts: reading it would take minutes, as their square."""
    if _LONG_KEY.search(text):
        raise ConfigError(f"{source} has a key of more than {MOST_LEVELS} parts. {_LEVELS_NEEDED}")


def read_toml(path: Path | str) -> Experiment:
    """The experiment that a TOML file describes.

    Args:
        path: the file.

    Returns:
        The experiment.

    Raises:
        ConfigError: the file cannot be read, or what is in it is wrong.
    """
    file = Path(path)
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}. Give a TOML file or the name of a preset.") from error
    return from_toml(text, str(file))


def from_dict(plain: dict[str, Any], source: str = "the experiment") -> Experiment:
    """The experiment these plain values describe; every complaint names the key and, if misspelt, the nearest one."""
    _check_plain(plain, source)
    try:
        return from_plain(plain, Experiment)
    except ValidationError as error:
        raise ConfigError(f"{source}: {_explain(str(error), plain)}") from error


def changed(experiment: Experiment, settings: dict[str, Any]) -> Experiment:
    """The experiment with some dotted keys set anew: `changed(e, {"strategy.concurrency": 3})`."""
    plain = to_plain(experiment)
    # Kinds first: a new kind has other keys, so it clears its table, and must not clear what else is set here.
    for key, value in sorted(settings.items(), key=lambda item: item[0].split(".")[-1] != "kind"):
        *path, last = key.split(".")
        if len(path) >= MOST_LEVELS:
            raise ConfigError(f"The key {key[:40]}... has {len(path) + 1} parts. {_LEVELS_NEEDED}")
        table = plain
        for step in path:
            if not isinstance(table.get(step), dict):
                table[step] = {}
            table = table[step]
        if last == "kind" and table.get("kind") != value:
            table.clear()
        table[last] = value
    return from_dict(plain, "the changed experiment")


def differences(one: Experiment | dict[str, Any], other: Experiment | dict[str, Any]) -> list[str]:
    """Where two experiments describe different runs, as `key: this -> that` lines.

    Where a measurement may stop a run, when it is made is part of the run.
    """
    before, after = (_flat(_without_none(_complete(e))) for e in (one, other))
    measured = ("stopping.patience", "stopping.target")
    stops = any(
        key in measured or (key, value) == ("stopping.keep", "best")
        for flat in (before, after)
        for key, value in flat.items()
    )
    ignored = NOT_PART_OF_THE_RUN - {"evaluation"} if stops else NOT_PART_OF_THE_RUN
    keys = [k for k in {**before, **after} if k.split(".")[0] not in ignored]
    return [f"{k}: {before.get(k)!r} -> {after.get(k)!r}" for k in keys if before.get(k) != after.get(k)]


def _complete(experiment: Experiment | dict[str, Any]) -> dict[str, Any]:
    """Its plain values with every default, also those that are younger than the file they come from."""
    if isinstance(experiment, dict):
        try:
            return to_plain(from_dict(experiment))  # type: ignore[no-any-return]
        except ConfigError:  # with parts that are not registered here
            return experiment
    return to_plain(experiment)  # type: ignore[no-any-return]


def stored(plain: dict[str, Any], path: Path | None) -> Experiment:
    """The experiment a journal was written for."""
    try:
        return from_dict(plain)
    except ConfigError as error:
        raise JournalError(
            f"{path} was run with parts that are not shipped with AsyncFed ({error}). Pass the same experiment again, "
            "as `experiment=...` of af.resume or af.verify."
        ) from error


def _check_plain(plain: Any, source: str) -> None:
    """Refuse what no part of an experiment can be, before anybody descends into it or computes with it."""
    level: list[tuple[str, Any]] = [("", plain)]
    for _ in range(MOST_LEVELS):
        deeper: list[tuple[str, Any]] = []
        for path, value in level:
            if isinstance(value, dict):
                deeper += [(f"{path}.{key}", inner) for key, inner in value.items()]
            elif isinstance(value, list | tuple):
                deeper += [(f"{path}[]", inner) for inner in value]
            elif isinstance(value, int) and not -LARGEST_WHOLE_NUMBER <= value <= LARGEST_WHOLE_NUMBER:
                raise ConfigError(
                    f"{source}: {path[1:80]} is a whole number of {value.bit_length()} bits; at most 63 can be used. "
                    "Write a smaller one."
                )
        level = deeper
        if not level:
            return
    raise ConfigError(f"{source} is nested in more than {MOST_LEVELS} levels. {_LEVELS_NEEDED}")


def _without_none(plain: Any) -> Any:
    """TOML has no null: what is left out takes its default, which is what None stands for."""
    if isinstance(plain, dict):
        return {k: _without_none(v) for k, v in plain.items() if v is not None}
    return [_without_none(v) for v in plain] if isinstance(plain, list | tuple) else plain


def _flat(plain: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in plain.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def _explain(message: str, plain: dict[str, Any]) -> str:
    """msgspec's complaint with the whole path of what is wrong, and the nearest known word."""
    complaint, path = _split_path(message)
    unknown = re.fullmatch(r"Object contains unknown field `([^`]*)`", complaint)
    if unknown:
        where = f"[{path}] has" if path else "it has"
        return f"{where} no key `{unknown[1]}`. {did_you_mean(unknown[1], _known_keys(path, plain))}"
    kind = re.fullmatch(r"Invalid kind '(.*)'|Invalid value '(.*)'", complaint)
    if kind and (kind[1] is not None or path.endswith(".kind")):
        name, path = kind[1] if kind[1] is not None else kind[2], path.removesuffix(".kind")
        kinds = {tag for option in _options(path) if (tag := kind_of(option)) is not None}
        advice = "Parts of your own are known once they are registered: see `asyncfed.register`."
        return f'{path}.kind is "{name}", which does not exist. {did_you_mean(name, kinds)} {advice}'
    return f"{complaint} - at `{path}`" if path else complaint


def _split_path(message: str) -> tuple[str, str]:
    """The complaint and the dotted path it is about: a part inside another adds a path of its own, innermost first."""
    complaint, *paths = message.split(" - at `$")
    steps = [path.removesuffix("`").removeprefix(".") for path in reversed(paths)]
    return complaint, ".".join(step for step in steps if step)


def _known_keys(path: str, plain: dict[str, Any]) -> set[str]:
    table: Any = plain
    for step in filter(None, path.split(".")):
        table = table.get(step, {}) if isinstance(table, dict) else {}
    wanted = table.get("kind") if isinstance(table, dict) else None
    options = _options(path)
    chosen = [option for option in options if wanted is not None and kind_of(option) == wanted] or options
    return {name for option in chosen for name in option.__struct_fields__}


def _options(path: str) -> list[Any]:
    """The record types a dotted path of an experiment may hold."""
    options: list[Any] = [Experiment]
    for step in filter(None, re.sub(r"\[\.*\d*\]", "", path).split(".")):
        annotations = [get_type_hints(option).get(step) for option in options]
        options = [leaf for annotation in annotations for leaf in _records_in(annotation)]
    return options


def _records_in(annotation: Any) -> list[Any]:
    members = part_members(annotation)
    if members is not None:
        return members
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return [annotation]
    return [leaf for part in get_args(annotation) for leaf in _records_in(part)]


__all__ = [
    "Experiment",
    "changed",
    "differences",
    "from_dict",
    "from_toml",
    "read_toml",
    "replace",
    "stored",
    "to_toml",
]
