"""The catalogue of corpora that `dragoman data get` downloads: the file `catalogue.yaml`."""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from posixpath import basename
from urllib.parse import urljoin

from pydantic import Field

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import parse_settings
from dragoman.base.settings.yaml import parse_yaml
from dragoman.data.downloads.conversions.union import AnyConversion

_FILE = Path(__file__).with_name("catalogue.yaml")


class Download(Config):
    """One download, from which files of a corpus are made."""

    address: str = Field(description="Address, or the part that follows the base of the corpus.")
    others: tuple[str, ...] = Field((), description="Addresses of the same file, used if the first does not have it.")
    sha256: str | None = Field(None, description="SHA-256 of the download.")
    files: dict[str, str] = Field(
        {},
        description="For each file of the corpus, the file in the downloaded archive; empty: the download itself. The "
        "name * stands for the names of all files in the archive that match a pattern. If a name ends in .gz and what "
        "it is made from does not, the file is compressed. Default: the download under its own name.",
    )


class Pairs(Config):
    """A corpus of OPUS, which has a download for each pair of languages."""

    corpus: str = Field(description="Name in OPUS.")
    pair: tuple[str, str] | None = Field(None, description="Languages by default.")
    codes: dict[str, str] = Field({}, description="Codes of OPUS for languages whose code is another.")
    held_out: int | None = Field(
        None, description="Number of pairs of a development set, and of a test set; null: the corpus is not divided."
    )


class Corpus(Config):
    """An entry of the catalogue. It has either downloads, or pairs of OPUS."""

    about: str = Field(description="What the corpus is.")
    languages: str = Field(description="Its languages.")
    licence: str = Field(description="Its licence.")
    terms: str = Field(description="Address of the licence, or of the page that states it.")
    size: int | None = Field(
        None, description="Size of the downloads in bytes, if it is known and does not depend on the languages."
    )
    base: str = Field("", description="First part of the addresses.")
    downloads: tuple[Download, ...] = Field((), description="Downloads.")
    conversion: AnyConversion | None = Field(
        None, description="How the files of the corpus are made of all downloads, which then have no `files`."
    )
    opus: Pairs | None = Field(None, description="Corpus of OPUS.")
    checksums: dict[str, str] = Field({}, description="SHA-256 of the texts of files, without their compression.")

    def addresses(self, download: Download) -> list[str]:
        """Return the complete addresses of a download, the preferred one first."""
        return [urljoin(self.base, address) for address in (download.address, *download.others)]

    def members(self, download: Download) -> dict[str, str]:
        """Return the names of files with the file in the archive that each is made from."""
        return download.files or {basename(download.address): ""}

    def files(self) -> list[str]:
        """Return the names of all files that are known in advance."""
        if self.conversion is not None:
            return list(self.conversion.names())
        return [file for each in self.downloads for file in self.members(each) if file != "*"]


class _Catalogue(Config):
    corpora: dict[str, Corpus] = Field(description="Corpora by name.")


@cache
def catalogue() -> Mapping[str, Corpus]:
    """Return the corpora of the catalogue by name."""
    content = parse_yaml(_FILE.read_text(encoding="utf-8"), _FILE.name).content
    return parse_settings({"corpora": content}, _Catalogue, _FILE.name).corpora


def find_corpus(name: str) -> tuple[str, Corpus]:
    """Return the name and the entry of a corpus, whose name may be in any case. Raises ConfigError for another name."""
    names = {each.lower(): each for each in catalogue()}
    if name.lower() in names:
        found = names[name.lower()]
        return found, catalogue()[found]
    close = get_close_matches(name.lower(), names, 1)
    advice = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(names)}, or opus/CORPUS"
    raise ConfigError(f"there is no corpus '{name}': {advice}")
