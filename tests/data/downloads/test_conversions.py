"""Corpora that are conversions, from small originals in the layout of the published ones."""

import gzip
import io
import json
import lzma
import pickle
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from corpus_server import CorpusServer, corpus_server

from dragoman import get_data
from dragoman.base.errors import DataError
from dragoman.data.downloads import transfer
from dragoman.data.downloads.catalogue import catalogue

GITHUB = "/raw.githubusercontent.com"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[CorpusServer]:
    monkeypatch.setattr(transfer, "_FIRST_DELAY", 0.0)
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path))
    with corpus_server() as running:
        monkeypatch.setenv("DRAGOMAN_MIRROR", running.address)
        yield running


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that changes the settings of a corpus's conversion, for smaller originals."""

    def change(name: str, first: int = 99, **settings: Any) -> None:
        entry = catalogue()[name]
        downloads = tuple(each.model_copy(update={"sha256": None}) for each in entry.downloads[:first])
        assert entry.conversion is not None
        conversion = entry.conversion.model_copy(update=settings)
        small = entry.model_copy(update={"conversion": conversion, "downloads": downloads})
        monkeypatch.setattr("dragoman.tasks.corpora.get.find_corpus", lambda _: (name, small))

    return change


def zipped(files: dict[str, str | bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def tarred(files: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content.encode())
            archive.addfile(member, io.BytesIO(content.encode()))
    return file.getvalue()


def read(path: Path) -> list[str]:
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opened(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")


def sgml(*segments: str) -> str:
    """Return a test set as WMT's."""
    lines = "\n".join(f'<seg id="{number}">{text}</seg>' for number, text in enumerate(segments, 1))
    return f'<refset setid="newstest" trglang="de">\n<doc docid="a">\n<p>\n{lines}\n</p>\n</doc>\n</refset>\n'


def test_newstest_has_one_line_per_segment(server: CorpusServer, tmp_path: Path) -> None:
    names = {
        name: sgml(f" {name} S&amp;P  at 5&lt;6 & &quot;up&quot; ", "Äpfel\n im Haus") for name in ("en", "de", "fr")
    }
    server.files["/statmt.org/wmt13/test.tgz"] = tarred(
        {f"test/newstest2013-src.{name}.sgm": text for name, text in names.items()}
        | {"test/newstest2013-src.cs.sgm": sgml("no")}
    )
    server.files["/statmt.org/wmt14/test-full.tgz"] = tarred(
        {
            f"test-full/newstest2014-{pair}en-{part}.{name}.sgm": names[name]
            for pair, part, name in (("de", "src", "en"), ("de", "ref", "de"), ("fr", "src", "en"), ("fr", "ref", "fr"))
        }
    )
    result = get_data("newstest")
    assert len(result.files) == 7 and "test.tgz" in (tmp_path / "newstest" / "ABOUT.txt").read_text()
    for file, name in (("2013.fr", "fr"), ("2014.en-de.de", "de"), ("2014.en-fr.en", "en")):
        assert read(tmp_path / "newstest" / f"newstest{file}.gz") == [f'{name} S&P at 5<6 & "up"', "Äpfel im Haus"]
    requests = len(server.requests)
    assert get_data("newstest") == result and len(server.requests) == requests
    server.files["/statmt.org/wmt13/test.tgz"] = tarred({"test/newstest2013-src.en.sgm": names["en"]})
    with pytest.raises(DataError, match="neither it nor another archive contains test/newstest2013-src.de.sgm"):
        get_data("newstest", tmp_path / "other")
    assert not list((tmp_path / "other").glob("newstest/*"))


def test_europarl20k_has_the_first_pairs_with_text(
    server: CorpusServer, tmp_path: Path, changed: Callable[..., None]
) -> None:
    changed("europarl20k", count=3)
    sides = {"de": "Eins\n\nDrei \nVier\nFünf\n", "en": "One\nTwo\nThree\n\nFive\n"}
    server.files["/www.statmt.org/europarl/v7/de-en.tgz"] = tarred(
        {f"europarl-v7.de-en.{language}": text for language, text in sides.items()}
    )
    get_data("europarl20k")
    assert read(tmp_path / "europarl20k" / "train.de.gz") == ["Eins", "Drei", "Fünf"]
    assert read(tmp_path / "europarl20k" / "train.en.gz") == ["One", "Three", "Five"]
    changed("europarl20k", count=4)
    with pytest.raises(DataError, match="it has only 3 pairs"):
        get_data("europarl20k", tmp_path / "other")


def declaration(preamble: list[str], *articles: list[str]) -> str:
    """Return a translation of the declaration as the Unicode project's. Its articles have a list if they have parts."""

    def paragraphs(texts: list[str]) -> str:
        if len(texts) == 1:
            return f"<para>{texts[0]}</para>"
        return "<orderedlist>" + "".join(f"<listitem><para>{t}</para></listitem>" for t in texts) + "</orderedlist>"

    parts = "".join(
        f'<article number="{number}">\n<title>Article {number}</title>\n{paragraphs(texts)}</article>\n'
        for number, texts in enumerate(articles, 1)
    )
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!--© OHCHR-->\n<udhr key="x" xmlns="http://www.unhchr.ch/udhr">\n'
    first = "".join(f"<para>{text}</para>" for text in preamble)
    title = "<title>The</title><note><para>of</para></note>"
    return f"{head}{title}<preamble><title>P</title>{first}</preamble>{parts}</udhr>"


def test_the_declaration_is_aligned_by_article(
    server: CorpusServer, tmp_path: Path, changed: Callable[..., None]
) -> None:
    changed("udhr", languages=("deu_1996", "mal"))
    texts = {
        "eng": declaration(["Whereas", "Now"], ["All\n   are free"], ["a", "b"], ["Life"]),
        "deu_1996": declaration(["Da"], ["Alle sind frei"], ["ä", "ß &amp; c"], ["Leben"]),
        "mal": declaration(["x", "y"], ["1"], ["2"], ["3"]),
        "xxx": "<no/>",
    }
    server.files["/www.unicode.org/udhr/assemblies/udhr_xml.zip"] = zipped(
        {f"udhr_{key}.xml": text for key, text in texts.items()} | {"index.xml": "<udhrs/>"}
    )
    get_data("udhr")
    folder = tmp_path / "udhr"
    assert read(folder / "en-deu_1996.tsv.gz") == ["All are free\tAlle sind frei", "a\tä", "b\tß & c", "Life\tLeben"]
    assert read(folder / "en-mal.tsv.gz") == ["All are free\t1", "Life\t3", "Whereas\tx", "Now\ty"]
    changed("udhr", languages=("xxx",))
    with pytest.raises(DataError, match="no article of xxx has the paragraphs of the English text"):
        get_data("udhr", tmp_path / "other")


BOOK = """# Title: It

## Author: A

-------
Book {number} begins.

## Chapter 1

 'So *very* strange--_I_ do,'

  *   *   *

     *A verse
       my_self.*
"""


def test_books_have_one_paragraph_per_line(server: CorpusServer, tmp_path: Path, changed: Callable[..., None]) -> None:
    entry = catalogue()["books"]
    addresses = [entry.addresses(each)[0] for each in entry.downloads]
    assert len({*addresses}) == 81 and addresses[57].endswith(
        "/Oscar%20Wilde/The%20Happy%20Prince%20%26%20Other%20Tales.md"
    )
    changed("books", first=4, parts=(("train-1", 1), ("valid", 2), ("test", 1)))
    for number, address in enumerate(addresses[:4], 1):
        server.files[address.removeprefix("https:/")] = BOOK.format(number=number).encode()
    get_data("books")
    lines = read(tmp_path / "books" / "valid.txt.xz")
    book = ["Book 2 begins.", "'So very strange--I do,'", "*A verse", "my_self.*"]
    assert lines[:5] == [*book, ""] and lines[5] == "Book 3 begins." and len(lines) == 9
    titles = [line.split("\t") for line in read(tmp_path / "books" / "TITLES.tsv")]
    assert titles[1] == ["train-1", "Lewis Carroll/Alice's Adventures in Wonderland", "4", "10"]
    assert [row[0] for row in titles] == ["file", "train-1", "valid", "valid", "test"]
    server.files[addresses[3].removeprefix("https:/")] = b"# Title: It\n"
    with pytest.raises(DataError, match="it has no text"):
        get_data("books", tmp_path / "other")


def test_reviews_are_balanced_and_keep_the_films_apart(
    server: CorpusServer, tmp_path: Path, changed: Callable[..., None]
) -> None:
    changed("imdb5k", train=8, dev=4, test=6)
    reviews = {
        f"aclImdb/{part}/{label}/{number}_{rating}.txt": f"{part} {label} {number}<br /><br />It's “good”. <br/>"
        for part in ("train", "test")
        for label, rating in (("pos", 8), ("neg", 3))
        for number in range(7)
    }
    extra = {"aclImdb/README": "no", "aclImdb/train/unsup/1_0.txt": "no", "aclImdb/train/labeledBow.feat": "9 0:9"}
    path = "/ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"
    server.files[path] = tarred(extra | reviews)
    get_data("imdb5k")
    sets = {
        name: [json.loads(line) for line in read(tmp_path / "imdb5k" / f"{name}.jsonl.gz")]
        for name in ("train", "dev", "test")
    }
    assert {name: len(rows) for name, rows in sets.items()} == {"train": 8, "dev": 4, "test": 6}
    for name, rows in sets.items():
        assert sum(row["label"] == "pos" for row in rows) == len(rows) // 2
        assert all(row["rating"] == (8 if row["label"] == "pos" else 3) for row in rows)
        assert all(row["id"].startswith("test" if name == "test" else "train") for row in rows)
    first = sets["test"][0]
    assert first["text"] == f"test {first['label']} {first['id'].split('/')[2].split('_')[0]}\nIt's “good”."
    assert len({row["id"] for rows in sets.values() for row in rows}) == 18
    # The order in the archive does not matter.
    server.files[path] = tarred(dict(sorted((extra | reviews).items(), reverse=True)))
    again = get_data("imdb5k", tmp_path / "again")
    assert [file.read_bytes() for file in again.files] == [
        (tmp_path / "imdb5k" / f.name).read_bytes() for f in again.files
    ]
    changed("imdb5k", train=8, dev=4, test=16)
    with pytest.raises(DataError, match="it has too few reviews in test"):
        get_data("imdb5k", tmp_path / "other")


def test_articles_are_in_the_official_sets(server: CorpusServer, tmp_path: Path) -> None:
    folder = "CRAFT-5.0.2/structural-annotation/treebank/penn"
    files: dict[str, str | bytes] = {
        f"{folder}/{n}.tree": f"( (S (NN {n})\n  (. .)) )\n( (NP (NN β)) )\n" for n in range(1, 5)
    }
    sets = {"train": "3\n1\n", "dev": "2\n", "test": "4\n"}
    files |= {f"CRAFT-5.0.2/articles/ids/craft-ids-{name}.txt": ids for name, ids in sets.items()}
    path = "/github.com/UCDenver-ccp/CRAFT/archive/refs/tags/v5.0.2.zip"
    server.files[path] = zipped(files)
    get_data("craft-treebank")
    trees = ["( (S (NN 3) (. .)) )", "( (NP (NN β)) )", "( (S (NN 1) (. .)) )", "( (NP (NN β)) )"]
    assert read(tmp_path / "craft-treebank" / "train.mrg.xz") == trees
    assert read(tmp_path / "craft-treebank" / "test.mrg.xz")[0] == "( (S (NN 4) (. .)) )"
    del files[f"{folder}/2.tree"]
    server.files[path] = zipped(files)
    with pytest.raises(DataError, match="it has no trees of article 2"):
        get_data("craft-treebank", tmp_path / "other")
    assert not list((tmp_path / "other").rglob("*.mrg.xz")) and not list((tmp_path / "other").rglob("*.zip"))


def test_questions_are_converted_to_utf_8_and_pairs_are_joined(server: CorpusServer, tmp_path: Path) -> None:
    for name in ("train_5500", "TREC_10"):
        text = f"DESC:def What is {name} ?\nENTY:food What is crème brûlée ?\n"
        server.files[f"/cogcomp.seas.upenn.edu/Data/QA/QC/{name}.label"] = text.encode("latin-1")
    get_data("trec")
    lines = ["DESC:def What is TREC_10 ?", "ENTY:food What is crème brûlée ?"]
    assert read(tmp_path / "trec" / "test.txt.gz") == lines
    server.files["/github.com/alexwarstadt/blimp/raw/master/BLiMP.zip"] = zipped(
        {"data/b.jsonl": '{"UID": "b"}\n', "__MACOSX/data/._b.jsonl": b"\x00\xff", "data/a.jsonl": '{"UID": "a"}\n{}\n'}
    )
    get_data("blimp")
    assert read(tmp_path / "blimp" / "blimp.jsonl.gz") == ['{"UID": "a"}', "{}", '{"UID": "b"}']


class Python2Pickler(pickle._Pickler):  # type: ignore[name-defined, misc]
    """Writes pickles as Python 2, NumPy 1 and SciPy 0.17 did: strings of bytes, and the names of that time."""

    def save_bytes(self, content: bytes) -> None:
        self.write(pickle.BINSTRING + len(content).to_bytes(4, "little") + content)  # type: ignore[attr-defined]

    dispatch: ClassVar[dict[Any, Any]] = {**pickle._Pickler.dispatch, bytes: save_bytes}  # type: ignore[attr-defined]


def python2(content: Any, protocol: int = 2) -> bytes:
    file = io.BytesIO()
    Python2Pickler(file, protocol).dump(content)  # type: ignore[no-untyped-call]
    return file.getvalue().replace(b"scipy.sparse._csr", b"scipy.sparse.csr").replace(b"numpy._core", b"numpy.core")


def add_network(server: CorpusServer, name: str, labels: int) -> list[list[int]]:
    """Add a network of 9 nodes: 6 known ones, of which 2 are for training, and 7 and 8 for testing; 6 has no text."""
    sparse = pytest.importorskip("scipy.sparse")
    words = [[0, 3], [1], [2], [], [0, 1], [4], [1, 4], [3]]
    rows = np.zeros((8, 5), dtype=np.float32)
    for row, columns in zip(rows, words, strict=True):
        row[columns] = 1
    classes = np.eye(labels, dtype=np.int32)[[0, 1, 1, 0, 1, 0, 1, 0]]
    graph = defaultdict(list, {0: [1, 0, 8], 1: [0, 1, 1], 7: [8], 8: [7, 0], **{node: [] for node in range(2, 7)}})
    tested = [7, 8]
    parts = {
        "x": python2(sparse.csr_matrix(rows[:2])),
        "allx": python2(sparse.csr_matrix(rows[:6])),
        "tx": python2(sparse.csr_matrix(rows[6:]), protocol=1),
        "y": python2(classes[:2]),
        "ally": python2(np.asfortranarray(classes[:6])),
        "ty": python2(classes[6:], protocol=1),
        "graph": python2(graph),
        "test.index": "".join(f"{node}\n" for node in tested[::-1]).encode(),
    }
    for part, content in parts.items():
        server.files[f"{GITHUB}/kimiyoung/planetoid/master/data/ind.{name}.{part}"] = content
    return words


@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_citation_networks_keep_the_split(server: CorpusServer, tmp_path: Path, name: str) -> None:
    words = add_network(server, name, {"cora": 7, "citeseer": 6}[name])
    get_data(name)
    header, *rows = [line.split("\t") for line in read(tmp_path / name / "nodes.tsv.gz")]
    assert header == ["id", "split", "label", "words"]
    assert [row[1] for row in rows] == ["train"] * 2 + ["valid"] * 4 + ["none"] + ["test"] * 2
    texts = [" ".join(map(str, each)) for each in words]
    assert [row[3] for row in rows] == [*texts[:6], "", texts[7], texts[6]]  # the test nodes were listed 8, 7
    first, second = {"cora": ("Theory", "Reinforcement_Learning"), "citeseer": ("AI", "ML")}[name]
    order = [first, second, second, first, second, first, "", first, second]
    assert [row[2] for row in rows] == order
    assert read(tmp_path / name / "edges.tsv.gz") == ["0\t1", "0\t8", "7\t8"]


class Intruder:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (Path("harm"), "done")


@pytest.mark.parametrize(
    "content",
    [pickle.dumps(Intruder()), b"\x80\x02c__builtin__\neval\nU\x01xR.", b"no"],
    ids=["a method", "eval", "text"],
)
def test_a_network_that_names_anything_but_arrays_is_refused(
    server: CorpusServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    add_network(server, "cora", 7)
    server.files[f"{GITHUB}/kimiyoung/planetoid/master/data/ind.cora.graph"] = content
    with pytest.raises(DataError, match=r"ind.cora.graph is not as expected: it is not a pickle of arrays \("):
        get_data("cora")
    assert not (tmp_path / "harm").exists() and not (tmp_path / "cora").exists()


def test_a_network_whose_files_do_not_fit_is_refused(server: CorpusServer) -> None:
    add_network(server, "cora", 7)
    server.files[f"{GITHUB}/kimiyoung/planetoid/master/data/ind.cora.test.index"] = b"7\n99\n"
    with pytest.raises(DataError, match="the files beside it do not fit together"):
        get_data("cora")
