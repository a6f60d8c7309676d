"""Local mini-batch SGD on a linear model with sparse rows (CSR): a step costs what its batch has non-zeros.

The step is that of `kernels/sgd.py`, with the same losses, shuffle, decay, patience and number of steps. In a dense
kernel each step writes all weights. Here only those in columns of the batch are written; the penalty, the proximal term
and the correction, which move all, are kept aside. With rate η and g the gradient of the batch, the step is

    w ← a w + η q − η g        a = 1 − η (l2 + prox)        q_j = prox · start_j − correction_j

so that all weights are w_j = A v_j + B q_j, of which v_j changes in columns of the batch only:

- A ← a A and B ← a B + η, two numbers a step, in double precision whatever the data's;
- v_j ← v_j − (η / size / A) · slope_i · z_ij for each non-zero, row after row.

Without penalty, proximal term and correction A stays 1 and B is not used. When |A| leaves [2⁻³², 2³²], also by a = 0,
the weights are written out as w, and A, B begin at 1, 0 again: with η (l2 + prox) = 0.001, once in 22,000 steps. The
bias is in every row and is stepped as in the dense kernel.

**The order of sums** is that of the readable twin (`kernels/sparse_reference.py`):

- a product of a row with weights goes in four lanes: a_l takes non-zeros l, l + 4, …, a_l ← fma(z_j, v_j, a_l), and is
  (a_0 + a_1) + (a_2 + a_3);
- a margin is A · (z·v), then + B · (z·q) if there is a q (z·q is found once a row), then + bias;
- v_j ← fma(−c_i, z_ij, v_j), c_i = (η / size / A) · slope_i, row after row; rows of slope 0 are left out;
- all else is rounded operation by operation, as it is written.

It agrees with the dense kernel up to rounding, not to the bit. What costs d, once in a training: reading the start, and
writing the result. `path_moments` needs all weights before each step, and costs d a step.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.kernels.losses import LOSS_CODES
from asyncfed.kernels.packed_training import PackedTraining
from asyncfed.kernels.sparse_loops import train_and_follow_range
from asyncfed.kernels.sparse_rows import sparse_rows

Array = NDArray[Any]


class SparseSgd(PackedTraining):
    """SGD on a linear model with sparse rows: see the head of this file, and `PackedTraining` for the calls.

    `x` (N, d) is a SciPy CSR array in canonical form.
    """

    full_loop = train_and_follow_range

    def __init__(
        self,
        x: Any,
        y: Array,
        offsets: Array,
        loss_code: int,
        l2: float,
        penalize_bias: bool,
        fit_bias: bool,
        hinge_width: float = 1.0,
    ) -> None:
        if loss_code not in LOSS_CODES.values():
            raise ConfigError(f"loss_code is {loss_code}; the codes of the losses are {LOSS_CODES}.")
        model = (loss_code, float(l2), bool(penalize_bias), bool(fit_bias), float(hinge_width))
        super().__init__(sparse_rows(x, y, offsets), model, 1, fit_bias)
