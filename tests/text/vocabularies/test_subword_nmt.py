"""Segmentation against the program subword-nmt with the same merges: real text, learned merges and random merges."""

import io
import os
from pathlib import Path

import pytest
from embedded_corpus import generate
from hypothesis import given, settings
from hypothesis import strategies as st
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from dragoman.data.files.lines import open_lines
from dragoman.text.symbols import UNK
from dragoman.text.vocabularies.subword_nmt import (
    VERSION_0_1,
    VERSION_0_2,
    Codes,
    SubwordNMTConfig,
    SubwordNMTTokenizer,
    read_codes,
)


def corpus() -> tuple[list[str], list[str]]:
    """Lines to learn from and lines to split: German of Multi30k if available, else of the grammar."""
    root = os.environ.get("DRAGOMAN_DATA")
    if root is not None and (Path(root) / "multi30k").is_dir():
        train, val, test = (
            list(open_lines(Path(root) / "multi30k" / f"{name}.de.gz")) for name in ("train", "val", "test_2016_flickr")
        )
        return train[:4000], [*val[:300], *test[:300]]
    generated = generate(train=3000, valid=600)
    return [pair.de for pair in generated[0]], [pair.de for pair in generated[1]]


@pytest.fixture(scope="module")
def lines() -> tuple[list[str], list[str]]:
    return corpus()


@pytest.fixture(scope="module")
def codes(lines: tuple[list[str], list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("codes") / "codes"
    with path.open("w", encoding="utf-8") as file:
        learn_bpe(io.StringIO("\n".join(lines[0])), file, 500)
    return path


def original(codes: str, lines: list[str]) -> list[str]:
    program = BPE(io.StringIO(codes))
    return [program.process_line(line) for line in lines]


def test_codes_of_the_program_split_real_text_as_the_program_does(
    lines: tuple[list[str], list[str]], codes: Path
) -> None:
    tokenizer = SubwordNMTConfig(codes=codes).learn([*lines[0], *lines[1]])  # all characters are known
    expected = original(codes.read_text(encoding="utf-8"), lines[1])
    found = [" ".join(tokenizer.pieces(ids)) for ids in tokenizer.encode_batch(lines[1])]
    assert found == expected
    assert sum("@@" in line for line in found) > len(found) / 2
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_batch(lines[1])] == lines[1]


def test_unseen_characters_are_unknown_and_do_not_affect_their_neighbours(
    lines: tuple[list[str], list[str]], codes: Path
) -> None:
    tokenizer = SubwordNMTConfig(codes=codes).learn(lines[0])
    program = BPE(io.StringIO(codes.read_text(encoding="utf-8")))
    strange = [
        f"{line[:place]}{letter}{line[place:]}"
        for place, (line, letter) in enumerate(zip(lines[1], "Ω漢🐕†ŋ" * 20, strict=False), start=1)
    ]
    known = {letter for line in lines[0] for letter in line}
    found = tokenizer.encode_batch(strange)
    for text, ids in zip(strange, found, strict=True):
        expected = program.process_line(text).split(" ")
        shown = [
            "<unk>" if (bare := piece.removesuffix("@@")) not in known and len(bare) == 1 else piece
            for piece in expected
        ]
        assert tokenizer.pieces(ids) == shown
        assert "<unk>" in shown
    assert tokenizer.decode(found[0], [tokenizer.words(strange[0])[1][found[0].index(UNK)]]) == strange[0]


HEADERS = {"usual": "#version: 0.2\n", "oldest": "", "oldest named": "#version: 0.1\n"}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_published_codes(tmp_path: Path, header: str, ending: str) -> None:
    """With and without a version, and with a line ending of another editor; each has its own end of word."""
    merges = "e n</w>|e r</w>|c h|i e</w>|d er</w>|u n|un d</w>" if header == "usual" else "e n|n </w>|en </w>|c h|d e"
    (tmp_path / "codes").write_bytes(
        ((HEADERS[header] + merges.replace("|", "\n")).replace("\n", ending) + ending).encode()
    )
    tokenizer = SubwordNMTConfig(codes=tmp_path / "codes").learn(["der und die Hunde rennen machen"])
    text = "und der machen die Hunde den en n"
    assert [" ".join(tokenizer.pieces(tokenizer.encode(text)))] == original(
        (tmp_path / "codes").read_text(encoding="utf-8"), [text]
    )


def test_merges_learned_here_split_text_as_the_program_does(lines: tuple[list[str], list[str]]) -> None:
    tokenizer = SubwordNMTConfig(merges=400).learn([*lines[0], *lines[1]])
    merges = tokenizer._codes.merges
    assert len(merges) == 400
    written = "#version: 0.2\n" + "\n".join(" ".join(pair) for pair in merges)
    found = [" ".join(tokenizer.pieces(ids)) for ids in tokenizer.encode_batch(lines[1])]
    assert found == original(written, lines[1])


def test_learned_merges_equal_the_programs_unless_pairs_are_equally_frequent(
    lines: tuple[list[str], list[str]], codes: Path
) -> None:
    found = SubwordNMTConfig(merges=500).learn(lines[0])._codes.merges
    expected = read_codes(codes).merges
    assert found[:20] == expected[:20]
    assert len(set(found) & set(expected)) > 470  # in the grammar many pairs are equally frequent


def test_the_number_of_merges_is_the_programs_option(lines: tuple[list[str], list[str]], codes: Path) -> None:
    tokenizer = SubwordNMTConfig(codes=codes, merges=100).learn(lines[1])
    program = BPE(io.StringIO(codes.read_text(encoding="utf-8")), merges=100)
    found = [" ".join(tokenizer.pieces(ids)) for ids in tokenizer.encode_batch(lines[1][:200])]
    assert found == [program.process_line(line) for line in lines[1][:200]]


SYMBOL = st.text(alphabet="ab<", min_size=1, max_size=3)
PAIR = st.tuples(SYMBOL, st.one_of(SYMBOL, SYMBOL.map(lambda symbol: symbol + "</w>"), st.just("</w>")))


@settings(max_examples=100)
@given(
    merges=st.lists(PAIR, min_size=1, max_size=25),
    words=st.lists(st.text(alphabet="ab<", min_size=1, max_size=12), min_size=1, max_size=6),
    version=st.sampled_from([VERSION_0_1, VERSION_0_2]),
)
def test_any_merges_in_any_order_split_text_as_the_program_does(
    merges: list[tuple[str, str]], words: list[str], version: tuple[int, ...]
) -> None:
    header = "#version: 0.2\n" if version == VERSION_0_2 else ""
    text = " ".join(words)
    (expected,) = original(header + "\n".join(" ".join(pair) for pair in merges), [text])
    tokenizer = SubwordNMTTokenizer(Codes(version, tuple(merges)), "ab<")
    ids = tokenizer.encode(text)
    assert " ".join(tokenizer.pieces(ids)) == expected
    assert tokenizer.decode(ids) == text
