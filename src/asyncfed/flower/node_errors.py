"""What the server may know of an error that a node reports."""

from __future__ import annotations

import re

EXCEPTION_IN_REASON = re.compile(r"<class '(?:\w+\.)*(?P<kind>\w{1,64})'>:<'(?:(?P<cause>[A-Za-z_]\w{0,63})'>$)?")
"""How Flower writes an exception of a node's app: its class, then its text."""


def describe_error(code: int, reason: str | None) -> str:
    """An error that a node reports, for log and journal: its code and the class of the exception, never its text.

    The text of an exception may hold paths of the node's machine and cells of its data.

    >>> describe_error(2, "<class 'ValueError'>:<'row 7 of /home/ann/patients.csv holds 61.5'>")
    'its node reports error 2: ValueError'
    >>> describe_error(2, "<class 'asyncfed.flower.node_app.NodeError'>:<'KeyError'>")
    'its node reports error 2: KeyError'
    >>> describe_error(8, "ClientApp stopped responding.")
    'its node reports error 8'
    """
    found = EXCEPTION_IN_REASON.match(reason or "")
    if found is None:
        return f"its node reports error {code}"
    own = found["kind"] == "NodeError" and found["cause"]  # the node has replaced the text by the name of the class
    return f"its node reports error {code}: {own or found['kind']}"
