"""`python -m fleet` is the same command as `fleet`."""

from fleet.cli import entry

entry()
