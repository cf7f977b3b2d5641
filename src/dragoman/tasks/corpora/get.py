"""`get_data` downloads a corpus by name, into the folder and under the names that recipes read."""

import hashlib
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from posixpath import basename
from tempfile import TemporaryDirectory

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.files import unwritable
from dragoman.base.log import info, quietly
from dragoman.data.downloads.catalogue import Corpus, Download, Pairs, find_corpus
from dragoman.data.downloads.conversions.conversion import Original
from dragoman.data.downloads.opus import opus_corpus
from dragoman.data.downloads.recorded_folder import ABOUT, SUMS, is_intact, publish, read_sums
from dragoman.data.downloads.transfer import download, format_size
from dragoman.data.downloads.unpacking import check_archive, check_space, matching, text_digest, unpack, write_text
from dragoman.tasks.corpora.split import split_data

FOLDER = "DRAGOMAN_DATA"
"""Environment variable with the folder in which recipes find their corpora."""

_OPUS = re.compile(r"opus/([\w.+-]+)(?:@([\w.+-]+))?", re.IGNORECASE)
_DOWNLOADS = ".downloads"
_OPUS_CORPUS = Corpus(
    about="a corpus of OPUS",
    languages="any pair",
    licence="see the files LICENSE and README",
    terms="https://opus.nlpl.eu",
)


@dataclass(frozen=True)
class CorpusFolder:
    """A downloaded corpus.

    files: its texts, without descriptions and checksums. terms: address of the licence. command: trains a translator on
    the files; empty for other corpora.
    """

    folder: Path
    files: tuple[Path, ...]
    licence: str
    terms: str
    command: str = ""


def get_data(
    name: str,
    out: str | Path | None = None,
    *,
    source: str | None = None,
    target: str | None = None,
    quiet: bool = False,
) -> CorpusFolder:
    """Download a corpus into a folder of its name, unless it is there already.

    name: a name that `dragoman data get` lists; or `opus/CORPUS` for a corpus of OPUS, and `opus/CORPUS@VERSION`. out:
    folder that contains the folder of the corpus (default: the environment variable DRAGOMAN_DATA, in which recipes
    find their corpora, or `data`). source, target: languages, for corpora with many pairs.

    The checksums of all files are in SHA256SUMS; a repeated call checks them and downloads what is missing or damaged.
    An interrupted download continues where it stopped. Raises ConfigError for an unknown name or pair of languages, and
    if the folder has files that this function did not write; DataError if the corpus cannot be downloaded or is not
    what was expected; ResourceError if the disk is full. In these cases, no file of the corpus is written.

    >>> from dragoman import DragomanError, get_data
    >>> try:
    ...     get_data("multi30")
    ... except DragomanError as error:
    ...     print(error)
    there is no corpus 'multi30': did you mean multi30k?
    """
    root = Path(out or os.environ.get(FOLDER) or "data")
    with quietly(quiet):
        if match := _OPUS.fullmatch(name):
            return _get_pairs(root, _OPUS_CORPUS, Pairs(corpus=match[1]), source, target, version=match[2])
        known, corpus = find_corpus(name)
        if corpus.opus is not None:
            return _get_pairs(root, corpus, corpus.opus, source, target, folder=known)
        if source or target:
            raise ConfigError(f"{known} has one set of files for all its languages: remove --source and --target")
        return _get_files(root, known, corpus)


def _get_files(root: Path, name: str, corpus: Corpus) -> CorpusFolder:
    """Download a corpus with fixed files."""
    folder = root / name
    if _is_there(folder, corpus.files()):
        return _result(folder, corpus, _recorded(folder))
    with _staging(root) as (downloads, staged):
        originals = []
        for each in corpus.downloads:
            address = corpus.addresses(each)[0]
            original = Original(address, downloads / _file_name(address))
            download(corpus.addresses(each), original.path, f"{name}/{original.name}", each.sha256)
            originals.append(original)
            if corpus.conversion is None:
                with _deleted_if_damaged(original.path):
                    _unpack_or_place(corpus, each, original, staged)
        if corpus.conversion is not None:
            with _deleted_if_damaged(*(original.path for original in originals)):
                corpus.conversion.convert(originals, staged)
        addresses = [corpus.addresses(each)[0] for each in corpus.downloads]
        (staged / f"{ABOUT}.txt").write_text(_about(name, corpus, addresses), encoding="utf-8")
        publish(staged, folder)
        _delete_downloads(downloads, addresses)
    return _result(folder, corpus, _recorded(folder))


def _unpack_or_place(corpus: Corpus, each: Download, original: Original, staged: Path) -> None:
    """Write the files that a download contains, or is."""
    for file, member in corpus.members(each).items():
        if member:
            chosen = matching(member) if file == "*" else _renaming(member, file)
            if not unpack(original.path, staged, chosen, original.address):
                raise DataError(f"{original.address} does not contain {member}: it has changed, report it")
        else:
            _place(original.path, staged / file, original.address)
    for file in corpus.members(each):
        _check_text(staged / file, corpus.checksums.get(file), original.address)


def _get_pairs(
    root: Path,
    corpus: Corpus,
    opus: Pairs,
    source: str | None,
    target: str | None,
    *,
    version: str | None = None,
    folder: str | None = None,
) -> CorpusFolder:
    """Download a corpus of OPUS, and divide it into sets if the catalogue says so."""
    source, target = _languages(opus, source, target)
    codes = [opus.codes.get(each, each) for each in (source, target)]
    first, second = sorted(codes)
    pair = f"{source}-{target}"
    place = root / "opus" / (opus.corpus + (f"@{version}" if version else "")) / f"{first}-{second}"
    if folder is not None and opus.held_out:
        place = root / folder
    texts = [f"{opus.corpus}.{first}-{second}.{code}" for code in codes]
    needed = [f"{part}.{pair}.tsv.gz" for part in ("train", "dev", "test")] if opus.held_out else texts
    result = _result(place, corpus, needed, _training_command([place / name for name in needed], pair))
    if _is_there(place, needed):
        return result
    found = opus_corpus(opus.corpus, codes[0], codes[1], version)
    with _staging(root) as (downloads, staged):
        path = downloads / _file_name(found.address)
        info(f"{found.name} {found.version}: {found.pairs:,} pairs, {format_size(found.size)}")
        download([found.address], path, f"{found.name} {pair}")

        def name(member: str) -> str | None:
            file = basename(member)
            endings = {f".{first}-{second}.{code}": text for code, text in zip(codes, texts, strict=True)}
            for ending, text in endings.items():
                if file.endswith(ending):
                    return text
            return f"{file}.{pair}.txt" if file in ("README", "LICENSE") else None

        with _deleted_if_damaged(path):
            if not {*texts} <= {*unpack(path, staged, name, found.address)}:
                raise DataError(f"{found.address} does not contain the texts {' and '.join(texts)}")
        if opus.held_out:
            _divide(staged, texts, (source, target), opus.held_out)
        title = f"{found.name} {found.version} of OPUS, {source} and {target}"
        about = _about(title, corpus, [found.address], opus.held_out)
        (staged / f"{ABOUT}.{pair}.txt").write_text(about, encoding="utf-8")
        publish(staged, place)
        _delete_downloads(downloads, [found.address])
    return result


def _training_command(files: Sequence[Path], pair: str) -> str:
    options = ("--source", "--target") if len(files) == 2 else ("--pairs", "--valid-pairs")
    given = " ".join(f"{option} {shlex.quote(str(file))}" for option, file in zip(options, files, strict=False))
    return f"dragoman train {given} --out runs/{pair}"


def _languages(opus: Pairs, source: str | None, target: str | None) -> tuple[str, str]:
    if source and target and source != target:
        return source, target
    if opus.pair is not None and not (source or target):
        return opus.pair
    raise ConfigError(f"{opus.corpus} has many languages: give two, such as --source en --target de")


def _divide(staged: Path, texts: Sequence[str], languages: tuple[str, str], held_out: int) -> None:
    """Replace the two texts of a corpus by a training, a development and a test set in one file each."""
    source, target = languages
    with TemporaryDirectory(prefix="dragoman-", dir=staged.parent) as temporary:
        folder = Path(temporary) / "sets"
        files = {side: staged / text for side, text in zip(("source", "target"), texts, strict=True)}
        sizes = {"valid": held_out, "test": held_out}
        # Cleaning is a decision of the training run; scores of mismatched pairs would take minutes.
        split_data(files, folder, sizes, {"mismatched": False}, source_language=source, target_language=target)
        for part, name in (("train", "train"), ("valid", "dev"), ("test", "test")):
            table = folder / f"{part}.tsv"
            _write_table([folder / f"{part}.{side}" for side in files], table)
            with table.open("rb") as rows:
                write_text(rows, staged / f"{name}.{source}-{target}.tsv.gz", compress=True)
    for text in texts:
        (staged / text).unlink()


def _write_table(sides: Sequence[Path], table: Path) -> None:
    """Write the lines of two files into one, separated by a tab; tabs inside a line become spaces."""
    with (
        sides[0].open(encoding="utf-8", newline="\n") as sources,
        sides[1].open(encoding="utf-8", newline="\n") as targets,
        table.open("w", encoding="utf-8", newline="\n") as file,
    ):
        for pair in zip(sources, targets, strict=True):
            source, target = (text.removesuffix("\n").replace("\t", " ") for text in pair)
            file.write(f"{source}\t{target}\n")


def _is_there(folder: Path, names: Sequence[str]) -> bool:
    """Return whether a corpus is there and intact. names: of its files; if empty, all that are recorded."""
    if not is_intact(folder, names):
        return False
    info(f"{folder} is there already, and its checksums agree")
    return True


@contextmanager
def _staging(root: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the folder of downloads, which later calls continue, and a temporary folder for files of the corpus."""
    downloads = root / _DOWNLOADS
    try:
        downloads.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(root, error) from None
    try:
        with TemporaryDirectory(prefix="dragoman-", dir=downloads) as temporary:
            yield downloads, Path(temporary)
    finally:
        with suppress(OSError):
            downloads.rmdir()  # unless it contains parts of downloads


@contextmanager
def _deleted_if_damaged(*paths: Path) -> Iterator[None]:
    """Delete downloads that prove to be damaged, so that the next call does not use them again."""
    try:
        yield
    except DataError:
        for path in paths:
            path.unlink(missing_ok=True)
        raise


def _file_name(address: str) -> str:
    return f"{hashlib.sha256(address.encode()).hexdigest()[:12]}-{basename(address)}"


def _renaming(member: str, file: str) -> Callable[[str], str | None]:
    return lambda found: file if found == member else None


def _place(path: Path, file: Path, address: str) -> None:
    """Copy a download to its place, and compress it if its name demands it. Raises DataError if it is damaged."""
    check_archive(path, address)
    check_space(file.parent, path.stat().st_size, address)
    with path.open("rb") as source:
        write_text(source, file, compress=file.suffix == ".gz" and path.suffix != ".gz")


def _check_text(path: Path, expected: str | None, address: str) -> None:
    if expected is not None and (found := text_digest(path, address)) != expected:
        raise DataError(
            f"{path.name} from {address} has another SHA-256 ({found}) than expected ({expected}), so it was not kept: "
            "it changed, or was changed on the way. Try again, or report it"
        )


def _delete_downloads(downloads: Path, addresses: Sequence[str]) -> None:
    for address in addresses:
        (downloads / _file_name(address)).unlink(missing_ok=True)


def _about(title: str, corpus: Corpus, addresses: Sequence[str], held_out: int | None = None) -> str:
    lines = [f"{title}: {corpus.about}", f"Licence: {corpus.licence} ({corpus.terms})", "Downloaded from:"]
    lines += [f"  {address}" for address in addresses]
    if held_out:
        lines += [
            f"dragoman drew {held_out:,} pairs each for dev and test. No sentence of a set is in another.",
            "Corpora of OPUS grow: other versions have other sets, on which scores cannot be compared.",
        ]
    return "\n".join([*lines, f"{SUMS} has the checksums of the files: sha256sum -c {SUMS}", ""])


def _recorded(folder: Path) -> list[str]:
    return [name for name in sorted(read_sums(folder)) if not re.match(r"(ABOUT|README|LICENSE)\b", name)]


def _result(folder: Path, corpus: Corpus, names: Sequence[str], command: str = "") -> CorpusFolder:
    return CorpusFolder(folder, tuple(folder / name for name in names), corpus.licence, corpus.terms, command)
