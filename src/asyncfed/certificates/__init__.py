"""Certificates: what is guaranteed for an experiment, and what its runs did, side by side."""

from asyncfed.certificates.certificate import (
    Certificate,
    certificate_of,
    certify,
    is_paper_regression,
    with_theory_rate,
)

__all__ = ["Certificate", "certificate_of", "certify", "is_paper_regression", "with_theory_rate"]
