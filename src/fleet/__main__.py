"""`python -m fleet` is the same command as `fleet`."""

import sys

from fleet.cli import main

sys.exit(main())
