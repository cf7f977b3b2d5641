"""Processes that wait for one which never comes."""

import socket
from datetime import timedelta

import pytest

from dragoman.train.ranks import group
from dragoman.train.ranks.interface import RankLost
from dragoman.train.ranks.launch import open_ranks


@pytest.mark.parametrize("rank", [0, 1])
def test_a_process_that_never_comes_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch, rank: int) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name, value in told.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(group, "JOINING", timedelta(seconds=1))
    lost = f"rank {rank}: another process of this run has ended or cannot be reached"
    with pytest.raises(RankLost, match=lost), open_ranks("cpu"):
        pass
