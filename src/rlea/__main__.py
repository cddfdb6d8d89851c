"""`python -m rlea`."""

from rlea.cli import main

main()
