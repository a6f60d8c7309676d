"""From how often a test is wrong to how much at least is lost: lower bounds on mu and epsilon with a confidence.

A test decides from what was released whether a client took part. Let it be wrong with probability alpha if the client
did not, and beta if it did. Under mu-Gaussian differential privacy no test can have

    Phi^-1(1 - alpha) - Phi^-1(beta) > mu

and under (epsilon, delta) none can have alpha < (1 - delta - beta) / e^epsilon. So upper bounds on alpha and beta, from
runs that had no part in choosing the test, are a lower bound on mu and on epsilon.

Nasr et al., "Tight Auditing of Differentially Private Machine Learning", USENIX Security 2023; Clopper & Pearson,
Biometrika 1934.
"""

from __future__ import annotations

from math import inf, log

from asyncfed.core.errors import ConfigError


def error_rate_bound(errors: int, trials: int, confidence: float) -> float:
    """The Clopper-Pearson upper bound on the probability of an error.

    Args:
        errors: how many there were, 0 to `trials`.
        trials: how many independent trials, 1 or more.
        confidence: the probability with which the bound holds, above 0 and below 1.

    >>> round(error_rate_bound(0, 100, 0.95), 4)
    0.0295
    """
    from scipy.special import betaincinv  # loads scipy

    if not 0 < confidence < 1:
        raise ConfigError(f"confidence is {confidence}; it must be above 0 and below 1, such as 0.95.")
    if trials < 1 or not 0 <= errors <= trials:
        raise ConfigError(f"{errors} errors in {trials} trials cannot be; there must be at least 1 trial.")
    return 1.0 if errors == trials else float(betaincinv(errors + 1, trials - errors, confidence))


def shift_bound(alpha: float, beta: float) -> float:
    """The smallest mu for which a test may have these error rates; 0 if they are no better than guessing.

    Args:
        alpha: probability of a false alarm, 0 to 1.
        beta: probability of a miss, 0 to 1.

    >>> round(shift_bound(0.16, 0.16), 2)
    1.99
    """
    from scipy.special import ndtri  # loads scipy

    shift = float(ndtri(1.0 - alpha) - ndtri(beta))
    return max(0.0, shift) if shift < inf else inf


def trade_off(alpha: float, mu: float) -> float:
    """The fewest misses that a test with this rate of false alarms can have under a shift of mu.

        G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu)

    >>> round(trade_off(0.5, 1.0), 4)
    0.1587
    """
    from scipy.special import ndtr, ndtri  # loads scipy

    return float(ndtr(ndtri(1.0 - alpha) - mu))


def epsilon_bound(alpha: float, beta: float, delta: float) -> float:
    """The smallest epsilon for which a test may have these error rates at this delta, whatever the noise is.

    >>> round(epsilon_bound(0.01, 0.5, 1e-5), 3)
    3.912
    """
    found = 0.0
    for one, other in ((alpha, beta), (beta, alpha)):
        if 1.0 - delta - other > 0:
            found = max(found, inf if one == 0 else log((1.0 - delta - other) / one))
    return found
