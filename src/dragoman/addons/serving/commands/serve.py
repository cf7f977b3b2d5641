"""`dragoman serve`: run a translation server."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.command import command
from dragoman.cli.options import Device, Engine, Precision, System, Threads


@command(
    "dragoman serve runs/en-de",
    "dragoman serve runs/en-de --host 0.0.0.0 --keys keys.db",
    interrupted="interrupted",
    handles_signals=True,
)
def serve(
    models: Annotated[
        list[Path] | None, typer.Argument(metavar="[MODEL]...", help="Folders of translation and prediction models.")
    ] = None,
    *,
    languages: Annotated[
        list[str] | None,
        typer.Option(
            "--languages",
            metavar="en-de",
            help="Source and target language of each translation model, in order, if the model folders do not specify "
            "them.",
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", help="Address to listen on (default: 127.0.0.1, this machine only). 0.0.0.0: all."),
    ] = None,
    port: Annotated[int | None, typer.Option("--port", min=0, max=65535, help="Port (default: 5000).")] = None,
    keys: Annotated[
        Path | None,
        typer.Option(
            "--keys", metavar="FILE.db", help="Require API keys: the file of `dragoman keys` (default: none)."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE.yaml", help="Settings file; options override its settings."),
    ] = None,
    system: System = None,
    device: Device = None,
    engine: Engine = "auto",
    precision: Precision = None,
    threads: Threads = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=0,
            help="Number of worker processes per model, which share its weights (default: 0; the server process "
            "translates).",
        ),
    ] = None,
) -> None:
    """Serve translations with a web page and an HTTP API.

    The API is compatible with LibreTranslate. It has predicted labels at /v1/predict and, in OpenAI's form, texts by
    language models at /v1/completions.
    """
    from dragoman.addons.serving.server import serve
    from dragoman.base.errors import ConfigError
    from dragoman.inference.load import kind_of

    options = {
        "host": host,
        "port": port,
        "access.keys": None if keys is None else str(keys),
        "engine.name": None if engine == "auto" else engine,
        "engine.precision": precision,
        "engine.device": device,
        "engine.threads": threads,
        "engine.workers": workers,
    }
    settings: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    if languages:
        listed = [(path, "translate" in kind_of(path).abilities) for path in models or ()]
        count = sum(translates for _, translates in listed)
        if len(languages) != count:
            raise ConfigError(f"{len(languages)} --languages for {count} translation models: give one for each model")
        pairs = iter(languages)
        settings["models"] = [_model(path, next(pairs) if translates else None) for path, translates in listed]
    elif models:
        settings["models"] = [_model(path, None) for path in models]
    if system is not None:
        for each in settings.get("models", []):
            each["system"] = system
    serve(config, settings)


def _model(path: Path, languages: str | None) -> dict[str, str]:
    """Return the settings of a model. Raises ConfigError if `languages` is not a language pair."""
    from dragoman.base.errors import ConfigError

    if languages is None:
        return {"path": str(path)}
    source, separator, target = languages.rpartition("-") if ":" not in languages else languages.partition(":")
    if not (source and separator and target):
        raise ConfigError(f"--languages {languages}: write source-target, such as en-de (or source:target, pt-BR:en)")
    return {"path": str(path), "source": source, "target": target}
