"""The documentation site: pages staged from the repository, tutorials executed, a reference from docstrings, checks.

`make docs` runs `python -m docsite`, with the packages of the extra `docs`.
"""
