"""A bigram model, defined outside the package: loaded, generating, scoring, inspected, and fused with a search."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from tiny_model import SOURCES, TARGETS, tiny_config, tiny_tokenizers, write_tiny_model
from torch import Tensor, nn

import dragoman
from dragoman.base.errors import ConfigError, ModelError
from dragoman.checkpoint.folder import write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.tensors import model_parameters
from dragoman.cli.main import main
from dragoman.data.batches.batch import pad
from dragoman.decode.forced import force
from dragoman.models.families.family import ProjectedOutput
from dragoman.models.interface import LengthLimit, State, Trial
from dragoman.models.kinds.registry import KINDS, ModelKind
from dragoman.models.settings import ModelSettings
from dragoman.text.symbols import BOS, EOS, PAD, UNK
from dragoman.text.tokenizers import VocabularySizes

LONGEST, WEIGHT = 3, 0.8


class Bigram(nn.Module):
    """log p(token | previous token) = log((count + δ) / (Σ count + δ · V)), a decoder without a cache."""

    unbounded, limits = True, (LengthLimit("target", None, ""),)

    def __init__(self, size: int, delta: float) -> None:
        super().__init__()
        self.delta, self.counts = delta, nn.Parameter(torch.zeros(size, size), requires_grad=False)

    @property
    def decoder(self) -> "Bigram":
        return self

    def count(self, texts: Sequence[Sequence[int]]) -> None:
        for text in texts:
            for before, after in zip([BOS, *text], [*text, EOS], strict=True):
                self.counts[before, after] += 1

    def start(self, memory: None, attention: bool = False, **options: Any) -> State:
        return State(None, None, **options)

    def step(self, tokens: Tensor, state: State) -> tuple[ProjectedOutput, State]:
        smoothed = self.counts + self.delta
        logits = (smoothed / smoothed.sum(1, keepdim=True)).log()[tokens]  # (R, T, V)
        return ProjectedOutput(logits, nn.Identity()), replace(state, position=state.position + tokens.size(1))

    def trial(self, length: int) -> Trial:
        return Trial((), torch.full((1, length), BOS))

    def encode_source(self, source: tuple[Tensor, ...]) -> None:
        return None

    def forward(self, inputs: Tensor) -> ProjectedOutput:
        return self.step(inputs, self.start(None))[0]


class BigramConfig(ModelSettings):
    kind: Literal["bigram"] = "bigram"
    delta: float = 0.1

    def build_for(self, sizes: VocabularySizes) -> Bigram:
        return Bigram(sizes.target, self.delta)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A translation model, and the bigram model of its target vocabulary."""
    abilities, use = frozenset({"generate", "score", "inspect", "fuse"}), "`dragoman score`"
    loader = "dragoman.inference.generation.language_model:LanguageModel.load"
    kind = ModelKind("bigram", BigramConfig, "bigram model", ("target",), "scores", abilities, use, loader)
    monkeypatch.setitem(KINDS, "bigram", kind)
    tokenizers = tiny_tokenizers()
    write_tiny_model(tmp_path / "translation", config=tiny_config())
    model = Bigram(tokenizers.target.size, 0.1)
    model.count(tokenizers.target.encode_batch(TARGETS))
    parameters = model_parameters(model)
    write_model_folder(tmp_path / "bigram", parameters, "model: {kind: bigram, delta: 0.1}\n", tokenizers, Meta(step=0))
    return tmp_path / "translation", tmp_path / "bigram"


def by_hand(tokens: Sequence[int]) -> float:
    """Return log p of tokens and the end, from the counts of the three targets."""
    tokenizer = tiny_tokenizers().target
    texts = [[BOS, *tokenizer.encode(text), EOS] for text in TARGETS]
    pairs = [pair for text in texts for pair in pairwise(text)]
    total = 0.0
    for before, after in zip([BOS, *tokens], tokens, strict=False):
        count = sum(pair[0] == before for pair in pairs) + 0.1 * tokenizer.size
        total += log((pairs.count((before, after)) + 0.1) / count)
    return total


def test_score_supports_it_and_unsupported_commands_refuse_it(folders: tuple[Path, Path]) -> None:
    scores = dragoman.score(folders[1], texts := [*TARGETS, "ein Mann schlafen ."])
    expected = [by_hand([*tiny_tokenizers().target.encode(text), EOS]) for text in texts]
    assert [each.log_probability for each in scores.each] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ModelError, match="is a bigram model; it cannot translate: use `dragoman score`"):
        dragoman.Translator.load(folders[1], "cpu")


def test_it_is_loaded_and_its_commands_run(folders: tuple[Path, Path], capfdbinary: Any) -> None:
    model = dragoman.load(folders[1], "cpu")
    assert model.kind.name == "bigram"
    (text,) = model.generate(["ein"], top_k=1, max_tokens=8)
    assert main(["generate", str(folders[1]), "--prompt", "ein", "--top-k", "1", "--max-tokens", "8"]) == 0
    assert capfdbinary.readouterr().out.decode() == f"ein{text}\n"
    found = dragoman.next_tokens(model, "ein", count=3)
    (last,) = tiny_tokenizers().target.encode("ein")[-1:]
    counts = model.model.counts[last] + 0.1
    assert found.probabilities == pytest.approx((counts / counts.sum()).topk(3).values.tolist(), rel=1e-5)
    assert main(["inspect", "next", str(folders[1]), "ein", "--count", "3"]) == 0
    assert found.tokens[0] in capfdbinary.readouterr().out.decode()
    with pytest.raises(ConfigError, match="this model has no attention weights"):
        dragoman.inspect(model, "ein Hund")


@pytest.mark.slow
def test_the_search_finds_the_best_fused_score_of_all_outputs(folders: tuple[Path, Path]) -> None:
    translator = dragoman.Translator.load(folders[0], "cpu", "torch")
    tokenizer, model = translator.tokenizers.target, translator.engine.model  # type: ignore[attr-defined]
    chosen = [EOS, *sorted({number for ids in tokenizer.encode_batch(TARGETS) for number in ids})[::3]]  # a few
    outputs = [(one, *rest) for one in chosen if one != EOS for rest in [(EOS,), *((two, EOS) for two in chosen[1:])]]
    outputs += [(EOS,)]
    forbid = [PAD, BOS, UNK, *(token for token in range(4, tokenizer.size) if token not in chosen)]
    search = {"forbid": forbid, "length_penalty": "none", "length_factor": 0.0, "length_margin": LONGEST}
    fusion = {"language_model": str(folders[1]), "weight": WEIGHT}
    request = translator.request(nbest=3, beam=200, search={**search, "fusion": fusion})
    for source, found in zip(SOURCES, translator.translate_nbest(SOURCES, request), strict=True):
        tokens, mask = pad([translator.tokenizers.source.encode(source)], after=(EOS,))
        memory = model.encode(tokens, mask)
        fused = {}
        for output in outputs:
            inputs, labels = torch.tensor([[BOS, *output[:-1]]]), torch.tensor([output])
            own = float(force(model.decoder, memory, inputs, labels, torch.ones_like(labels, dtype=torch.bool)).sum())
            fused[output] = own + WEIGHT * by_hand(output)
        best = sorted(outputs, key=lambda output: -fused[output])[:3]
        assert [(*each.ids, EOS) for each in found] == best
        assert [each.score for each in found] == pytest.approx([fused[output] for output in best], abs=1e-4)
