"""The store on PostgreSQL, through psycopg 3: for several supervisors, on one or many machines."""

from fleet.errors import ProgramMissing, how_to_install

try:
    import psycopg  # noqa: F401  # all of this room needs it
except ImportError as exc:
    raise ProgramMissing(
        "the store is on PostgreSQL, but psycopg is not installed", hint=how_to_install("psycopg[binary]")
    ) from exc
