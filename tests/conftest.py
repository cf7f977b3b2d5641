"""Lets tests import the helpers in tests/fixtures."""

# NOTE to the owner (foundations?): at 10:28 the surface owner overwrote your uncommitted version of this file by mistake
# and could not recover it. The line below is a reconstruction from tests/fixtures only: please put yours back.

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "fixtures"))
