"""The key database among several processes and threads, on full and read-only disks, and with invalid files."""

import os
import resource
import signal
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.addons.serving.access import database
from dragoman.addons.serving.access.keys import InvalidKey, Keys
from dragoman.base.errors import ConfigError, DataError, DragomanError, ResourceError

NOBODY = 65534


def in_child(work: Callable[[], object]) -> Callable[[], str]:
    """Run a function in a forked process. Returns a function that waits for its result, or for the error it raised."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = f"{work()}"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writes, said.encode())
        os._exit(0)
    os.close(writes)

    def wait() -> str:
        with os.fdopen(reads, "rb") as pipe:
            said = pipe.read().decode()
        os.waitpid(child, 0)
        return said

    return wait


def test_processes_that_add_keys_concurrently(tmp_path: Path) -> None:
    path = tmp_path / "keys.db"

    def add(number: int) -> str:
        with Keys(path) as keys:
            added = [keys.add(f"user {number} {each}").text for each in range(5)]
        return " ".join(added)

    said = [wait() for wait in [in_child(lambda number=number: add(number)) for number in range(6)]]  # type: ignore[misc]
    with Keys(path, create=False) as keys:
        names = [keys.check(text).name for text in " ".join(said).split()]
        assert sorted(names) == sorted(f"user {number} {each}" for number in range(6) for each in range(5))
        assert len(keys.all()) == 30


def test_concurrent_additions_of_a_name_have_one_winner(tmp_path: Path) -> None:
    path = tmp_path / "keys.db"
    Keys(path).close()
    said = [wait() for wait in [in_child(lambda: Keys(path).add("Ada").key.name) for _ in range(6)]]
    assert sorted(said)[0] == "Ada"
    assert all("a key named Ada exists" in each for each in sorted(said)[1:])


def test_revocation_affects_all_processes(tmp_path: Path) -> None:
    path = tmp_path / "keys.db"
    with Keys(path) as keys:
        made = keys.add("Ada")
        assert keys.check(made.text)
        assert in_child(lambda: Keys(path).revoke("Ada").name)() == "Ada"
        with pytest.raises(InvalidKey) as caught:
            keys.check(made.text)
        assert caught.value.reason == "revoked"


def test_a_forked_process_opens_its_own_connection(tmp_path: Path) -> None:
    with Keys(tmp_path / "keys.db") as keys:
        made = keys.add("Ada")
        taken, done = threading.Event(), threading.Event()

        def hold() -> None:
            with keys._database.connection():
                taken.set()
                done.wait(30)

        thread = threading.Thread(target=hold)
        thread.start()
        taken.wait(30)
        said = in_child(lambda: (keys.check(made.text).name, keys.add("Grace").key.name))()
        done.set()
        thread.join()
        assert said == "('Ada', 'Grace')"
        assert [key.name for key in keys.all()] == ["Ada", "Grace"]


def test_a_file_that_is_replaced_counts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "keys.db"
    with Keys(path) as server, Keys(tmp_path / "new.db") as others:
        old, new = server.add("old"), others.add("new")
        others.close()
        (tmp_path / "new.db").rename(path)
        assert server.check(new.text).name == "new"
        with pytest.raises(InvalidKey):
            server.check(old.text)
        path.unlink()
        with pytest.raises(ResourceError, match="No such file"):
            server.check(new.text)


def test_threads_share_it(tmp_path: Path) -> None:
    with Keys(tmp_path / "keys.db") as keys:
        made = [keys.add(f"user {number}") for number in range(4)]
        found: list[str] = []
        errors: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for _ in range(20):
                    found.append(keys.check(made[number].text).name)
                keys.add(f"of thread {number}")
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert sorted(set(found)) == [f"user {number}" for number in range(4)] and len(found) == 80
        assert len(keys.all()) == 8


def test_a_kill_between_two_additions_loses_neither_key(tmp_path: Path) -> None:
    path = tmp_path / "keys.db"
    Keys(path).close()
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        keys = Keys(path)
        for number in range(10_000):
            os.write(writes, keys.add(f"user {number}").text.encode() + b"\n")
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        told = [pipe.readline() for _ in range(5)]
        os.kill(child, signal.SIGKILL)
        told += pipe.readlines()
    os.waitpid(child, 0)
    with Keys(path, create=False) as keys:
        for line in told:
            if line.endswith(b"\n"):
                assert keys.check(line.decode().strip())
        assert len(keys.all()) - len(told) in (0, 1)


def test_a_full_disk_leaves_existing_keys_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "keys.db"
    with Keys(path) as keys:
        made = keys.add("Ada")

    def fill() -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with Keys(path) as keys:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 15, resource.RLIM_INFINITY))
            try:
                for number in range(1000):
                    keys.add("x" * 50 + f"{number}")
            except ResourceError as error:
                keys.check(made.text)
                return f"{number} keys, then {error}"
        return "no error"

    said = in_child(fill)()
    assert "cannot read or write" in said or "the disk is full" in said
    with Keys(path, create=False) as keys:
        assert keys.check(made.text)
        assert len(keys.all()) == 1 + int(said.split()[0])


def add_forever(keys: Keys, added: list[str]) -> None:
    while len(added) < 1000:
        added.append(keys.add(f"{len(added)}").key.id)


def test_sqlites_error_for_a_full_disk(tmp_path: Path) -> None:
    with Keys(tmp_path / "keys.db") as keys:
        with keys._database.connection() as connection:
            connection.execute("PRAGMA max_page_count = 5")
        added: list[str] = []
        with pytest.raises(ResourceError, match="the disk is full"):
            add_forever(keys, added)
        assert sorted(added) == sorted(key.id for key in keys.all())


def as_unprivileged_user(work: Callable[[], object]) -> str:
    """Return or raise what a function does for a user other than root, who may write anything."""

    def first_leave() -> object:
        if os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return work()

    return in_child(first_leave)()


def test_a_read_only_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "keys.db"
    with Keys(path) as keys:
        keys.add("Ada")
    for parent in (tmp_path, *tmp_path.parents[:3]):
        parent.chmod(0o755)
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    said = as_unprivileged_user(lambda: Keys(path).add("Grace"))
    assert said.startswith("ResourceError: cannot open") and "grant access" in said
    path.chmod(0o400)
    assert as_unprivileged_user(lambda: Keys(tmp_path / "other.db")).startswith("ResourceError: cannot write")
    tmp_path.chmod(0o700)
    assert as_unprivileged_user(lambda: Keys(path).add("Grace")).startswith("ResourceError: cannot open")
    tmp_path.chmod(0o755)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"a list of keys\n" * 100, "is not a key database"),
        (b"SQLite format 3\0" + b"\xff" * 5000, "is not a key database"),
    ],
)
def test_a_file_that_is_not_a_database(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "keys.db"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(DataError, match=message):
        Keys(path)
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "keys.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE keys (id)")
    before = path.read_bytes()
    with pytest.raises(DataError, match="another program"):
        Keys(path)
    assert path.read_bytes() == before


def test_a_newer_database_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "keys.db"
    with Keys(path) as keys, keys._database.connection() as connection:
        connection.execute("PRAGMA user_version = 2")
    with pytest.raises(DataError, match="created by a newer dragoman"):
        Keys(path)


def test_a_damaged_database_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "keys.db"
    with Keys(path) as keys:
        made = keys.add("Ada")
    good = path.read_bytes()
    for place in range(0, len(good), 97):
        path.write_bytes(good[:place] + bytes(200) + good[place + 200 :])
        try:
            with Keys(path, create=False) as keys:
                keys.check(made.text)
                keys.all()
        except (DragomanError, InvalidKey):
            pass


def test_invalid_paths(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no key database"):
        Keys(tmp_path / "keys.db", create=False)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="not a regular file"):
        Keys(tmp_path)
    with pytest.raises(ResourceError, match="create its folder first"):
        Keys(tmp_path / "nowhere" / "keys.db")


def test_a_long_write_of_another_process_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_SECONDS", 0.2)
    path = tmp_path / "keys.db"
    with Keys(path) as keys:
        made = keys.add("Ada")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ResourceError, match="another process has been writing"):
            keys.add("Grace")
        assert keys.check(made.text)  # readers do not wait
        other.execute("ROLLBACK")
        other.close()
        assert keys.add("Grace")


def test_loose_permissions_cause_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "keys.db"
    Keys(path).close()
    assert "chmod 600" not in capsys.readouterr().err
    path.chmod(0o644)
    Keys(path).close()
    assert "chmod 600" in capsys.readouterr().err
