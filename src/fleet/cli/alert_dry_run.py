"""Print the payload that an alert would have, with marks in the place of its secrets. Sends nothing.

The same as `fleet alert dry-run`.

Examples:
  fleet alert-dry-run --event stale --run-id fleet-demo --task-id release-triage --adapter slack
  fleet alert-dry-run --event restart-exhausted --run-id fleet-demo --adapter pager-duty
"""

from __future__ import annotations

from fleet.cli.alert import add_dry_run as configure
from fleet.cli.alert import show_payload as run

__all__ = ["configure", "run"]
