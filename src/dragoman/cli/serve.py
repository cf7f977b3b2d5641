"""`dragoman serve`: a translation server."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.options import Device, Engine, Precision, Threads


def serve(
    models: Annotated[
        list[Path] | None, typer.Argument(metavar="[MODEL]...", help="Folders of trained or exported models.")
    ] = None,
    languages: Annotated[
        list[str] | None,
        typer.Option(
            "--languages",
            metavar="en-de",
            help="Of each model, in their order: the codes of source and target, where its folder does not say them.",
        ),
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen at (default: 127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option("--port", min=0, max=65535, help="Port (default: 5000).")] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE.yaml", help="All settings; options have precedence.")
    ] = None,
    device: Device = None,
    engine: Engine = "auto",
    precision: Precision = None,
    threads: Threads = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=0,
            help="Processes that translate by each model, with one copy of its weights (default: 0, the server's own).",
        ),
    ] = None,
) -> None:
    """Serve translations: a page for people, and an interface that LibreTranslate's clients know."""
    from dragoman.base.errors import ConfigError
    from dragoman.serving.server import serve

    given = {
        "host": host,
        "port": port,
        "engine.name": None if engine == "auto" else engine,
        "engine.precision": precision,
        "engine.device": device,
        "engine.threads": threads,
        "engine.workers": workers,
    }
    settings: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if languages and len(languages) != len(models or []):
        raise ConfigError(f"{len(languages)} --languages and {len(models or [])} models: give each model its own")
    if models:
        settings["models"] = [
            _model(path, languages[place] if languages else None) for place, path in enumerate(models)
        ]
    serve(config, settings)


def _model(path: Path, languages: str | None) -> dict[str, str]:
    """Raises ConfigError for what names no two languages."""
    from dragoman.base.errors import ConfigError

    if languages is None:
        return {"path": str(path)}
    source, separator, target = languages.rpartition("-") if ":" not in languages else languages.partition(":")
    if not (source and separator and target):
        raise ConfigError(f"--languages {languages}: say source-target, such as en-de (or source:target, pt-BR:en)")
    return {"path": str(path), "source": source, "target": target}
