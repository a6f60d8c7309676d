from asyncfed.data.heterogeneity_report import HeterogeneityReport, SkewTest


def skew_tests(**p_values):
    return tuple(
        SkewTest(aspect, "distance", 0.31, 0.04, p_values.get(aspect, 0.5))
        for aspect in ("sizes", "target", "features", "concept")
    )


def verdict_on(claimed, **p_values):
    report = HeterogeneityReport(10, 100, 10, 10.0, 10, 0.0, skew_tests(**p_values), claimed)
    return report.matches_claim, report.verdict


def test_verdicts():
    seen = "(distance 0.31 against 0.04 expected under IID, p = 0.002)"
    assert verdict_on((), target=0.02) == (True, "IID, as claimed")
    assert verdict_on((), target=0.002) == (False, f"claimed to be IID, but non-IID in target {seen}")
    assert verdict_on(None) == (True, "indistinguishable from IID")
    assert verdict_on(None, sizes=0.002) == (True, f"non-IID in sizes {seen}")
    assert verdict_on(("target",), target=0.002, sizes=1e-9) == (
        True,
        f"non-IID in target {seen}; differs also in sizes",
    )
    wanted, words = verdict_on(("target", "features"), target=0.002, features=0.61)
    assert not wanted
    assert words.startswith(f"non-IID in target {seen}; claimed to be non-IID in features; indistinguishable from IID")
    assert "p = 0.61" in words
