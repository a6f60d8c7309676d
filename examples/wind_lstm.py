"""An LSTM forecasts wind for ten sites that keep their measurements to themselves.

    python examples/wind_lstm.py            under a minute on two cores; draws wind_lstm.png
    python examples/wind_lstm.py --quick    a shorter run

Sites lie along a coast of 500 km; weather moves from one to the next at 50 km/h. Each site's hourly speeds are
Weibull-distributed with a daily cycle and a scale of its own. The network sees 24 hours and forecasts the speed 3 hours
ahead; its rival is persistence, which says that nothing will change. The last tenth of each site's year is for testing.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from torch import nn

import asyncfed as af

SITES, HOURS, SEEN, AHEAD = 10, 2400, 24, 3


def wind(seed: int) -> np.ndarray:
    """Hourly speeds in m/s, shape (sites, hours): one moving weather, local gusts, Weibull margins."""
    rng = np.random.default_rng(seed)
    lag = np.arange(SITES)  # 50 km apart at 50 km/h: an hour from site to site
    weather, local = np.zeros(HOURS + SITES), np.zeros((SITES, HOURS))
    for t in range(2, HOURS + SITES):
        weather[t] = 1.75 * weather[t - 1] - 0.78 * weather[t - 2] + 0.1 * rng.normal()
    for t in range(1, HOURS):
        local[:, t] = 0.8 * local[:, t - 1] + 0.15 * rng.normal(size=SITES)
    moving = np.stack([weather[SITES - delay : SITES - delay + HOURS] for delay in lag]) / weather.std()
    day = 0.5 * np.sin(2 * np.pi * (np.arange(HOURS) - 15) / 24)
    score = moving + local + day
    ranks = score.argsort(axis=1).argsort(axis=1)
    scale = rng.uniform(6.0, 10.0, (SITES, 1))
    return scale * (-np.log(1 - (ranks + 0.5) / HOURS)) ** (1 / 2.0)


class Forecast(nn.Module):
    """What the LSTM adds to persistence."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(3, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, x):
        return x[:, -1, :1] + self.head(self.lstm(x)[0][:, -1])


def windows(speeds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x (rows, 24, 3): speed over 10 m/s, and the hour as a point of the clock; y: the speed 3 hours later."""
    hour = 2 * np.pi * np.arange(HOURS) / 24
    series = np.stack([speeds / 10, np.sin(hour), np.cos(hour)], axis=1).astype(np.float32)
    starts = np.arange(HOURS - SEEN - AHEAD + 1)
    x = np.stack([series[s : s + SEEN] for s in starts])
    return x, series[starts + SEEN + AHEAD - 1, 0]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a shorter run")
    quick = parser.parse_args().quick
    sites = [windows(speeds) for speeds in wind(seed=0)]
    cut = int(0.9 * len(sites[0][1]))
    test_x, test_y = (np.concatenate([site[part][cut:] for site in sites]) for part in (0, 1))
    problem = af.problems.torch_problem(
        Forecast, "mse", [(x[: cut - SEEN], y[: cut - SEEN]) for x, y in sites], test=(test_x, test_y)
    )
    work = af.Work(epochs=1, batch_size=64, learning_rate=0.1, momentum=0.9)
    experiment = af.Experiment(
        num_clients=SITES,
        strategy=af.strategies.FedBuff(concurrency=5, buffer_size=5, work=work),
        delays=af.delays.stragglers(share=0.2, slowness=8.0),
        budget=af.Budget(updates=50 if quick else 400),
        evaluation=af.Evaluation(every=10, unit="update"),
    )
    run = af.run(experiment, problem=problem)
    error = 10 * np.sqrt(run.evaluations["test_loss"])
    persistence = 10 * float(np.sqrt(np.mean((test_x[:, -1, 0] - test_y) ** 2)))
    print(f"forecast {AHEAD} hours ahead on hours nobody trained with, root mean square error")
    print(f"persistence  {persistence:.2f} m/s")
    print(f"LSTM         {error[-1]:.2f} m/s, {100 * (1 - error[-1] / persistence):.0f} % better")
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    axes.plot(run.evaluations["elapsed"], error, label="LSTM, asynchronous")
    axes.axhline(persistence, linestyle="--", color="grey", label="persistence")
    axes.set(xlabel="virtual time (s)", ylabel="test error (m/s)", ylim=(0, None))
    axes.legend()
    figure.savefig("wind_lstm.png", dpi=150)


if __name__ == "__main__":
    main()
