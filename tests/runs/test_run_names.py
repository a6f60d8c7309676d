from asyncfed.core.record import replace
from asyncfed.experiment import Experiment
from asyncfed.runs.run_names import code_digest, run_key


def test_a_run_is_named_by_its_experiment_and_the_code():
    experiment = Experiment()
    keys = {run_key("code", experiment), run_key("other", experiment), run_key("code", replace(experiment, seed=2))}
    assert len(keys) == 3
    assert run_key("code", experiment) in keys


def test_the_code_is_named_by_its_purpose_and_its_parts():
    digests = {code_digest("one"), code_digest("two"), code_digest("one", ("arena/cells.py",))}
    assert len(digests) == 3
    assert code_digest("one") in digests
