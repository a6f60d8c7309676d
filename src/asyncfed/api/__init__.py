"""What users call: `Run`, and the functions that make, read and judge runs."""

from asyncfed.api.finished_run import Run, TableName
from asyncfed.api.functions import advise, certify, load, resume, run, run_live, verify, what_if
from asyncfed.registry import register

__all__ = [
    "Run",
    "TableName",
    "advise",
    "certify",
    "load",
    "register",
    "resume",
    "run",
    "run_live",
    "verify",
    "what_if",
]
