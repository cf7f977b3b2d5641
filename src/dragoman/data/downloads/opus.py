"""Corpora of OPUS (https://opus.nlpl.eu) by language pair, through its API (https://opus.nlpl.eu/opusapi/)."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from dragoman.base.errors import ConfigError, DataError
from dragoman.data.downloads.transfer import fetch_json

API = "https://opus.nlpl.eu/opusapi/"
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[_-]\w+)*")
_NAME = re.compile(r"\w[\w.+-]*")


@dataclass(frozen=True, order=True)
class OpusCorpus:
    """A corpus of OPUS for a pair of languages, whose codes are in alphabetical order.

    size: of the download in bytes. pairs: number of sentence pairs; 0: unknown.
    """

    name: str
    version: str
    languages: tuple[str, str]
    address: str
    size: int
    pairs: int


def opus_corpora(source: str, target: str, version: str | None = None) -> list[OpusCorpus]:
    """Return the corpora of a language pair, in either direction, in Moses format.

    version: None for the latest of each corpus. Raises ConfigError for invalid codes, and DataError if OPUS cannot be
    reached or answers with something else.
    """
    for code in (source, target):
        if not _LANGUAGE.fullmatch(code):
            raise ConfigError(f"{code!r} is not a language code, such as en, de or pt_BR")
    languages = min(source, target), max(source, target)
    query = {"source": languages[0], "target": languages[1], "preprocessing": "moses", "version": version or "latest"}
    answer = fetch_json(API, query)
    rows = answer.get("corpora") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise DataError(f"{API} does not answer with a list of corpora: its interface may have changed")
    found = [_corpus(row, languages) for row in rows]
    return sorted(each for each in found if each is not None)


def opus_corpus(name: str, source: str, target: str, version: str | None = None) -> OpusCorpus:
    """Return one corpus. Raises as `opus_corpora` does, and ConfigError if OPUS has no such corpus for the pair."""
    corpora = opus_corpora(source, target, version)
    for corpus in corpora:
        if corpus.name.lower() == name.lower():
            return corpus
    wanted = f"no corpus {name}{'' if version is None else f' of version {version}'} for {source}–{target}"
    names = {each.name.lower(): each.name for each in corpora}
    if not corpora:
        advice = "it has none for this pair: check the codes at https://opus.nlpl.eu"
    elif close := get_close_matches(name.lower(), names, 1):
        advice = f"did you mean opus/{names[close[0]]}?"
    else:
        advice = f"`dragoman data get --source {source} --target {target}` lists the corpora of this pair"
    raise ConfigError(f"OPUS has {wanted}: {advice}")


def _corpus(row: Any, languages: tuple[str, str]) -> OpusCorpus | None:
    """Return the corpus of a row of the answer, or None for a row of another kind, such as a single language."""
    if not isinstance(row, dict) or (row.get("source"), row.get("target")) != languages:
        return None
    name, version, address = row.get("corpus"), row.get("version"), row.get("url")
    if not (isinstance(name, str) and _NAME.fullmatch(name) and isinstance(address, str) and isinstance(version, str)):
        return None
    return OpusCorpus(
        name, version, languages, address, 1024 * _number(row.get("size")), _number(row.get("alignment_pairs"))
    )


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
