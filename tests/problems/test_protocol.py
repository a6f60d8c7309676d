"""What the parts of a problem's protocol promise: jobs as one value, descriptions by kind, scores of clients."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, from_plain
from asyncfed.core.types import Work
from asyncfed.problems.protocol import Jobs, ProblemDescription, as_scoring_problem
from asyncfed.registry import kinds, register


@register("problem")
class Doubled(Config, tag_field="kind", tag="doubled_for_tests"):
    """Squared errors, counted `times` times."""

    times: float = 2.0

    @property
    def labels(self):
        return False

    def build(self, clients, held_out=None):
        return af.problems.Linear(clients, "mse", held_out=held_out)


class Holder(Config):
    model: ProblemDescription = af.problems.LinearModel()


def test_a_part_of_jobs_is_those_jobs():
    work = Work()
    jobs = Jobs(np.arange(6.0).reshape(3, 2), [4, 5, 6], [work] * 3, [7, 8, 9], overwrite=True)
    part = jobs.part(1, 3)
    assert part.starts.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert (part.clients, part.works, part.keys, part.overwrite) == ([5, 6], [work] * 2, [8, 9], True)


def test_a_table_without_a_kind_is_a_linear_model_and_others_are_found_by_kind():
    assert from_plain({"model": {"loss": "hinge"}}, Holder).model == af.problems.LinearModel(loss="hinge")
    assert from_plain({"model": {"kind": "doubled_for_tests", "times": 3.0}}, Holder).model == Doubled(times=3.0)
    assert kinds("problem")["doubled_for_tests"] is Doubled
    assert isinstance(Doubled(), ProblemDescription)
    assert isinstance(af.problems.LinearModel(), ProblemDescription)


def test_a_problem_of_ones_own_is_built_and_trained(small):
    problem = Doubled().build(small().clients())
    assert af.run(small(), problem=problem).verdict == "finished"


def test_one_that_scores_no_clients_is_refused(small):
    class Silent(af.problems.Linear):
        client_scores = None

    problem = small().problem()
    assert as_scoring_problem(problem) is problem
    with pytest.raises(ConfigError, match="Silent does not measure a model on single clients"):
        as_scoring_problem(Silent(small().clients()))


def test_the_torch_function_has_its_old_name_too():
    assert af.problems.torch is af.problems.torch_problem
