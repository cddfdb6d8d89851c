"""`python -m rlea.cli`."""

from rlea.cli import main

main()
