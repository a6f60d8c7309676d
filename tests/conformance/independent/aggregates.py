"""Robust aggregates of a few vectors, coordinate by coordinate or vector by vector, as their papers write them."""

import numpy as np


def average(vectors, weights, settings):
    """sum_i w_i v_i."""
    return np.average(vectors, axis=0, weights=weights)


def median(vectors, weights, settings):
    """The first value whose cumulative weight exceeds 1/2; the mean of two where it is 1/2 in between."""
    made = []
    for column in vectors.T:
        order = np.argsort(column, kind="stable")
        cumulative = np.cumsum(weights[order])
        first = next(i for i, c in enumerate(cumulative) if c > 0.5 - 1e-12)
        after = next(i for i, c in enumerate(cumulative) if c > 0.5 + 1e-12)
        made.append((column[order[first]] + column[order[after]]) / 2)
    return np.array(made)


def trimmed_mean(vectors, weights, settings):
    """Without the f smallest and the f largest of each coordinate."""
    f, made = settings["liars"], []
    for column in vectors.T:
        rest = sorted(range(len(column)), key=lambda i: (column[i], i))[f : len(column) - f]
        made.append(np.average(column[rest], weights=weights[rest]))
    return np.array(made)


def geometric_median(vectors, weights, settings):
    """argmin_z sum_i w_i |v_i - z|, by so many iterations of Weiszfeld from the median of the coordinates."""
    z = median(vectors, weights, {})
    distances = np.array([np.linalg.norm(v - z) for v in vectors])
    scale = median(distances[:, None], weights, {})[0]
    for _ in range(settings["iterations"] if scale > 0 else 0):
        pull = weights / np.maximum([np.linalg.norm(v - z) for v in vectors], settings["smoothing"] * scale)
        z = (pull @ vectors) / pull.sum()
    return z


def krum_scores(vectors, f):
    """The squared distances to the n - f - 2 nearest others, added."""
    scores = []
    for i, v in enumerate(vectors):
        others = sorted(float(((v - u) ** 2).sum()) for j, u in enumerate(vectors) if j != i)
        scores.append(sum(others[: len(vectors) - f - 2]))
    return np.array(scores)


def krum(vectors, weights, settings):
    """The vector with the least score."""
    return vectors[np.argmin(krum_scores(vectors, settings["liars"]))]


def multi_krum(vectors, weights, settings):
    """The mean of the m with the least scores."""
    kept = np.argsort(krum_scores(vectors, settings["liars"]), kind="stable")[: settings["keep"]]
    return np.average(vectors[kept], axis=0, weights=weights[kept])


def centered_clipping(vectors, weights, settings):
    """v += sum_i w_i clip(v_i - v, r), so many times, from 0."""
    v = np.zeros(vectors.shape[1])
    for _ in range(settings["iterations"]):
        gaps = [(weight, u - v) for weight, u in zip(weights, vectors, strict=True)]
        v = v + sum(w * gap * min(1.0, settings["radius"] / max(np.linalg.norm(gap), 1e-300)) for w, gap in gaps)
    return v


def ctma(vectors, weights, settings):
    """The mean of the n - f nearest to the median, ties by place; by weight, of the nearest 1 - lambda."""
    anchor = median(vectors, weights, {})
    nearest = sorted(range(len(vectors)), key=lambda i: (float(((vectors[i] - anchor) ** 2).sum()), i))
    if "share" not in settings:
        kept = nearest[: len(nearest) - settings["liars"]]
        return np.average(vectors[kept], axis=0, weights=weights[kept])
    total, left = np.zeros(vectors.shape[1]), 1 - settings["share"]
    for i in nearest:
        total, left = total + min(left, weights[i]) * vectors[i], max(0.0, left - weights[i])
    return total / (1 - settings["share"])


def compared(x, latest, arrivals, factor):
    """Each client's latest change T_c, median m, limit = max(factor * median |T_c - m|, median |T_c|); beyond it, m.

    `latest` has a change of every client, and is changed; `arrivals` are (client, weight, change) of one merge, all of
    which are in the table before the first is compared. The answer: the model, and how far the filtered ones were.
    """
    latest |= {client: change for client, _, change in arrivals if np.all(np.isfinite(change))}
    table = np.array(list(latest.values()))
    m = np.median(table, axis=0)
    far = sorted(float(np.sqrt(((row - m) ** 2).sum())) for row in table)
    long = sorted(float(np.sqrt((row**2).sum())) for row in table)
    middle = len(table) // 2
    usual, length = ((v[middle] + v[-1 - middle]) / 2 for v in (far, long))
    limit, filtered = max(factor * usual, length), {}
    for place, (_, weight, change) in enumerate(arrivals):
        distance = float(np.sqrt(((change - m) ** 2).sum()))
        if not distance <= limit:
            filtered[place], change = distance / limit, m
        x = x + weight * change
    return x, filtered
