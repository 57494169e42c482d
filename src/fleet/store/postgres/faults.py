"""What can be wrong with a PostgreSQL database, in Fleet's words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psycopg
from psycopg import errors

from fleet.errors import FleetError, StoreBusy, StoreError, StoreFull, StoreReadOnly, StoreUnreachable

LOST = (errors.DeadlockDetected, errors.SerializationFailure, errors.UniqueViolation)  # a race
CUT_OFF = (errors.IdleInTransactionSessionTimeout,)  # by the server, and rolled back


@contextlib.contextmanager
def translated(url: str) -> Iterator[None]:
    """PostgreSQL's errors in Fleet's words. The address holds no password: the settings refuse one."""
    try:
        yield
    except FleetError:
        raise
    except errors.DiskFull as exc:
        raise StoreFull("no space is left on the database server; nothing was written") from exc
    except (errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege) as exc:
        raise StoreReadOnly(f"the database refuses to be written: {_first_line(exc)}") from exc
    except (errors.LockNotAvailable, errors.QueryCanceled, *CUT_OFF) as exc:
        raise StoreBusy(f"the database at {url} is held up: {_first_line(exc)}; nothing was written") from exc
    except (psycopg.OperationalError, psycopg.InterfaceError) as exc:
        raise StoreUnreachable(f"the database at {url} does not answer: {_first_line(exc)}") from exc
    except psycopg.Error as exc:
        raise StoreError(f"the database refused: {_first_line(exc)}") from exc


def _first_line(exc: BaseException) -> str:
    return (str(exc) or type(exc).__name__).split("\n", 1)[0]
