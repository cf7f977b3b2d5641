"""Keys, addresses and quotas together."""

from pathlib import Path

import pytest

from dragoman.addons.serving.access.access import Access
from dragoman.addons.serving.access.config import AccessConfig
from dragoman.addons.serving.access.keys import InvalidKey, Keys
from dragoman.addons.serving.access.quota import QuotaExceeded
from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import load_settings


def granted(access: Access, key: str | None, peer: str, *forwarded: str, tokens: int = 1) -> bool:
    client = access.client(key, peer, forwarded)
    try:
        access.reserve(client, tokens)
    except QuotaExceeded:
        return False
    return True


def test_without_keys_addresses_are_counted() -> None:
    access = Access(AccessConfig(requests_per_minute=2, tokens_per_minute=None))
    assert [granted(access, None, "198.51.100.1") for _ in range(3)] == [True, True, False]
    assert granted(access, "whatever", "198.51.100.2")
    neighbours = ["2001:db8::1", "2001:db8::2", "2001:db8::3"]
    assert [granted(access, None, peer) for peer in neighbours] == [True, True, False]


def test_forged_addresses_change_nothing() -> None:
    access = Access(AccessConfig(requests_per_minute=2, trusted_proxies=("127.0.0.1",)))
    spoofed = [granted(access, None, "198.51.100.1", f"203.0.113.{number}") for number in range(3)]
    assert spoofed == [True, True, False]
    through_proxy = [granted(access, None, "127.0.0.1", f"203.0.113.{number}, 198.51.100.9") for number in range(3)]
    assert through_proxy == [True, True, False]
    assert granted(access, None, "127.0.0.1", "198.51.100.10")


def test_keys_are_counted_for_any_address(tmp_path: Path) -> None:
    with Keys(tmp_path / "keys.db") as keys:
        few = keys.add("few", requests_per_minute=1)
        usual = keys.add("usual", tokens_per_minute=10)
        access = Access(AccessConfig(keys=tmp_path / "keys.db", requests_per_minute=2, tokens_per_minute=5))
        assert granted(access, few.text, "198.51.100.1")
        assert not granted(access, few.text, "198.51.100.2")
        assert granted(access, usual.text, "198.51.100.1", tokens=10)
        assert access.client(usual.text, "198.51.100.1").key == usual.key.id
        with pytest.raises(QuotaExceeded) as exceeded:
            access.reserve(access.client(usual.text, "198.51.100.1"), 11)
        assert exceeded.value.resource == "tokens" and exceeded.value.retry_after == 60
        keys.revoke("few")
        for key, reason in ((few.text, "revoked"), (None, "missing"), ("x", "malformed")):
            with pytest.raises(InvalidKey) as caught:
                access.client(key, "127.0.0.1")
            assert caught.value.reason == reason
        access.close()


def test_a_server_without_its_database_of_keys_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no key database"):
        Access(AccessConfig(keys=tmp_path / "keys.db"))


def test_an_invalid_proxy_is_reported_with_its_setting() -> None:
    with pytest.raises(ConfigError, match=r"(?s)trusted_proxies.*'localhost' is not a network"):
        load_settings(None, ["trusted_proxies=[localhost]"], AccessConfig)


def test_programs_on_this_machine_have_no_quotas_unless_requested() -> None:
    def limits(peer: str | None, forwarded: tuple[str, ...] = (), proxied: bool = False, **config: object) -> tuple:
        return Access(AccessConfig.model_validate(config)).client(None, peer, forwarded, proxied).account.limits

    usual = (120, 50_000)
    assert limits("127.0.0.1") == limits("::1") == limits("::ffff:127.0.0.1") == limits("127.8.9.1") == (None, None)
    assert limits("127.0.0.1", loopback_quotas=True) == usual
    assert limits("198.51.100.1") == limits(None) == usual
    # a proxy on this machine passes on the requests of others
    assert limits("127.0.0.1", ("198.51.100.1",)) == limits("127.0.0.1", proxied=True) == usual
    assert limits("127.0.0.1", ("127.0.0.1",), trusted_proxies=["127.0.0.1"]) == usual
