"""Modified Kneser–Ney estimates equal those of KenLM's lmplz, if it is installed, and KenLM reads our ARPA files."""

import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.models.kinds.ngram import NgramModel
from dragoman.statistical.ngrams.arpa_reader import read_arpa
from dragoman.statistical.ngrams.arpa_writer import write_arpa
from dragoman.statistical.ngrams.counts import count_ngrams
from dragoman.statistical.ngrams.kneser_ney import ModifiedKneserNeyConfig
from dragoman.text.symbols import BOS, EOS
from dragoman.text.vocabularies.whitespace import WhitespaceConfig, WhitespaceTokenizer

WORDS = [f"w{number}" for number in range(300)]


def sentences(count: int = 3_000) -> list[str]:
    """Return sentences of a random grammar, in which frequent words have preferred successors."""
    random = np.random.default_rng(7)
    drawn = iter(np.minimum(random.zipf(1.4, 40_000), 300).tolist())
    texts = []
    for length in random.integers(0, 20, count).tolist():
        numbers = [next(drawn) for _ in range(min(length, 10))]
        mixed = [first if first % 3 else second for first, second in pairwise([1, *numbers])]
        texts.append(" ".join(WORDS[number - 1] for number in mixed))
    return texts


def estimate(texts: list[str], order: int, prune: tuple[int, ...]) -> tuple[NgramModel, WhitespaceTokenizer]:
    tokenizer = WhitespaceConfig().learn(texts)
    tokens = np.array([token for ids in tokenizer.encode_batch(texts) for token in (BOS, *ids, EOS)])
    counts = count_ngrams(tokens, order, tokenizer.size)
    return NgramModel.of(ModifiedKneserNeyConfig(prune=prune).estimate(counts)), tokenizer


@pytest.mark.skipif(shutil.which("lmplz") is None, reason="needs lmplz of KenLM on PATH")
@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("prune", [(), (0, 1), (0, 0, 1, 2)])
@pytest.mark.parametrize("count", [3_000, 12])
def test_estimates_equal_those_of_lmplz(order: int, prune: tuple[int, ...], count: int, tmp_path: Path) -> None:
    texts = sentences(count)
    model, tokenizer = estimate(texts, order, prune)
    command = ["lmplz", "-o", str(order), "-S", "50M", "-T", str(tmp_path), "--discount_fallback"]
    if thresholds := prune[:order]:
        command += ["--prune", *map(str, thresholds)]
    text = "".join(f"{each}\n" for each in texts).encode()
    (tmp_path / "lmplz.arpa").write_bytes(subprocess.run(command, input=text, capture_output=True, check=True).stdout)
    ids = {word: number for number, word in enumerate(tokenizer.symbols) if number > EOS + 1}
    theirs = NgramModel.of(read_arpa(tmp_path / "lmplz.arpa", ids, tokenizer.size).tables)
    for own, read in zip(model.tables, theirs.tables, strict=True):
        assert torch.equal(own.keys, read.keys)
        assert torch.allclose(own.log10_probabilities, read.log10_probabilities, rtol=0, atol=1e-6)
        if own.log10_backoffs is not None and read.log10_backoffs is not None:
            assert torch.allclose(own.log10_backoffs, read.log10_backoffs, rtol=0, atol=1e-6)


def test_kenlm_computes_the_same_scores_from_the_file(tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm", reason="needs camel-kenlm: pip install camel-kenlm")
    texts = sentences(400)
    model, tokenizer = estimate(texts, 4, (0, 0, 1))
    write_arpa(tmp_path / "model.arpa", model, tokenizer)
    judge = kenlm.Model(str(tmp_path / "model.arpa"))
    for text in [*texts[:100], "w1 unknown w2", "w300 w299 w298"]:
        ids = torch.tensor([[BOS, *tokenizer.encode(text), EOS]])
        own = model.score(model.contexts(ids[:, :-1], None)[0], ids[0, 1:])
        assert own.tolist() == pytest.approx([each[0] for each in judge.full_scores(text)], abs=1e-4)
