"""A problem whose clients write down, beside the run, what they send. Client processes import this module."""

from pathlib import Path

import numpy as np

from asyncfed.uplinks.norms import clip_to_norm


class RecordingShard:
    """Trains as the shard does, and writes the clipped change and the model that the server makes of it to a file."""

    def __init__(self, shard, folder, norm):
        self.shard, self.folder, self.norm = shard, folder, norm

    @property
    def num_examples(self):
        return self.shard.num_examples

    def train(self, params, work, key, **more):
        trained = self.shard.train(params, work, key, **more)
        change = clip_to_norm(trained - params, self.norm)
        np.save(Path(self.folder) / f"{key}.npy", np.stack([change, params + change]))
        return trained


class RecordingProblem:
    """All else is the problem's."""

    def __init__(self, problem, folder, norm):
        self._problem, self._folder, self._norm = problem, folder, norm

    def shard(self, client):
        return RecordingShard(self._problem.shard(client), self._folder, self._norm)

    def __getattr__(self, name):
        return getattr(self._problem, name)
