"""`python -m asyncfed`: the command line."""

from asyncfed.cli.app import main

main()
