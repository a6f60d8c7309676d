"""Actors on other nodes train to the same bytes."""

import asyncfed as af


def cnn(**how):
    """A convolutional network on handwritten digits: the experiment says all of it, so actors make it themselves."""
    settings = {
        "name": "digits",
        "num_clients": 10,
        "data": af.data.DigitImages(),
        "dtype": "float32",
        "model": af.problems.Convolutional(channels=4),
        "strategy": af.strategies.AFL(concurrency=5, work=af.Work(epochs=1, batch_size=16, learning_rate=0.05)),
        "delays": af.delays.heavy_tailed(),
        "budget": af.Budget(rounds=6),
    }
    return af.Experiment(**{**settings, **how})


def test_a_network_on_two_nodes(cluster):
    alone = af.run(cnn())
    with cluster() as two:
        assert af.run(cnn(), cluster=two).sha256 == alone.sha256
    assert two.said == ["2 actors start: 1 on 127.0.0.2, 1 on 127.0.0.3"]
