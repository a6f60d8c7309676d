from asyncfed.data.heterogeneity_verdict import HeterogeneityReport, Lens


def lenses(**p_values):
    return tuple(
        Lens(respect, "distance", 0.31, 0.04, p_values.get(respect, 0.5))
        for respect in ("sizes", "target", "features", "concept")
    )


def verdict_on(asks, **p_values):
    report = HeterogeneityReport(10, 100, 10, 10.0, 10, 0.0, lenses(**p_values), asks)
    return report.is_what_was_asked, report.verdict


def test_verdicts():
    seen = "(distance 0.31 against 0.04 expected under IID, p = 0.002)"
    assert verdict_on((), target=0.02) == (True, "IID, as asked")
    assert verdict_on((), target=0.002) == (False, f"asked to be IID, but non-IID in target {seen}")
    assert verdict_on(None) == (True, "indistinguishable from IID")
    assert verdict_on(None, sizes=0.002) == (True, f"non-IID in sizes {seen}")
    assert verdict_on(("target",), target=0.002, sizes=1e-9) == (
        True,
        f"non-IID in target {seen}; differs also in sizes",
    )
    wanted, words = verdict_on(("target", "features"), target=0.002, features=0.61)
    assert not wanted
    assert words.startswith(f"non-IID in target {seen}; asked to be non-IID in features; indistinguishable from IID")
    assert "p = 0.61" in words
