"""What --help lists with a line each: problems, delays and the usual strategies by name.

Written out, for help is printed without importing what makes them; a test compares it with `asyncfed list`.
"""

from __future__ import annotations

NAMES = {
    "strategies": {
        "afl": "AFL, mean of every client's latest model (Algorithm 1)",
        "afl_mixing": "AFL, mixing by one half (the published server rule, with clients that download)",
        "sync": "synchronous FL, equal weights, constant rate (the paper's rival)",
        "fedavg": "FedAvg, weights by samples",
        "fedasync": "FedAsync, mixing 0.6 with a polynomial discount",
        "fedbuff": "FedBuff, a buffer as large as the number in flight, at most 10",
        "scaffold_async": "FedAsync with the corrections of SCAFFOLD: clients that differ do not pull the model apart",
        "ringmaster": "Ringmaster ASGD: changes less than J versions old; older work is begun anew",
        "fedcompass": "FedCompass: everybody at work, with as many local steps as make groups arrive together",
    },
    "problems": {
        "least_squares": "a number: linear regression, half the squared error",
        "ridge": "a number: linear regression, half the squared error, with an l2 penalty",
        "logistic": "two classes: logistic regression, with an l2 penalty",
        "softmax": "several classes: multi-class logistic regression, with an l2 penalty",
        "svm": "two classes: linear support vector machine, hinge loss, with an l2 penalty",
        "squared_hinge": "two classes: linear support vector machine, squared hinge loss, with an l2 penalty",
    },
    "delays": {
        "none": "every ticket takes exactly 1 s",
        "laptop": "like the published scripts' laptop: log-normal, milliseconds to half a second",
        "stragglers": "1 s each, but a fifth of the clients takes 10 s",
        "heavy_tailed": "Pareto with shape 1.1: a few tickets take very long",
        "cluster": "a shared cluster: lasting factors, correlated noise, stragglers that appear mid-run",
        "hospital": "seven hospitals, half an hour at the largest and slowest, a VPN that drops",
        "phones": "phones that charge at night in twelve time zones, three classes, slow links",
    },
}


def help_text() -> str:
    """The names with their lines. A paragraph that begins with a backspace is not wrapped anew by click."""
    paragraphs = []
    for section, names in NAMES.items():
        width = max(map(len, names))
        lines = [f"  {name:{width}}  {_shorten(words, 74 - width)}" for name, words in names.items()]
        if section == "strategies":
            lines.append("  and many more: asyncfed list strategies")
        paragraphs.append("\b\n" + "\n".join([f"{section.capitalize()}:", *lines]))
    return "\n\n".join(paragraphs)


def _shorten(words: str, room: int) -> str:
    """The words, or as many of them as there is room for.

    >>> _shorten("a mean of all models", 9)
    'a mean …'
    """
    if len(words) <= room:
        return words
    return words[: room - 1].rpartition(" ")[0] + " …"
