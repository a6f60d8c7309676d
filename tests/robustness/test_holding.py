"""30 % of the clients lie, a fifth of all is ten times slower, 5 seeds: who holds against which attack."""

import pytest

from asyncfed.robustness.attacks import ATTACKS
from asyncfed.robustness.findings import findings
from asyncfed.robustness.study import plan_study, run_study
from asyncfed.robustness.summary import summarise

pytestmark = pytest.mark.slow

SOME = ["ctma", "momentum_ctma", "centered_clipping", "zeno"]
"""Enough of the defences to show that one of each kind holds."""

HARMFUL = {
    "regression": {"sign_flip", "sign_flip_10", "label_flip", "inner_product", "replay"},
    "svm": {"sign_flip", "sign_flip_10", "label_flip", "inner_product"},
    "digits": {"sign_flip", "sign_flip_10", "label_flip", "constant"},
}
"""Attacks under which undefended runs must be seen to fail; others may be harmless here."""

ONLY_WITH_TRUST = {("digits", "inner_product")}
"""Where no defence without trusted data holds: lies near zero look like the centre of updates that differ much."""


@pytest.mark.parametrize("problem", HARMFUL)
def test_a_defence_of_each_kind_holds_where_undefended_runs_fail(problem, tmp_path):
    plan = plan_study([problem], None, SOME, [0.3], ["iid"], ["stragglers"], seeds=5)
    found = {one.attack: one for one in findings(summarise(run_study(plan, tmp_path, 2)))}
    assert set(found) == set(ATTACKS)
    for attack, one in found.items():
        assert one.hurts or attack not in HARMFUL[problem], attack
        assert one.without_trust or not one.hurts or (problem, attack) in ONLY_WITH_TRUST, one.sentence
        assert one.with_trust, one.sentence
