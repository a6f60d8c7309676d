"""A problem of one's own, described in TOML like a shipped one."""

import asyncfed as af
from asyncfed.core.record import Config
from asyncfed.problems import Linear


@af.register("problem")
class Doubled(Config, tag_field="kind", tag="doubled_targets_for_test"):
    """Least squares on twice the targets."""

    factor: float = 2.0

    @property
    def labels(self):
        return False

    def build(self, clients, held_out=None):
        class Rows:
            x, y, offsets, names = clients.x, clients.y * self.factor, clients.offsets, clients.names

            def sha256(self):
                return clients.sha256() + "doubled"

        return Linear(Rows(), loss="least_squares")


def test_it_runs_from_toml_and_verifies(small, tmp_path):
    experiment = af.from_toml(af.to_toml(small(model=Doubled(factor=3.0))))
    assert experiment.model == Doubled(factor=3.0)
    run = af.run(experiment, out=tmp_path / "own.sqlite")
    assert af.verify(tmp_path / "own.sqlite").ok
    assert af.load(tmp_path / "own.sqlite").experiment.model == Doubled(factor=3.0)
    plain = af.run(small())
    assert run.evaluations["objective"][0] > 4 * plain.evaluations["objective"][0]
