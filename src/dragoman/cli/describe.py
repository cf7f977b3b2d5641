"""`dragoman describe`: what a model is made of, before it is trained or after."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dragoman.inspect.describe import Description
    from dragoman.models.union import AnyModelConfig

VOCABULARY, PAIRS = 37_000, 4_500_000
"""Of WMT 2014 English–German in Vaswani et al. 2017, section 5.1."""

TOKENS = 1_000_000
"""Of text, by which a language model's preset is chosen where nothing else is known."""

# What a description does not depend on, so that a recipe's corpora need not be there.
_TEXT_PLACEHOLDERS = ("data={train: {text: corpus.txt}, valid: {text: corpus.txt}}", "out=run")
_PLACEHOLDERS = ("data={train: {tsv: corpus.tsv}, valid: {tsv: corpus.tsv}}", "out=run")


def describe(
    model: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL.yaml|RECIPE.yaml|FOLDER] [KEY=VALUE]...",
            help="The keys of `model` as YAML, or a recipe, or a model folder; and settings that override the YAML, "
            "such as model.preset=base.",
            show_default=False,
        ),
    ] = None,
    vocabulary: Annotated[
        str | None,
        typer.Option(
            "--vocabulary",
            metavar="N[,M]",
            help=f"Entries of a shared vocabulary, or of the source's and the target's (default: what the recipe asks "
            f"for, or {VOCABULARY:,}).",
        ),
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(
            "--pairs",
            min=1,
            help=f"Sentence pairs of the corpus, by which preset auto chooses (default: {PAIRS:,}, as WMT 2014).",
        ),
    ] = None,
    length: Annotated[
        int, typer.Option("--length", min=1, max=10_000, help="Tokens of source and target, for FLOPs and memory.")
    ] = 32,
    depth: Annotated[int, typer.Option("--depth", min=0, help="Levels of parts inside parts that are shown.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """A model's parts with their shapes and parameters, FLOPs a token, memory, and the longest text it can read."""
    import json
    import shutil

    from dragoman.base.errors import ConfigError
    from dragoman.inspect.description_text import as_json as in_plain_types
    from dragoman.inspect.description_text import numbers_text, parts_table
    from dragoman.tasks.language_model.config import LanguageModelRun
    from dragoman.tasks.union import run_class

    arguments = list(model or [])
    if not arguments:
        raise ConfigError(
            "nothing to describe: give a YAML file, a model folder, or settings such as model.preset=base"
        )
    path = Path(arguments.pop(0)) if "=" not in arguments[0] else None
    for argument in arguments:
        if "=" not in argument:
            raise ConfigError(f"'{argument}' is not a setting: write key=value, as in model.width=256")
    if path is not None and path.is_dir():
        if arguments or vocabulary or pairs:
            raise ConfigError(f"{path} is a trained model, of which nothing can be set: leave the settings out")
        asked = _trained(path)
    elif run_class(path, arguments) is LanguageModelRun:
        asked = _language_model(path, arguments, _sizes(vocabulary), pairs)
    else:
        asked = _untrained(path, arguments, _sizes(vocabulary), pairs)
    result = asked.described(length, depth)
    if as_json:
        settings = {"model": asked.config.model_dump(mode="json"), "source": asked.source, "target": asked.target}
        print(json.dumps({**settings, "notes": asked.notes, **in_plain_types(result)}, ensure_ascii=False, indent=2))
        return
    print("\n".join(asked.notes), end="\n\n")
    print(parts_table(result, shutil.get_terminal_size((100, 24)).columns), end="\n\n")
    print(numbers_text(result))


@dataclass(frozen=True)
class _Asked:
    """The model to describe; source and target: entries, or the source's numbers a vector; notes: where from."""

    config: "AnyModelConfig"
    source: int
    target: int
    vectors: bool
    notes: list[str]

    def described(self, length: int, depth: int) -> "Description":
        """The model, for texts of `length` tokens, parts down to `depth`."""
        from dragoman.inspect.describe import describe, describe_language_model
        from dragoman.models.language_model import LanguageModelConfig

        if isinstance(self.config, LanguageModelConfig):
            return describe_language_model(self.config, self.target, length, depth)
        return describe(self.config, self.source, self.target, length, self.vectors, depth)


def _sizes(vocabulary: str | None) -> tuple[int, ...]:
    """The sizes given; none, one for a shared vocabulary, or two."""
    from dragoman.base.errors import ConfigError

    if vocabulary is None:
        return ()
    parts = [part.strip() for part in vocabulary.split(",")]
    if len(parts) > 2 or not all(part.isdecimal() and 0 < int(part) <= 100_000_000 for part in parts):
        raise ConfigError(f"--vocabulary {vocabulary} is neither a size, such as 37000, nor two, such as 8000,10000")
    return tuple(int(part) for part in parts)


def _trained(folder: Path) -> _Asked:
    from dragoman.checkpoint.folder import read_config, read_meta
    from dragoman.models.union import parse_model
    from dragoman.text.tokenizers import Tokenizers

    meta = read_meta(folder)
    config = parse_model(read_config(folder)["model"], f"in section model of {folder / 'config.yaml'}")
    tokenizers = Tokenizers.load(folder)
    source, target = tokenizers.source.size, tokenizers.target.size
    notes = [f"{folder}: trained for {meta.step:,} steps", _vocabularies(source, target, tokenizers.shared, "")]
    return _Asked(config, source, target, tokenizers.reads_vectors, notes)


def _language_model(path: Path | None, overrides: list[str], sizes: tuple[int, ...], pairs: int | None) -> _Asked:
    """The model of a recipe with `task: {kind: language_model}`."""
    from dragoman.base.errors import ConfigError
    from dragoman.base.settings.load import load_settings
    from dragoman.tasks.language_model.config import LanguageModelRun

    if len(sizes) > 1 or pairs:
        raise ConfigError("a language model has one vocabulary and no pairs: give --vocabulary N, leave --pairs out")
    run = load_settings(path, [*overrides, *_TEXT_PLACEHOLDERS], LanguageModelRun)
    config, notes = run.model.resolved(TOKENS), [str(path) if path is not None else "settings from the command line"]
    if run.model.preset == "auto":
        notes.append(f"preset auto is {config.preset} for {TOKENS:,} tokens of text (assumed; model.preset chooses)")
    elif config.preset is not None:
        notes.append(f"preset {config.preset}")
    stated = getattr(run.text.subword, "size", None) if "text" in run.model_fields_set else None
    size = sizes[0] if sizes else stated or VOCABULARY
    origin = "as given" if sizes else "of text.subword" if stated else "assumed; --vocabulary says otherwise"
    notes.append(_vocabularies(size, size, True, f" ({origin})"))
    return _Asked(config, size, size, False, notes)


def _untrained(path: Path | None, overrides: list[str], sizes: tuple[int, ...], pairs: int | None) -> _Asked:
    from dragoman.base.settings.load import load_settings, read_document
    from dragoman.models.build import ModelConfig, resolve_preset
    from dragoman.tasks.translation.config import TranslationRun
    from dragoman.tasks.translation.start import load_start
    from dragoman.text.tokenizers import TextConfig

    keys = {"model"} if path is None else set(read_document(path).content)
    start, text = None, TextConfig()
    if path is None and len(sizes) == 2:
        overrides = ["text.shared=false", *overrides]
    if keys & set(TranslationRun.model_fields):
        run = load_settings(path, [*overrides, *_PLACEHOLDERS], TranslationRun)
        run, start = load_start(run)
        config, text = run.model, run.text
    else:
        config = load_settings(path, [each.removeprefix("model.") for each in overrides], ModelConfig)
        if len(sizes) == 2 and "tie_embeddings" not in config.model_fields_set:
            config = ModelConfig.model_validate({**config.model_dump(exclude_unset=True), "tie_embeddings": False})
    notes = [str(path) if path is not None else "settings from the command line"]
    if config.preset == "auto":
        config = resolve_preset(config, pairs or PAIRS)
        why = "of --pairs" if pairs else "assumed; --pairs says otherwise"
        notes.append(f"preset auto is {config.preset} for a corpus of {pairs or PAIRS:,} pairs ({why})")
    elif config.preset is not None:
        notes.append(f"preset {config.preset}")
    if start is not None:
        source, target, origin = start.tokenizers.source.size, start.tokenizers.target.size, "of train.start"
    elif sizes:
        source, target, origin = sizes[0], sizes[-1], "as given"
    else:
        subword = text.subword.sized(pairs) if pairs else text.subword
        size = getattr(subword, "size", None)
        stated = "subword" in text.model_fields_set or pairs is not None
        origin = (
            "of text.subword; a small corpus yields fewer"
            if stated and size
            else "assumed; --vocabulary says otherwise"
        )
        source = target = size if stated and size else VOCABULARY
    shared = text.shared and len(sizes) < 2
    if text.vectors is not None:
        source = text.vectors.width
        notes.append(f"source: vectors of {source:,} numbers; vocabulary of the target: {target:,} entries ({origin})")
    else:
        notes.append(_vocabularies(source, target, shared, f" ({origin})"))
    return _Asked(config, source, target, text.vectors is not None, notes)


def _vocabularies(source: int, target: int, shared: bool, origin: str) -> str:
    if shared:
        return f"one vocabulary of {source:,} entries{origin}"
    return f"vocabularies of {source:,} and {target:,} entries{origin}"
