"""`af.problems.torch`: the door to PyTorch problems, which stays shut, and says why, where torch is not installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from asyncfed.core.errors import ConfigError
from asyncfed.problems.protocol import NamedData, PackedData
from asyncfed.problems.pytorch.tensor_clients import Pairs

if TYPE_CHECKING:
    from asyncfed.problems.pytorch.problem import TorchProblem

NEEDED = ("torch", "safetensors")


def torch(
    model_fn: Callable[[], Any],
    loss_fn: str | Callable[..., Any],
    clients: NamedData | Pairs,
    *,
    metrics: Sequence[str] | Mapping[str, Callable[..., Any]] | None = None,
    held_out: Mapping[str, PackedData | Pairs] | None = None,
    test: tuple[Any, Any] | None = None,
    device: str = "cpu",
    together: bool = True,
) -> TorchProblem:
    """A problem whose model is a PyTorch module.

    `model_fn()` makes the module (any `nn.Module`); its draws follow the experiment's seed. `loss_fn` is a name
    ("cross_entropy", "mse", "l1", "huber", "bce", "nll"), a loss of torch, or a function of (outputs, targets) that
    gives the mean over the rows, or one number per row. `clients` are `af.data.Clients`, `TensorClients`, or a list of
    (x, y) pairs. `metrics` are names ("accuracy") or functions that give one number per row.

    `held_out` are rows of the clients to measure on and never to train on, by the name of the part ("validation",
    "test"), given like `clients`; a client may have none. `test` is an (x, y) in place of held_out["test"] where test
    rows belong to no client. `together=False` trains clients one by one where several could be trained at once.
    """
    try:
        from asyncfed.problems.pytorch.problem import TorchProblem
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in NEEDED:
            raise
        raise ConfigError(
            f"PyTorch problems need {error.name}, which is not installed. Install it with `pip install "
            "'asyncfed[torch]'`."
        ) from error
    return TorchProblem(model_fn, loss_fn, clients, metrics, held_out, test, device, together)
