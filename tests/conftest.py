"""Options of the whole suite."""


def pytest_addoption(parser):
    parser.addoption(
        "--regenerate-golden",
        action="store_true",
        help="write tests/golden/*.json anew from what the strategies decide now; look at the diff before keeping it",
    )
