"""`dragoman data get`: corpora of the catalogue and of OPUS, from a server that stands for their hosts."""

import gzip
import io
import re
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from corpus_server import CorpusServer, corpus_server
from repository import ROOT

from dragoman import get_data, recipes
from dragoman.base.errors import ConfigError, DataError
from dragoman.cli.main import main
from dragoman.data.downloads import transfer
from dragoman.data.downloads.catalogue import catalogue

SST2 = "/raw.githubusercontent.com/clairett/pytorch-sentiment-classification/master/data/SST2"
MULTI30K = "/raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
PAIRS = [(f"The {a}{b} runs.", f"狗{a}{b}跑。") for a in "bdfgk" for b in "aeiouylmnrst"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[CorpusServer]:
    monkeypatch.setattr(transfer, "_FIRST_DELAY", 0.0)
    with corpus_server() as running:
        monkeypatch.setenv("DRAGOMAN_MIRROR", running.address)
        yield running


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def moses(corpus: str, pair: str, texts: list[str]) -> bytes:
    """Return an archive as OPUS's are. texts: those of both languages of the pair, which is in alphabetical order."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for language, text in zip(pair.split("-"), texts, strict=True):
            archive.writestr(f"{corpus}.{pair}.{language}", text)
        archive.writestr("README", "Corpus Name: it\n")
        archive.writestr("LICENSE", "CC\n")
        archive.writestr(f"{corpus}.{pair}.xml", "<x/>")
    return file.getvalue()


def sides(pairs: list[tuple[str, str]]) -> list[str]:
    return ["".join(pair[side] + "\n" for pair in pairs) for side in (0, 1)]


def add_sst2(server: CorpusServer) -> None:
    server.files |= {f"{SST2}/{part}.tsv": f"a film of {part}\t1\n".encode() * 100 for part in ("train", "dev", "test")}


def test_a_corpus_has_the_names_that_recipes_read(
    server: CorpusServer, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in ("train", "val", "test_2016_flickr"):
        for language in ("en", "de", "fr"):
            server.files[f"{MULTI30K}/{part}.{language}.gz"] = gzip.compress(f"{part} {language}\n".encode())
    assert main(["data", "get", "multi30k"]) == 1  # the test set is not the real one, whose checksum is known
    assert re.search(r"test_2016_flickr.en.gz from \S+ has another SHA-256", capsys.readouterr().err)
    assert not (root / "multi30k").exists()
    add_sst2(server)
    assert main(["data", "get", "SST2"]) == 0
    assert f"{root / 'sst2'}: 3 files" in (shown := capsys.readouterr().out)
    assert "licence: research (https://nlp.stanford.edu/sentiment/)" in shown
    with gzip.open(root / "sst2" / "train.tsv.gz", "rt") as file:
        assert file.readline() == "a film of train\t1\n"
    assert "Licence: research" in (root / "sst2" / "ABOUT.txt").read_text()
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=root / "sst2", check=True)
    assert not (root / ".downloads").exists() or not list((root / ".downloads").glob("*.tsv"))


def test_a_repeated_call_checks_and_repairs(server: CorpusServer, root: Path) -> None:
    add_sst2(server)
    folder = get_data("sst2").folder
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    del server.requests[:]
    assert [path.name for path in get_data("sst2").files] == ["dev.tsv.gz", "test.tsv.gz", "train.tsv.gz"]
    assert not server.requests
    (folder / "dev.tsv.gz").write_bytes(b"damaged")
    (folder / "test.tsv.gz").unlink()
    get_data("sst2")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == whole
    (folder / "dev.tsv.gz").unlink()
    server.files[f"{SST2}/train.tsv"] += b"a new line\t0\n"
    with pytest.raises(DataError, match="train.tsv.gz differs from the first download.*move .*sst2 away"):
        get_data("sst2")
    assert (folder / "train.tsv.gz").read_bytes() == whole["train.tsv.gz"]


def test_files_of_other_origin_are_kept(server: CorpusServer, root: Path) -> None:
    add_sst2(server)
    (root / "sst2").mkdir(parents=True)
    (root / "sst2" / "train.tsv.gz").write_bytes(b"mine")
    with pytest.raises(ConfigError, match="train.tsv.gz exists, but `dragoman data get` did not write it"):
        get_data("sst2")
    assert not server.requests


def test_an_interrupted_corpus_does_not_look_complete(server: CorpusServer, root: Path) -> None:
    add_sst2(server)
    server.breaks[f"{SST2}/test.tsv"] = [900, *[0] * 10]
    with pytest.raises(DataError, match="sst2/test.tsv cannot be downloaded: .* 1 kB are kept, repeat"):
        get_data("sst2")
    assert not (root / "sst2").exists()
    del server.breaks[f"{SST2}/test.tsv"], server.requests[:]
    get_data("sst2")
    assert [(path, headers.get("range")) for path, headers in server.requests] == [(f"{SST2}/test.tsv", "bytes=900-")]


def test_opus_by_language_pair(server: CorpusServer, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    english_german = [side[::-1] for side in [("de", "Der Hund\n"), ("en", "The dog\n")]]
    server.add_opus("TED2020", "de-en", moses("TED2020", "de-en", [text for text, _ in english_german]))
    server.add_opus("TED2020", "de-en", b"older", version="v0", latest=False)
    server.add_opus("Books", "en-fr", b"another pair")
    assert main(["data", "get", "--source", "en", "--target", "de"]) == 0
    assert re.fullmatch(r"opus/TED2020 +40 pairs +1 kB  v1\n", capsys.readouterr().out)
    result = get_data("opus/ted2020", source="en", target="de")
    assert [path.read_text() for path in result.files] == ["The dog\n", "Der Hund\n"]
    assert result.folder == root / "opus" / "ted2020" / "de-en"
    assert (result.folder / "LICENSE.en-de.txt").read_text() == "CC\n"
    assert "TED2020 v1 of OPUS" in (result.folder / "ABOUT.en-de.txt").read_text()
    with pytest.raises(ConfigError, match="OPUS has no corpus TED202 for en–de: did you mean opus/TED2020?"):
        get_data("opus/TED202", source="en", target="de")
    with pytest.raises(ConfigError, match="it has none for this pair"):
        get_data("opus/TED2020", source="en", target="xx")
    with pytest.raises(ConfigError, match="has many languages: give two, such as --source en --target de"):
        get_data("europarl", source="en")
    with pytest.raises(DataError, match=r"is not an archive or is damaged .*: try again"):
        get_data("opus/TED2020@v0", source="de", target="en", out=root / "old")


def test_tatoeba_is_divided_by_sentence(server: CorpusServer, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = catalogue()["tatoeba-cjk"]
    assert entry.opus is not None
    small = entry.model_copy(update={"opus": entry.opus.model_copy(update={"held_out": 5})})
    monkeypatch.setattr("dragoman.tasks.corpora.get.find_corpus", lambda name: (name, small))
    pairs = [*PAIRS, PAIRS[0], ("A\ttab.", "制表符。")]
    server.add_opus("Tatoeba", "cmn-en", moses("Tatoeba", "cmn-en", sides(pairs)[::-1]))
    result = get_data("tatoeba-cjk", source="en", target="zh")
    sets = []
    for path, name in zip(result.files, ("train", "dev", "test"), strict=True):
        assert path == root / "tatoeba-cjk" / f"{name}.en-zh.tsv.gz"
        with gzip.open(path, "rt", encoding="utf-8") as file:
            sets.append([tuple(line.rstrip("\n").split("\t")) for line in file])
    assert [len(each) for each in sets[1:]] == [5, 5]
    assert {pair for each in sets for pair in each} == {*PAIRS, ("A tab.", "制表符。")}
    assert not {*sets[0]} & {*sets[1], *sets[2]}
    assert "No sentence of a set is in another" in (root / "tatoeba-cjk" / "ABOUT.en-zh.txt").read_text()


def test_the_catalogue_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "get"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert [line.split()[0] for line in lines[:-1:2]] == [*catalogue(), "opus/CORPUS"]
    assert any(re.search(r"204, from .* · 25.6 MB · CC BY-SA 4.0 \(https://", line) for line in lines)
    assert main(["data", "get", "--out", "folder"]) == 2
    assert main(["data", "get", "sst3"]) == 2
    assert "did you mean sst2?" in capsys.readouterr().err


def test_entries_are_complete() -> None:
    for name, corpus in catalogue().items():
        assert bool(corpus.downloads) != (corpus.opus is not None)
        assert corpus.terms.startswith("https://") and corpus.licence
        files = [file for each in corpus.downloads for file in corpus.members(each)]
        assert {*corpus.checksums} <= {*files}, name
        for each in corpus.downloads:
            assert all(address.startswith("https://") for address in corpus.addresses(each))


def test_recipes_name_corpora_that_exist_and_read_their_files() -> None:
    for recipe in recipes():
        text = recipe.path.read_text(encoding="utf-8")
        header = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
        assert recipe.corpora or re.search(r"^#     dragoman (scenes|demo) ", header, re.MULTILINE), recipe.name
        assert {*recipe.corpora} <= {*catalogue()}, recipe.name
        read = {*re.findall(r"\$\{?DRAGOMAN_DATA\}?/([\w-]+)/", text)}
        assert read <= {*recipe.corpora}, f"{recipe.name} does not say what it needs"
        needed = read | {*re.findall(r"\b([\w-]+)/", header)}
        assert {*recipe.corpora} <= needed, f"{recipe.name} does not need what it names"
        for corpus, file in re.findall(r"\$\{DRAGOMAN_DATA\}/([\w-]+)/([^\"\s/]+)", text):
            if (entry := catalogue()[corpus]).opus is None:
                assert file in entry.files(), f"{recipe.name} reads another file of {corpus}"


def test_corpora_of_the_documentation_and_of_benchmarks_can_be_downloaded() -> None:
    left_out = {"alignments", "qamr"}
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.yaml")]
    read = {corpus for page in pages for corpus in re.findall(r"DRAGOMAN_DATA\}?/([\w-]+)/", page.read_text("utf-8"))}
    assert {"treebank", "books", "sick"} <= read
    assert read <= {*catalogue()} | left_out
    named = (ROOT / "docs/how-to/corpora/get-data.md").read_text("utf-8")
    assert all(f"`{name}`" in named for name in left_out), "the page explains what cannot be downloaded"


def test_the_file_of_the_catalogue_is_in_wheels() -> None:
    assert (ROOT / "src" / "dragoman" / "data" / "downloads" / "catalogue.yaml").is_file()
