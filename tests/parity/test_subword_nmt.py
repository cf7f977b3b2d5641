"""Segmentation against the program subword-nmt on the same merges: real text, learned merges, and any merges at all."""

import io
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from dragoman.data.readers import open_lines
from dragoman.text.subword_nmt import OLDEST, USUAL, Codes, SubwordNMTConfig, SubwordNMTTokenizer, read_codes


def corpus() -> tuple[list[str], list[str]]:
    """Lines to learn from and lines to split: German of Multi30k where it is there, else of the grammar."""
    root = os.environ.get("DRAGOMAN_DATA")
    if root is not None and (Path(root) / "multi30k").is_dir():
        lines = [list(open_lines(Path(root) / "multi30k" / f"{name}.de.gz")) for name in ("train", "val")]
        return lines[0][:4000], lines[1]
    pytest.skip("DRAGOMAN_DATA, the folder of the corpora, is not set")


@pytest.fixture(scope="module")
def lines() -> tuple[list[str], list[str]]:
    return corpus()


@pytest.fixture(scope="module")
def codes(lines: tuple[list[str], list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("codes") / "codes"
    with path.open("w", encoding="utf-8") as file:
        learn_bpe(io.StringIO("\n".join(lines[0])), file, 500)
    return path


def theirs(codes: str, lines: list[str]) -> list[str]:
    program = BPE(io.StringIO(codes))
    return [program.process_line(line) for line in lines]


def test_codes_of_the_program_split_real_text_as_the_program_does(
    lines: tuple[list[str], list[str]], codes: Path
) -> None:
    tokenizer = SubwordNMTConfig(codes=codes).learn([*lines[0], *lines[1]])  # all characters are known
    expected = theirs(codes.read_text(encoding="utf-8"), lines[1])
    found = [" ".join(tokenizer.pieces(ids)) for ids in tokenizer.encode_batch(lines[1])]
    assert found == expected
    assert sum("@@" in line for line in found) > 500
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_batch(lines[1])] == lines[1]


def test_merges_learned_here_split_text_as_the_program_does(lines: tuple[list[str], list[str]]) -> None:
    tokenizer = SubwordNMTConfig(merges=400).learn([*lines[0], *lines[1]])
    merges = tokenizer._codes.merges
    assert len(merges) == 400
    written = "#version: 0.2\n" + "\n".join(" ".join(pair) for pair in merges)
    found = [" ".join(tokenizer.pieces(ids)) for ids in tokenizer.encode_batch(lines[1])]
    assert found == theirs(written, lines[1])


def test_merges_learned_here_are_those_of_the_program_where_pairs_are_not_equally_frequent(
    lines: tuple[list[str], list[str]], codes: Path
) -> None:
    found = SubwordNMTConfig(merges=500).learn(lines[0])._codes.merges
    expected = read_codes(codes).merges
    assert found[:20] == expected[:20]
    assert len(set(found) & set(expected)) > 490


def test_a_number_of_merges_is_the_programs_option(lines: tuple[list[str], list[str]], codes: Path) -> None:
    tokenizer = SubwordNMTConfig(codes=codes, merges=100).learn(lines[1])
    program = BPE(io.StringIO(codes.read_text(encoding="utf-8")), merges=100)
    found = [" ".join(tokenizer.pieces(ids)) for ids in tokenizer.encode_batch(lines[1][:200])]
    assert found == [program.process_line(line) for line in lines[1][:200]]


SYMBOL = st.text(alphabet="ab<", min_size=1, max_size=3)
PAIR = st.tuples(SYMBOL, st.one_of(SYMBOL, SYMBOL.map(lambda symbol: symbol + "</w>"), st.just("</w>")))


@settings(max_examples=600, deadline=None)
@given(
    merges=st.lists(PAIR, min_size=1, max_size=25),
    words=st.lists(st.text(alphabet="ab<", min_size=1, max_size=12), min_size=1, max_size=6),
    version=st.sampled_from([OLDEST, USUAL]),
)
def test_any_merges_in_any_order_split_as_the_program_does(
    merges: list[tuple[str, str]], words: list[str], version: tuple[int, ...]
) -> None:
    header = "#version: 0.2\n" if version == USUAL else ""
    text = " ".join(words)
    (expected,) = theirs(header + "\n".join(" ".join(pair) for pair in merges), [text])
    tokenizer = SubwordNMTTokenizer(Codes(version, tuple(merges)), "ab<")
    ids = tokenizer.encode(text)
    assert " ".join(tokenizer.pieces(ids)) == expected
    assert tokenizer.decode(ids) == text
