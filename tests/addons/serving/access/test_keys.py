"""API keys: their storage, the accepted ones, and the messages."""

import os
import sqlite3
import stat
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

import dragoman
from dragoman.addons.serving.access import keys as module
from dragoman.addons.serving.access.keys import InvalidKey, Keys, parse_id
from dragoman.base.errors import ConfigError
from dragoman.cli.main import main

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "keys.db")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    times = [NOW]
    monkeypatch.setattr(module, "_now", lambda: times[0])
    return times


def refused(keys: Keys, text: str | None) -> InvalidKey:
    with pytest.raises(InvalidKey) as caught:
        keys.check(text)
    return caught.value


def test_a_valid_key_is_accepted(keys: Keys) -> None:
    made = keys.add("Ada", requests_per_minute=30, tokens_per_minute=5000)
    assert made.text.startswith(made.key.id + "_")
    assert keys.check(made.text) == made.key == keys.all()[0]
    assert (made.key.name, made.key.requests_per_minute, made.key.tokens_per_minute) == ("Ada", 30, 5000)
    assert len(made.text) == len("dgm_") + 8 + 1 + 32


def test_the_file_contains_no_key_and_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        keys = Keys(tmp_path / "keys.db")
        made = [keys.add(f"user {number}") for number in range(5)]
    finally:
        os.umask(before)
    files = list(tmp_path.iterdir())
    assert {path.name for path in files} == {"keys.db", "keys.db-wal", "keys.db-shm"}
    stored = b"".join(path.read_bytes() for path in files)
    for each in made:
        secret = each.text.rpartition("_")[2]
        assert each.key.id.encode() in stored  # this shows that the right file is checked
        assert secret.encode() not in stored
        assert secret[:12].encode() not in stored
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    with sqlite3.connect(tmp_path / "keys.db") as connection:
        rows = connection.execute("SELECT salt, hash FROM keys").fetchall()
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert len({salt for salt, _ in rows}) == len({hash for _, hash in rows}) == 5


def test_a_key_is_found_by_its_index(tmp_path: Path) -> None:
    Keys(tmp_path / "keys.db").close()
    with sqlite3.connect(tmp_path / "keys.db") as connection:
        plan = connection.execute("EXPLAIN QUERY PLAN SELECT salt, hash FROM keys WHERE id = 'x'").fetchall()
    assert plan[0][3].startswith("SEARCH")


def test_clients_get_one_message_for_all_reasons(keys: Keys, clock: list[datetime]) -> None:
    good, gone, old = (keys.add(name, expires=date(2027, 3, 2)) for name in ("good", "gone", "old"))
    keys.revoke("gone")
    other = good.text[:-1] + ("0" if good.text[-1] != "0" else "1")
    unknown = "dgm_00000000_" + "0" * 32
    errors = {
        text: refused(keys, text)
        for text in (None, "", "secret", good.text.upper(), good.text + "\n", other, unknown, gone.text)
    }
    clock[0] = datetime(2027, 3, 3, tzinfo=UTC)
    errors[old.text] = refused(keys, old.text)
    reasons = "missing missing malformed malformed malformed unknown unknown revoked expired".split()
    assert [error.reason for error in errors.values()] == reasons
    assert len({str(error) for error in errors.values()}) == 1
    assert errors[gone.text].id == gone.key.id
    assert not any(text and text in f"{error!r} {error.id}" for text, error in errors.items())


@pytest.mark.parametrize(
    ("expires", "last"),
    [
        ("2027-03-05", datetime(2027, 3, 5, 23, 59, 59, tzinfo=UTC)),
        (date(2027, 3, 5), datetime(2027, 3, 5, 23, 59, 59, tzinfo=UTC)),
        ("2027-03-05T10:00", datetime(2027, 3, 5, 9, 59, 59, tzinfo=UTC)),
        ("2027-03-05T10:00+02:00", datetime(2027, 3, 5, 7, 59, 59, tzinfo=UTC)),
    ],
)
def test_a_date_is_the_last_day(keys: Keys, clock: list[datetime], expires: str | date, last: datetime) -> None:
    made = keys.add("Ada", expires=expires)
    clock[0] = last
    assert keys.check(made.text).expires == last + timedelta(seconds=1)
    clock[0] += timedelta(seconds=1)
    assert refused(keys, made.text).reason == "expired"


def test_a_clock_that_jumps(keys: Keys, clock: list[datetime]) -> None:
    gone, lasting = keys.add("gone"), keys.add("lasting", expires="2027-03-05")
    keys.revoke("gone")
    for clock[0] in (datetime(1970, 1, 2, tzinfo=UTC), datetime(2037, 1, 1, tzinfo=UTC), NOW):
        assert refused(keys, gone.text).reason == "revoked"
    assert keys.check(lasting.text)  # a jump forward has no lasting effect
    clock[0] = datetime(1970, 1, 2, tzinfo=UTC)
    assert keys.check(keys.add("of the past").text)


def test_names_and_ids_revoke(keys: Keys) -> None:
    first = keys.add("Ada")
    with pytest.raises(ConfigError, match="a key named Ada exists"):
        keys.add(" Ada ")
    assert keys.revoke("Ada").id == first.key.id
    second = keys.add("Ada")
    third = keys.add("Grace")
    revoked = keys.revoke(first.key.id)
    assert revoked == keys.revoke(first.key.id)  # and the second key of that name remains valid
    assert keys.check(second.text).name == "Ada"
    keys.revoke(third.text)
    assert refused(keys, third.text).reason == "revoked"
    assert [key.revoked is not None for key in keys.all()].count(True) == 2
    for nothing in ("Grace", "Alan", "dgm_zzzzzzzz", "dgm_zzzzzzzz_" + "0" * 32):
        with pytest.raises(ConfigError) as caught:
            keys.revoke(nothing)
        assert "0" * 32 not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": " "}, "1 to 64 printable"),
        ({"name": "a\nb"}, "1 to 64 printable"),
        ({"name": "x" * 65}, "1 to 64 printable"),
        ({"name": "dgm_ada"}, "must not begin with dgm_"),
        ({"requests_per_minute": 0}, "requests_per_minute must be between 1 and"),
        ({"tokens_per_minute": -1}, "tokens_per_minute must be between 1 and"),
        ({"expires": "tomorrow"}, "is not a date"),
        ({"expires": "2020-01-01"}, "is in the past"),
        ({"expires": "9999-12-31"}, "too late"),
    ],
)
def test_invalid_values_are_refused(keys: Keys, values: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        keys.add(**{"name": "Ada", **values})
    assert keys.all() == []


def test_keys_are_random() -> None:
    made = [module.generate_key() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert {parse_id(each) for each in made} == {each.rpartition("_")[0] for each in made}
    assert {letter for each in made for letter in each[4:].replace("_", "")} == set("0123456789abcdefghjkmnpqrstvwxyz")


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    place = ["--database", str(tmp_path / "keys.db")]
    assert main(["keys", "list", *place]) == 2
    assert "`dragoman keys add NAME` creates one" in capsys.readouterr().err
    assert main(["keys", "add", "Ada", *place, "--tokens-per-minute", "900", "--expires", "2999-12-31"]) == 0
    out, err = capsys.readouterr()
    text = out.removesuffix("\n")
    with dragoman.Keys(tmp_path / "keys.db") as keys:
        assert keys.check(text).tokens_per_minute == 900
    assert text not in err
    assert main(["keys", "revoke", "Ada", *place]) == 0
    assert main(["keys", "add", "Ada", *place, "-q"]) == 0
    out, err = capsys.readouterr()
    assert err.count("\n") == 1  # of `revoke`
    assert main(["keys", "list", *place]) == 0
    shown = capsys.readouterr().out
    head, first, second = (line.split("\t") for line in shown.removesuffix("\n").split("\n"))
    assert {"Ada"} == {first[1], second[1]}
    by_state = {row[2]: row for row in (first, second)}
    assert by_state["revoked"][0] == parse_id(text)
    assert by_state["revoked"][5:] == ["3000-01-01T00:00:00Z", "", "900"]
    assert by_state["valid"][0] == parse_id(out.strip())
    assert len(head) == len(first)
    assert not any(key.rpartition("_")[2] in shown for key in (text, out.strip()))
    assert main(["keys", "revoke", "Alan", *place]) == 2
