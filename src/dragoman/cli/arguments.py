"""Checks of KEY=VALUE arguments, with advice for the usual mistakes in writing them."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.base.errors import ConfigError
from dragoman.base.log import info
from dragoman.cli.moses_files import moses_files

if TYPE_CHECKING:
    from dragoman.data.corpora.corpus import CorpusConfig
    from dragoman.data.corpora.inputs import Lines

_OPEN, _CLOSED = "{[", "}]"
_PAIRS = "pairs."
RECIPES = (".yaml", ".yml")


def check_settings(arguments: Sequence[str], example: str = "train.max_steps=1000", files: str | None = None) -> None:
    """Raise ConfigError for an argument that is not a setting, and report a setting that occurs more than once.

    example: a setting of the command, for messages. files: options for the files that the command reads, such as
    --input FILE; None if it reads no files.
    """
    for number in range(len(arguments)):
        if advice := _advise(arguments, number, example, files):
            raise ConfigError(advice)
    _check_repetitions([argument.partition("=") for argument in arguments])


def split_recipe(arguments: Sequence[str], example: str = "train.max_steps=1000") -> tuple[Path | None, list[str]]:
    """Return the recipe, which can only be the first argument, and the settings.

    Raises ConfigError as `check_settings` does, and for a first argument that is neither a recipe nor a setting.
    """
    settings = list(arguments)
    path = None
    if settings and Path(settings[0]).suffix in RECIPES and "=" not in settings[0]:
        path = Path(settings.pop(0))
    check_settings(settings, example)
    return path, settings


def _advise(arguments: Sequence[str], number: int, example: str, files: str | None) -> str | None:
    """Return the error message for an argument; None if it has the form of a setting."""
    argument = arguments[number]
    if spaced := _join_spaced(arguments, number):
        return f"there is a space next to the = of a setting: write {spaced}"
    if split := _join_split_group(arguments, number):
        return f"the shell has divided a setting at its spaces: write '{split}' with the quotes"
    if "=" in argument:
        return None
    path = Path(argument)
    if path.suffix in RECIPES:
        return f"'{argument}' must be the first argument: a command reads at most one recipe, before the settings"
    if files is not None and path.exists():
        return f"'{argument}' is a {'folder' if path.is_dir() else 'file'}, and not a setting: pass it as {files}"
    if path.is_dir():
        if (path / "training").is_dir():
            return f"'{argument}' is the folder of a run: to resume the run, write --resume --out {argument}"
        return f"'{argument}' is a folder, and neither a recipe (….yaml) nor a setting (key=value)"
    if path.is_file():
        return (
            f"'{argument}' is neither a recipe (….yaml) nor a setting (key=value): pass text files as --source and "
            "--target"
        )
    if colon := re.fullmatch(r"([a-z_][\w.]*):\s*(.*)", argument):
        value = colon[2] or "".join(arguments[number + 1 : number + 2])
        return f"'{argument}' is not a setting: write {colon[1]}={value or 'VALUE'}"
    return f"'{argument}' is not a setting: write key=value, as in {example}"


def _join_spaced(arguments: Sequence[str], number: int) -> str | None:
    """Return the setting if the argument and the following ones are its parts, divided at spaces next to the =."""
    first, *rest = [*arguments[number : number + 3], "", ""][:3]
    if first == "=" or not first:
        return None
    if rest[0] == "=":
        return f"{first}={rest[1]}"
    if rest[0].startswith("=") and "=" not in first:
        return f"{first}{rest[0]}"
    if first.endswith("=") and rest[0] and "=" not in rest[0]:
        return f"{first}{rest[0]}"
    return None


def _join_split_group(arguments: Sequence[str], number: int) -> str | None:
    """Return the setting if the argument opens a group in braces or brackets that later arguments close."""
    if "=" not in arguments[number] or _depth(arguments[number]) <= 0:
        return None
    for end in range(number + 2, len(arguments) + 1):
        joined = " ".join(arguments[number:end])
        if _depth(joined) == 0:
            return joined
    return None


def _depth(text: str) -> int:
    return sum((letter in _OPEN) - (letter in _CLOSED) for letter in text)


def _check_repetitions(settings: Sequence[tuple[str, str, str]]) -> None:
    """Report keys that occur more than once. Raises ConfigError if the shell has expanded a group in braces."""
    values: dict[str, list[str]] = {}
    for key, _, value in settings:
        values.setdefault(key, []).append(value)
    for key, repeated in values.items():
        if len(repeated) < 2 or len(set(repeated)) < 2:
            continue
        if all(re.match(r"[a-z_]\w*:", value) for value in repeated):
            group = ", ".join(value.replace(":", ": ", 1) for value in repeated)
            raise ConfigError(f"the shell has expanded the braces of {key}: write '{key}={{{group}}}' with the quotes")
        _report(f"{key} is set {len(repeated)} times: the last value, {repeated[-1]}, applies")


def _report(message: str) -> None:
    if os.environ.get("RANK", "0") == "0":  # of several processes, only the first reports
        info(message)


def pairs_of(
    path: Path | None, settings: Sequence[str], source: Path | None = None, target: Path | None = None
) -> "tuple[CorpusConfig | None, list[str]]":
    """Return the corpus of --pairs, or None, and the settings that do not start with `pairs.`.

    Those that do, such as pairs.source_column=2, are settings of the corpus. source, target: as in `moses_files`.
    """
    from dragoman.base.settings.load import load_settings
    from dragoman.data.corpora.corpus import CorpusConfig

    own = [setting.removeprefix(_PAIRS) for setting in settings if setting.startswith(_PAIRS)]
    others = [setting for setting in settings if not setting.startswith(_PAIRS)]
    if path is None:
        if own:
            raise ConfigError(f"the setting {_PAIRS}{own[0]} needs a file of pairs: give --pairs FILE")
        return None, others
    if (files := moses_files(path, source, target)) is not None:
        return CorpusConfig(source=files[0], target=files[1]), others
    return load_settings({"pairs": str(path)}, own, CorpusConfig), others


def parallel_text(
    source: Path | None, target: Path | None, pairs: Path | None, settings: Sequence[str]
) -> "tuple[Lines, Lines, list[str]]":
    """Return both sides of a parallel text, given as two files or as --pairs, and the other settings.

    Raises ConfigError unless it is given in exactly one form, and the errors of `pairs_of` and `read_sides`.
    """
    from dragoman.data.corpora.readers import read_pairs_instead

    corpus, others = pairs_of(pairs, settings, source, target)
    if corpus is not None and corpus.pairs is None:
        source, target = corpus.source, corpus.target
    elif corpus is not None:
        return *read_pairs_instead(corpus, {"--source": source, "--target": target}), others
    if source is None or target is None:
        raise ConfigError("there is no parallel text: give --source FILE and --target FILE, or --pairs FILE")
    return source, target, others


def corpus_options(
    source: Path | None, target: Path | None, pairs: Path | None, *, valid: bool = False
) -> dict[str, Path | None]:
    """Return the options for a corpus by the names of their settings. valid: whether it is a validation set.

    Raises ConfigError unless they name two files, one file of pairs, the prefix of two files, or nothing.
    """
    dashes, address = ("--valid-", "data.valid") if valid else ("--", "data.train")
    if pairs is not None and (files := moses_files(pairs, source, target)) is not None:
        (source, target), pairs = files, None
    if (source or target) and pairs:
        raise ConfigError(
            f"a corpus is either two files ({dashes}source and {dashes}target) or one file ({dashes}pairs): use only "
            "one form"
        )
    if (source is None) != (target is None):
        raise ConfigError(f"{dashes}source and {dashes}target must be given together")
    return {f"{address}.source": source, f"{address}.target": target, f"{address}.pairs": pairs}


def check_options(options: Mapping[str, object], settings: Sequence[str]) -> None:
    """Report settings that an option and an argument set to different values. The argument applies.

    options: values by the name of the setting, such as `out`; None: the option is not given.
    """
    for argument in settings:
        key, _, value = argument.partition("=")
        given = options.get(key)
        if given is not None and str(given) != value.strip("'\""):
            _report(f"{key} is set twice: {argument} applies, and not {given} from the option")
