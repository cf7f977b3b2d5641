"""`dragoman keys`: manage the API keys of a server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.command_group import CommandGroup, Reference
from dragoman.cli.options import Quiet

if TYPE_CHECKING:
    from datetime import datetime

    from dragoman.addons.serving.access.keys import Key

_MODULE = "dragoman.addons.serving.commands.keys"

app = CommandGroup(
    "keys",
    {name: Reference(f"{_MODULE}:{name}_key") for name in ("add", "revoke")}
    | {"list": Reference(f"{_MODULE}:list_keys")},
    help="Create, list and revoke the API keys of a server.",
    examples=("dragoman keys add alice",),
)

Database = Annotated[Path, typer.Option("--database", help="SQLite file of the keys.")]


@command("dragoman keys add alice --requests-per-minute 60")
def add_key(
    name: Annotated[str, typer.Argument(help="Name of the key's owner, unique among keys that are not revoked.")],
    *,
    database: Database = Path("keys.db"),
    requests_per_minute: Annotated[
        int | None,
        typer.Option("--requests-per-minute", min=1, help="Request quota of the key (default: the server's quota)."),
    ] = None,
    tokens_per_minute: Annotated[
        int | None,
        typer.Option("--tokens-per-minute", min=1, help="Token quota of the key (default: the server's quota)."),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires",
            metavar="DATE",
            help="Last day on which the key is valid, such as 2027-12-31 (UTC), or time of expiry, such as "
            "2027-12-31T18:00+01:00 (default: the key does not expire).",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Create a key and print it. The key cannot be shown again, because the file stores only its hash.

    If the file does not exist, it is created.
    """
    from dragoman.addons.serving.access.keys import Keys
    from dragoman.base.log import info

    with Keys(database) as keys:
        new_key = keys.add(
            name, requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute, expires=expires
        )
    print(new_key.text)
    info(f"created key {new_key.key.id} for {new_key.key.name}. It cannot be shown again")


@command("dragoman keys list")
def list_keys(database: Database = Path("keys.db")) -> None:
    """List the ids, names, dates and quotas of all keys. The keys themselves are never shown."""
    from datetime import UTC, datetime

    from dragoman.addons.serving.access.keys import Keys

    with Keys(database, create=False) as keys:
        rows = [_row(key, datetime.now(UTC)) for key in keys.all()]
    header = ("id", "name", "state", "created", "revoked", "expires", "requests/min", "tokens/min")
    print("\n".join("\t".join(row) for row in [header, *rows]))


@command("dragoman keys revoke alice")
def revoke_key(
    name: Annotated[
        str, typer.Argument(metavar="NAME-OR-ID", help="Name or id of a key, as listed by `dragoman keys list`.")
    ],
    database: Database = Path("keys.db"),
    quiet: Quiet = False,
) -> None:
    """Revoke a key. The revocation takes effect immediately, including on running servers."""
    from dragoman.addons.serving.access.keys import Keys
    from dragoman.base.log import info

    with Keys(database, create=False) as keys:
        key = keys.revoke(name)
    info(f"revoked key {key.id} of {key.name}")


def _row(key: "Key", now: "datetime") -> tuple[str, ...]:
    return (
        key.id,
        key.name,
        key.state(now),
        _format_time(key.created),
        _format_time(key.revoked),
        _format_time(key.expires),
        str(key.requests_per_minute or ""),
        str(key.tokens_per_minute or ""),
    )


def _format_time(time: "datetime | None") -> str:
    return "" if time is None else time.strftime("%Y-%m-%dT%H:%M:%SZ")
