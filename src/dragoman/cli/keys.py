"""`dragoman keys`: who may use a server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import Quiet

if TYPE_CHECKING:
    from datetime import datetime

    from dragoman.serving.access.keys import Key

app = typer.Typer(no_args_is_help=True, help="API keys of a server: make them, list them, revoke them.")

Database = Annotated[Path, typer.Option("--database", help="The SQLite file of the keys.")]


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="Whose key it is; no other key has the name that is not revoked.")],
    database: Database = Path("keys.db"),
    requests_per_minute: Annotated[
        int | None, typer.Option("--requests-per-minute", min=1, help="Its own quota (default: the server's).")
    ] = None,
    tokens_per_minute: Annotated[
        int | None, typer.Option("--tokens-per-minute", min=1, help="Its own quota (default: the server's).")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires",
            metavar="DATE",
            help="The last day that it is for, such as 2027-12-31 (UTC), or a moment, 2027-12-31T18:00+01:00 (default: "
            "it does not expire).",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Make a key and print it: this once, since the file holds its hash only. The file is made where there is none."""
    from dragoman.base.log import info
    from dragoman.serving.access.keys import Keys

    with Keys(database) as keys:
        made = keys.add(
            name, requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute, expires=expires
        )
    print(made.text)
    info(f"this is the key {made.key.id} of {made.key.name}; it cannot be shown again")


@app.command("list")
def list_keys(database: Database = Path("keys.db")) -> None:
    """Show whose keys there are: ids, names, dates and quotas, never the keys."""
    from datetime import UTC, datetime

    from dragoman.serving.access.keys import Keys

    with Keys(database, create=False) as keys:
        rows = [_row(key, datetime.now(UTC)) for key in keys.all()]
    head = ("id", "name", "state", "made", "revoked", "expires", "requests/min", "tokens/min")
    print("\n".join("\t".join(row) for row in [head, *rows]))


@app.command("revoke")
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME-OR-ID", help="Of a key, as `dragoman keys list` shows it.")],
    database: Database = Path("keys.db"),
    quiet: Quiet = False,
) -> None:
    """From now on the key opens nothing, on servers that are running too."""
    from dragoman.base.log import info
    from dragoman.serving.access.keys import Keys

    with Keys(database, create=False) as keys:
        key = keys.revoke(name)
    info(f"the key {key.id} of {key.name} is revoked")


def _row(key: "Key", now: "datetime") -> tuple[str, ...]:
    return (
        key.id,
        key.name,
        key.state(now),
        _moment(key.made),
        _moment(key.revoked),
        _moment(key.expires),
        str(key.requests_per_minute or ""),
        str(key.tokens_per_minute or ""),
    )


def _moment(when: "datetime | None") -> str:
    return "" if when is None else when.strftime("%Y-%m-%dT%H:%M:%SZ")
