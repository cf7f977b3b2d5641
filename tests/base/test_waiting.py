"""Waiting threads leave their core to others, unless the user has set this differently."""

import subprocess
import sys

import pytest

PROGRAM = "import dragoman, os, sys; print(os.environ.get('GOMP_SPINCOUNT'), 'torch' in sys.modules)"


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "1000 False"), ({"GOMP_SPINCOUNT": "7"}, "7 False"), ({"OMP_WAIT_POLICY": "active"}, "None False")],
)
def test_the_waiting_policy_of_a_program(monkeypatch: pytest.MonkeyPatch, given: dict[str, str], expected: str) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == expected
