"""ARPA files: four dialects, oddities of other programs, and damaged files."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import dragoman
from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.cli.main import main
from dragoman.models.kinds.ngram import LN10, LOG_ZERO, NgramModel
from dragoman.statistical.ngrams.arpa_reader import NO_UNKNOWN, read_arpa
from dragoman.statistical.ngrams.arpa_writer import DIALECTS, arpa_words, write_arpa
from dragoman.statistical.ngrams.counts import count_ngrams
from dragoman.statistical.ngrams.kneser_ney import ModifiedKneserNeyConfig
from dragoman.text.symbols import BOS, EOS, UNK
from dragoman.text.vocabularies.whitespace import WhitespaceTokenizer
from dragoman.text.vocabularies.word import WordConfig

TEXTS = ["a b a c", "a b d", "b a b a b c", "", "a b a c", "d"]
KENLM = """\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-1.5	<unk>	0
0	<s>	-0.25
-0.5	</s>	0
-0.75	a	-0.125

\\2-grams:
-0.2	<s> a
-0.3	a </s>

\\end\\
"""
SRILM = """
\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-0.5\t</s>
-99\t<s>\t-0.25
-1.5\t<unk>
-0.75\ta\t-0.125

\\2-grams:
-0.2\t<s> a
-0.3\ta </s>

\\end\\
"""
IRSTLM = """

\\data\\
ngram\t1=\t4
ngram\t2=\t2


\\1-grams:
-99\t<s>\t -0.25
-0.5\t</s>
-0.75\ta \t-0.125
-1.5\t<unk>

\\2-grams:
-0.2\t<s> a
-0.3\ta </s>
\\end\\
"""
CMU = """#############################################################################
This is a 2-gram language model, based on a vocabulary of 3 words.
ngram 9=9
\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-1.5000 <UNK>\t0.0000
-0.5000 </s>\t0.0000
-99.000 <s>\t-0.2500
-0.7500 a\t-0.1250

\\2-grams:
-0.2000 <s> a
-0.3000 a </s>

\\end\\
"""


def small_model(texts: list[str] = TEXTS, order: int = 4) -> tuple[NgramModel, WhitespaceTokenizer]:
    tokenizer = WhitespaceTokenizer(["a", "b", "c", "d", "unseen"])
    tokens = np.array([token for ids in tokenizer.encode_batch(texts) for token in (BOS, *ids, EOS)])
    return NgramModel.of(ModifiedKneserNeyConfig().estimate(count_ngrams(tokens, order, tokenizer.size))), tokenizer


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "model.arpa"
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def probability(model: NgramModel, *ngram: int) -> float:
    contexts = model.contexts(torch.tensor([ngram[:-1]]), None)[:, -1]
    return float(model.score(contexts, torch.tensor(ngram[-1:])))


@pytest.mark.parametrize("text", [KENLM, SRILM, IRSTLM, CMU], ids=["kenlm", "srilm", "irstlm", "cmu"])
def test_files_of_four_programs_are_the_same_model(text: str, tmp_path: Path) -> None:
    arpa = read_arpa(write(tmp_path, text))
    model = NgramModel.of(arpa.tables)
    assert arpa.words == ("a",)
    assert probability(model, BOS, 4) == pytest.approx(-0.2)
    assert probability(model, BOS, 4, EOS) == pytest.approx(-0.3)
    assert probability(model, 4, 4) == pytest.approx(-0.125 - 0.75)
    assert probability(model, BOS, UNK) == pytest.approx(-0.25 - 1.5)
    assert probability(model, 4, BOS) < -90


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2"])
def test_written_files_are_read_as_the_same_values(dialect: str, suffix: str, tmp_path: Path) -> None:
    model, tokenizer = small_model()
    path = tmp_path / f"model.arpa{suffix}"
    write_arpa(path, model, tokenizer, dialect)
    unpack: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".bz2": bz2.decompress}
    assert b"\\end\\" in unpack.get(suffix, bytes)(path.read_bytes())
    arpa = read_arpa(path)
    assert arpa.words == tokenizer.symbols[4:]
    for mine, read in zip(model.tables, arpa.tables, strict=True):
        assert torch.equal(mine.keys, read.keys)
        assert torch.equal(mine.log10_probabilities, read.log10_probabilities.float())
        if mine.log10_backoffs is not None and read.log10_backoffs is not None:
            assert torch.equal(mine.log10_backoffs, read.log10_backoffs.float())


def test_kenlm_scores_the_file_like_the_model(tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm", reason="needs camel-kenlm, which reads ARPA files: pip install camel-kenlm")
    model, tokenizer = small_model()
    for dialect in ("kenlm", "srilm"):
        path = tmp_path / f"{dialect}.arpa"
        write_arpa(path, model, tokenizer, dialect)
        judge = kenlm.Model(str(path))
        for text in [*TEXTS, "c c c", "a zebra b", "unseen a b a b"]:
            ids = [BOS, *tokenizer.encode(text), EOS]
            expected = [each[0] for each in judge.full_scores(text)]
            own = [probability(model, *ids[: end + 1]) for end in range(1, len(ids))]
            assert own == pytest.approx(expected, abs=1e-4)


def test_oddities_of_other_programs(tmp_path: Path) -> None:
    odd = (
        KENLM.replace("\ta\t-0.125", "\ta\x0bb\t-0.125")
        .replace(" a\n", " a\x0bb\n")
        .replace("\ta </s>", "\ta\x0bb </s>")
    )
    assert read_arpa(write(tmp_path, odd.replace("\n", "\r\n"))).words == ("a\x0bb",)  # a vertical tab inside a word
    without = KENLM.replace("-1.5\t<unk>\t0\n", "").replace("ngram 1=4", "ngram 1=3")
    assert float(read_arpa(write(tmp_path, without)).tables[0].log10_probabilities[UNK]) == NO_UNKNOWN
    minus_infinity = KENLM.replace("-0.3\ta", "-inf\ta")
    assert float(read_arpa(write(tmp_path, minus_infinity)).tables[1].log10_probabilities[-1]) == NO_UNKNOWN


def test_missing_contexts_have_the_probability_of_backing_off(tmp_path: Path) -> None:
    text = KENLM.replace("ngram 2=2\n", "ngram 2=2\nngram 3=1\n").replace(
        "\\end\\", "\\3-grams:\n-0.1\ta a </s>\n\n\\end\\"
    )
    model = NgramModel.of(read_arpa(write(tmp_path, text)).tables)
    assert probability(model, 4, 4, EOS) == pytest.approx(-0.1)
    assert probability(model, 4, 4) == pytest.approx(-0.125 - 0.75)  # the 2-gram "a a" is not in the file


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: text.index("\\end")], r"is truncated: it ends after line 14"),
        (lambda text: text[: text.index("-0.3")], r"is truncated: it ends after line 12"),
        (
            lambda text: text.replace("-0.3\ta </s>\n", ""),
            r"line 14: .* from line 11 contains 1 n-grams, but .* states 2",
        ),
        (lambda text: text.replace("\\2-grams:", "\\3-grams:"), r"line 11: expected \\2-grams:, but found"),
        (
            lambda text: text.replace("ngram 2=2", "ngram 3=2"),
            r"line 3: expected 'ngram 2=COUNT', but found 'ngram 3=2'",
        ),
        (lambda text: text.replace("-0.2\t<s> a", "-0.2\t<s>"), r"line 12: an n-gram of order 2 needs"),
        (lambda text: text.replace("-0.2\t<s> a", "-0.2\t<s> b"), r"line 12: the word 'b' is not in the section"),
        (lambda text: text.replace("-0.2\t<s>", "-o.2\t<s>"), r"line 12: the probability '-o.2' is not a number"),
        (lambda text: text.replace("-0.2\t<s>", "nan\t<s>"), r"line 12: the probability nan is not a finite number"),
        (lambda text: text.replace("-0.2\t<s>", "0.2\t<s>"), r"line 12: the log-probability 0.2 is above 0"),
        (lambda text: text.replace("-0.3\ta </s>", "-0.2\t<s> a"), r"line 13: this n-gram is already in line 12"),
        (lambda text: text.replace("\ta\t", "\t</s>\t"), r"line 9: this n-gram is already in line 8"),
        (lambda text: text.replace("\\data\\", "data"), r"is not an ARPA file"),
    ],
)
def test_damaged_files_are_rejected_with_the_line(change: Callable[[str], str], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_arpa(write(tmp_path, change(KENLM)))


def test_names_of_entries_have_no_spaces_and_are_distinct() -> None:
    words = arpa_words(WordConfig(min_frequency=1).learn(["a (a) b", "x\ty"]))
    assert len(set(words)) == len(words)
    assert not any(character.isspace() for word in words for character in word)
    with pytest.raises(ModelError, match="have the same ARPA name"):
        arpa_words(WhitespaceTokenizer(["a▁b", "a b"]))


def test_import_and_export_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, folder = write(tmp_path, KENLM), tmp_path / "folder"
    dragoman.import_model(path, folder)
    scores = dragoman.score(folder, ["a", "", "b"])
    expected = [-0.2 - 0.3, -0.25 - 0.5, -0.25 - 1.5 - 0.5]
    assert [each.log_probability / LN10 for each in scores.each] == pytest.approx(expected, abs=1e-6)
    assert scores.total.unknown == 1
    assert scores.total.per_known_token == pytest.approx(10 ** -((sum(expected) + 1.75) / 4))
    assert main(["export", str(folder), "--to", "arpa", "--dialect", "srilm", "--out", str(tmp_path / "out.arpa")]) == 0
    assert read_arpa(tmp_path / "out.arpa").words == ("a",)
    dragoman.import_model(tmp_path / "out.arpa", tmp_path / "again", vocabulary_of=folder)
    again = dragoman.score(tmp_path / "again", ["a", "", "b"])
    assert [each.log_probability for each in again.each] == [each.log_probability for each in scores.each]
    capsys.readouterr()
    assert main(["import", str(path), "--out", str(folder)]) == 2
    assert "already exists" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="--dialect can only be used with --to arpa"):
        dragoman.export(folder, tmp_path / "x", "ctranslate2", dialect="cmu")
    assert float(read_arpa(path).tables[0].log10_probabilities[BOS]) == LOG_ZERO
