"""`moses_files`: the two files of a corpus that is named by their common prefix, as in Moses and OPUS."""

import re
from pathlib import Path

from dragoman.base.errors import ConfigError

_LANGUAGE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,4})?")
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


def moses_files(prefix: Path, source: object = None, target: object = None) -> tuple[Path, Path] | None:
    """Return `prefix.SOURCE` and `prefix.TARGET`, or None if `prefix` is a file or not such a prefix.

    source, target: the languages; None: the two languages with a file, in the order in which the prefix names them, as
    in `europarl.de-en`. Raises ConfigError if there are more than two, or if their order is unknown.
    """
    files = {} if prefix.exists() else _files_by_language(prefix)
    if len(files) < 2:
        return None
    if source is not None and target is not None:
        missing = [str(each) for each in (source, target) if str(each) not in files]
        if missing:
            raise ConfigError(f"there is no file {prefix}.{missing[0]}: expected one of {', '.join(files)}")
        return files[str(source)], files[str(target)]
    first, *others = files
    if len(others) == 1:
        for order in ((first, others[0]), (others[0], first)):
            if re.search(rf"(?<![a-zA-Z]){order[0]}[-_.]?{order[1]}(?![a-zA-Z])", prefix.name):
                return files[order[0]], files[order[1]]
    raise ConfigError(
        f"{prefix} stands for {', '.join(path.name for path in files.values())}: say which is the source and which the "
        f"target: --pairs {prefix} --source {first} --target {others[0]}"
    )


def corpus_files(source: Path | None, target: Path | None, pairs: Path | None) -> dict[str, Path]:
    """Return the files of a corpus that are given, by the names of their settings. Two files replace their prefix."""
    if pairs is not None and (files := moses_files(pairs, source, target)) is not None:
        (source, target), pairs = files, None
    named = {"source": source, "target": target, "pairs": pairs}
    return {name: path for name, path in named.items() if path is not None}


def _files_by_language(prefix: Path) -> dict[str, Path]:
    files = {}
    for path in sorted(prefix.parent.glob(f"{prefix.name}.*")) if prefix.name else ():
        name = path.name.removeprefix(f"{prefix.name}.")
        language = name.removesuffix(Path(name).suffix) if Path(name).suffix in _COMPRESSED else name
        if path.is_file() and _LANGUAGE.fullmatch(language) and f".{language}" not in _COMPRESSED:
            files[language] = path
    return files
