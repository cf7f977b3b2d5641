"""The journal of decisions: returned values, consequences of kills, and rejected files."""

from pathlib import Path

import pytest

from dragoman.base.errors import ModelError
from dragoman.training.machine.journal import Journal


def never() -> None:
    raise AssertionError("decided again")


def test_a_decision_is_made_once_and_repeated(tmp_path: Path) -> None:
    path = tmp_path / "training" / "decisions.jsonl"
    decisions = Journal(path)
    assert decisions.decide("end", 20, lambda: 371) == 371
    assert decisions.decide("end", 20, never) == 371
    assert decisions.decide("end", 40, lambda: 380) == 380
    again = Journal(path)
    assert again.decide("end", 20, never) == 371
    assert again.get("end", 40) == 380
    assert again.get("end", 60) is None
    assert again.get("stop", 20) is None


def test_values_are_returned_unchanged(tmp_path: Path) -> None:
    values = [0, True, 0.1 + 0.2, 1e-300, "größer als\n", [1, [2]], {"a": None}]
    decisions = Journal(tmp_path / "journal")
    for step, value in enumerate(values):
        decisions.record("value", step, value)
    again = Journal(tmp_path / "journal")
    assert [again.get("value", step) for step in range(len(values))] == values


def test_the_latest_record_counts(tmp_path: Path) -> None:
    decisions = Journal(tmp_path / "journal")
    decisions.record("halvings", 3, 1)
    decisions.record("halvings", 3, 2)
    assert decisions.get("halvings", 3) == 2
    assert Journal(tmp_path / "journal").get("halvings", 3) == 2


def test_a_missing_decision_writes_nothing(tmp_path: Path) -> None:
    decisions = Journal(tmp_path / "journal")
    assert decisions.decide("stop", 5, lambda: None) is None
    assert not (tmp_path / "journal").exists()
    assert decisions.decide("stop", 5, lambda: True) is True


def test_a_decision_is_on_disk_before_it_takes_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    monkeypatch.setattr("os.fsync", lambda _: synced.append((tmp_path / "journal").read_bytes()))
    Journal(tmp_path / "journal").decide("end", 20, lambda: 371)
    assert len(synced) == 1
    assert b"371" in synced[0]


def test_an_incomplete_line_is_removed(tmp_path: Path) -> None:
    """Whatever a kill during the second write leaves, the first decision remains and writing continues."""
    path = tmp_path / "journal"
    decisions = Journal(path)
    decisions.record("end", 20, 371)
    first = path.read_bytes()
    decisions.record("end", 40, 380)
    both = path.read_bytes()
    for size in range(len(first), len(both)):
        path.write_bytes(both[:size])
        torn = Journal(path)
        assert torn.get("end", 20) == 371
        assert torn.get("end", 40) is None
        assert path.read_bytes() == first
        torn.record("end", 40, 390)
        assert Journal(path).get("end", 40) == 390


def test_zeros_after_a_power_failure_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    Journal(path).record("end", 20, 371)
    first = path.read_bytes()
    path.write_bytes(first + b"\0" * 30)
    assert Journal(path).get("end", 20) == 371
    assert path.read_bytes() == first


@pytest.mark.parametrize("line", [b"not JSON\n", b"[1]\n", b'{"name": "end"}\n', b"\xff\n"])
def test_an_edited_journal_is_refused(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "journal"
    Journal(path).record("end", 20, 371)
    path.write_bytes(line + path.read_bytes())
    with pytest.raises(ModelError, match="journal is damaged"):
        Journal(path)


def test_forgetting_is_permanent(tmp_path: Path) -> None:
    decisions = Journal(tmp_path / "journal")
    decisions.record("end", 20, 371)
    decisions.clear()
    decisions.clear()
    assert decisions.get("end", 20) is None
    assert Journal(tmp_path / "journal").get("end", 20) is None
