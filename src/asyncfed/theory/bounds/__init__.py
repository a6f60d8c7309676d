"""The paper's bounds as printed, the corrected ones, and those that hold with staleness: pure functions of numbers.

All take keywords, which `help` explains one by one; Theorem 1, R*, R and R-conv, P and M take one frozen setting of
their family (`TheoremSetting`, `StaleSetting`, `PathSetting`). Horizons may be arrays: a whole curve in one call.
`last_index` T means the average of x_0 … x_T, in functions *_last the model x_{T+1}; `num_updates` t means x_t.

Which function is which statement of the paper ("gap": F(x̄) − F* of an averaged model; "squared": a squared norm):

Inequality 5       bregman_lower_bound                             D_f(x, y) from below
Lemma 1, eq. 9     martingale_sum_bound                            squared
Lemma 2, eq. 10    perturbed_convexity                             both sides of the inequality
Lemma 3, eq. 11    variance_with_replacement                       squared
         eq. 12    variance_without_replacement                    squared; ν²: population_variance
Lemma 4, eq. 17    participation_sum_bound                         squared, ½ J² I³ ν² ≥ Γ
         eq. 20    participation_sum                               squared, Γ
         proof     cross_term                                      squared
Appendix           appendix_line_two_as_printed,                   squared, Γ for ν² = 1
                   appendix_line_three_as_printed; corrected: appendix_terms
λ ≤ 1/(6 L J I)    largest_paper_learning_rate                     a learning rate; step_excess, met_from_round
                   for a server that averages: largest_averaging_learning_rate
Lemma 5, eq. 21    round_recursion                                 squared, E‖x_{j+1} − x*‖²
Lemma 6, eq. 28    client_drift_bound                              squared, E_j; false with staleness
Lemma 7            tuning_as_printed, tuning_weights_as_printed    average of g_t; false
                   corrected: tuning_constant, tuning_any_rates, tuning_weights
                   its rates γ_t: decayed_rates; how they forget the start: decayed_transient_bound
Theorem 1          theorem_as_printed, theorem_weights_as_printed  gap; false
         eq. 40    theorem_of_proof                                gap; false for short runs
                   corrected: theorem_corrected, theorem_exponential, theorem_weights
                   how many rounds eq. 40 needs: rounds_needed, enough_rounds; its floor: theorem_noise

Not in the paper, true with staleness τ:

R*                 r_star_averaged / r_star_last                   gap / squared, E‖x_{T+1} − x*‖²
R                  r_averaged / r_last                             gap / squared
R-conv             r_conv_averaged / r_conv_last                   gap / squared
                   their largest rate: largest_stale_learning_rate; N1, N2: stale_noise
P                  p_bound, p_constants                            ‖x_t − x*‖, not squared, every run
M                  m_bound, m_constants                            ‖x_t − x*‖, not squared, every run
                   from s, K, b: delta_path_bound, mixing_path_bound; steps that change: *_path_recursion
hinge              hinge_bound (= subgradient_bound)               gap of the plain mean
delay limit        delay_stability_limit, is_stable                a step; exact for quadratics
"""

from asyncfed.theory.bounds.convexity import bregman_lower_bound, martingale_sum_bound, perturbed_convexity
from asyncfed.theory.bounds.delay_stability import delay_stability_limit, is_stable
from asyncfed.theory.bounds.delayed_sequence import delayed_sequence_bound, delayed_sequence_rate
from asyncfed.theory.bounds.hinge import hinge_bound, subgradient_bound
from asyncfed.theory.bounds.literature import LITERATURE, Result
from asyncfed.theory.bounds.local_maps import LocalMap, fixed_point_gap, largest_path_learning_rate, local_map
from asyncfed.theory.bounds.path_bounds import MConstants, PConstants, m_bound, m_constants, p_bound, p_constants
from asyncfed.theory.bounds.path_deltas import (
    DeltaPath,
    delta_condition,
    delta_path,
    delta_path_bound,
    delta_path_recursion,
    largest_delta_learning_rate,
)
from asyncfed.theory.bounds.path_mixing import MixingPath, mixing_path, mixing_path_bound, mixing_path_recursion
from asyncfed.theory.bounds.recursion import client_drift_bound, round_recursion
from asyncfed.theory.bounds.sampling import (
    appendix_line_three_as_printed,
    appendix_line_two_as_printed,
    appendix_terms,
    cross_term,
    participation_sum,
    participation_sum_bound,
    population_variance,
    variance_with_replacement,
    variance_without_replacement,
)
from asyncfed.theory.bounds.settings import PathSetting, StaleSetting, TheoremSetting
from asyncfed.theory.bounds.stale_rounds import (
    r_averaged,
    r_conv_averaged,
    r_conv_last,
    r_last,
    r_star_averaged,
    r_star_last,
)
from asyncfed.theory.bounds.stale_steps import (
    StaleNoise,
    delay_factor,
    effective_step,
    largest_effective_step,
    largest_stale_learning_rate,
    stale_noise,
)
from asyncfed.theory.bounds.step_condition import (
    largest_averaging_learning_rate,
    largest_paper_learning_rate,
    met_from_round,
    step_excess,
)
from asyncfed.theory.bounds.theorem import (
    enough_rounds,
    rounds_needed,
    theorem_as_printed,
    theorem_corrected,
    theorem_exponential,
    theorem_noise,
    theorem_of_proof,
    theorem_weights,
    theorem_weights_as_printed,
)
from asyncfed.theory.bounds.transient import growing_weights
from asyncfed.theory.bounds.tuning import (
    decayed_rates,
    decayed_transient_bound,
    tuning_any_rates,
    tuning_as_printed,
    tuning_constant,
    tuning_weights,
    tuning_weights_as_printed,
    weighted_average,
)

__all__ = [
    "LITERATURE",
    "DeltaPath",
    "LocalMap",
    "MConstants",
    "MixingPath",
    "PConstants",
    "PathSetting",
    "Result",
    "StaleNoise",
    "StaleSetting",
    "TheoremSetting",
    "appendix_line_three_as_printed",
    "appendix_line_two_as_printed",
    "appendix_terms",
    "bregman_lower_bound",
    "client_drift_bound",
    "cross_term",
    "decayed_rates",
    "decayed_transient_bound",
    "delay_factor",
    "delay_stability_limit",
    "delayed_sequence_bound",
    "delayed_sequence_rate",
    "delta_condition",
    "delta_path",
    "delta_path_bound",
    "delta_path_recursion",
    "effective_step",
    "enough_rounds",
    "fixed_point_gap",
    "growing_weights",
    "hinge_bound",
    "is_stable",
    "largest_averaging_learning_rate",
    "largest_delta_learning_rate",
    "largest_effective_step",
    "largest_paper_learning_rate",
    "largest_path_learning_rate",
    "largest_stale_learning_rate",
    "local_map",
    "m_bound",
    "m_constants",
    "martingale_sum_bound",
    "met_from_round",
    "mixing_path",
    "mixing_path_bound",
    "mixing_path_recursion",
    "p_bound",
    "p_constants",
    "participation_sum",
    "participation_sum_bound",
    "perturbed_convexity",
    "population_variance",
    "r_averaged",
    "r_conv_averaged",
    "r_conv_last",
    "r_last",
    "r_star_averaged",
    "r_star_last",
    "round_recursion",
    "rounds_needed",
    "stale_noise",
    "step_excess",
    "subgradient_bound",
    "theorem_as_printed",
    "theorem_corrected",
    "theorem_exponential",
    "theorem_noise",
    "theorem_of_proof",
    "theorem_weights",
    "theorem_weights_as_printed",
    "tuning_any_rates",
    "tuning_as_printed",
    "tuning_constant",
    "tuning_weights",
    "tuning_weights_as_printed",
    "variance_with_replacement",
    "variance_without_replacement",
    "weighted_average",
]
