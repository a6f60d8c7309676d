"""`af.problems.torch_problem`: it imports torch when it is called, and says what to install if torch is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from asyncfed.core.errors import ConfigError
from asyncfed.problems.protocol import NamedData, PackedData
from asyncfed.problems.pytorch.tensor_clients import Pairs
from asyncfed.problems.sparse_data import refuse_sparse

if TYPE_CHECKING:
    from asyncfed.problems.pytorch.torch_problem import TorchProblem

NEEDED = ("torch", "safetensors")


def torch_problem(
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
    """A problem whose model is a PyTorch module; needs the extra `torch`. `af.problems.torch` is the same function.

    F(p) = (1/C) Σ_c (1/n_c) Σ_{i in c} loss(module_p(x_i), y_i)

    Args:
        model_fn: a function without arguments that makes the module (any `nn.Module`, all float32 or all float64); its
            draws follow the experiment's seed.
        loss_fn: "cross_entropy", "mse", "l1", "huber", "bce" (with logits) or "nll"; a loss of torch; or a function of
            (outputs, targets) that gives the mean over the rows, or one number per row.
        clients: the rows to train on: `af.data.Clients`, `TensorClients`, or a list of (x, y) pairs, one a client.
        metrics: names ("accuracy", which classes have anyway), or functions by name that give one number per row.
        held_out: rows of the clients to measure on and never to train on, by the name of the part ("validation",
            "test"), given like `clients`; a client may have none.
        test: an (x, y) in place of `held_out["test"]` where test rows belong to no client.
        device: "cpu" or "cuda".
        together: False trains in torch, client by client, what the compiled kernel could train.

    Returns:
        The problem, for `af.run(experiment, problem=...)`.

    Raises:
        ConfigError: torch or safetensors is not installed, or an argument does not fit the others.
    """
    refuse_sparse(getattr(clients, "x", None), "A PyTorch module")
    try:
        from asyncfed.problems.pytorch.torch_problem import TorchProblem
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in NEEDED:
            raise
        raise ConfigError(
            f"PyTorch problems need {error.name}, which is not installed. Install it with `pip install "
            "'asyncfed[torch]'`."
        ) from error
    return TorchProblem(model_fn, loss_fn, clients, metrics, held_out, test, device, together)
