"""Settings of pools: what is refused, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.config.load import parse
from fleet.errors import ConfigError

GOOD = '[pools.kite]\nrepo = "git@example.com:kite.git"\n'


def test_the_defaults() -> None:
    """The repository is all that must be said."""
    pool = parse(GOOD, Path("fleet.toml")).pools["kite"]
    assert (pool.setup, pool.max_size, pool.trust, pool.commit_minutes) == ("scripts/dev-setup.sh", 5, True, 30)
    assert pool.status_log == "/var/log/orchestrator-status.log"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[pools.kite]\n", "pools.kite.repo: is missing"),
        ('[pools.kite]\nrepo = "--upload-pack=x"\n', "pools.kite.repo: expected an address"),
        ('[pools."a b"]\nrepo = "/x"\n', "expected letters, digits, _ and -"),
        (GOOD + 'hosts = ["nowhere"]\n', 'pools.kite.hosts: there is no host "nowhere"'),
        (GOOD + 'setup = "../x"\n', "pools.kite.setup: expected a path below the root"),
        (GOOD + 'login = "sk-ant-secret"\n', "give the NAME of an environment variable"),
        (GOOD + "max_size = 0\n", "pools.kite.max_size: expected an integer from 1 to 200"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    """Each fault is told with its path, and a secret is not repeated."""
    with pytest.raises(ConfigError) as told:
        parse(text, Path("fleet.toml"))
    assert said in str(told.value)
    assert "sk-ant" not in str(told.value)
