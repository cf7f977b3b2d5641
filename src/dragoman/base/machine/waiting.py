"""How long torch's threads keep a core while they wait for one another."""

import os

_TURNS = "1000"


def wait_briefly() -> None:
    """Make libgomp's threads sleep soon when they wait for others. To be called before torch is imported.

    All cores meet at the end of every operation. By default those that are there first turn in circles for
    milliseconds, which keeps the last one from its core on a machine that does other work too: programs then take
    several times as long (docs/EXPERIMENTS.md). So many turns are what libgomp itself chooses where threads outnumber
    cores. What the user has set, GOMP_SPINCOUNT or OMP_WAIT_POLICY, stays.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", _TURNS)
