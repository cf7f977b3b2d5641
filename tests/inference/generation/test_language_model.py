"""`LanguageModel`: its generated text and scores, against plain loops over its own logits."""

from pathlib import Path
from typing import Any

import pytest
import torch
from related_models import bring_close
from tiny_language_model import tiny_language_model, write_tiny_language_model
from tiny_model import write_tiny_model

import dragoman
from dragoman.base.errors import ConfigError, ModelError
from dragoman.checkpoint.average import average
from dragoman.checkpoint.folder import load_model_folder
from dragoman.inference.generation.language_model import LanguageModel
from dragoman.inference.generation.score import PIECE, windows
from dragoman.inference.translation.translator import Translator
from dragoman.text.symbols import BOS, EOS, PAD, UNK

PROMPTS = ["a dog", "", "The man sees a dög –", "Two", "狗狗狗狗狗狗狗狗狗狗 runs"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return tiny_language_model(tmp_path_factory.mktemp("models") / "model")


@torch.no_grad()
def next_logits(model: LanguageModel, tokens: list[int]) -> torch.Tensor:
    return model.model(torch.tensor([tokens])).logits()[0, -1]


def greedy(model: LanguageModel, prompt: str, count: int, repeats: bool = True) -> list[int]:
    """By hand: read all tokens again for each new one, and the last half of the window once it is full."""
    ids = model.tokenizer.encode(prompt)
    context, written = [BOS, *ids], []
    while len(written) < count:
        if model.window is not None and len(context) > model.window:
            context = context[-(model.window // 2) :]
        logits = next_logits(model, context)
        logits[[PAD, BOS, UNK, *([] if repeats else context)]] = -torch.inf
        token = int(logits.argmax())
        if token == EOS:
            break
        written.append(token)
        context.append(token)
    return written


def test_greedy_past_the_window_as_by_hand(model: LanguageModel) -> None:
    """Prompts of unequal length in one batch, one of them longer than the window."""
    assert model.window == 16 < len(model.tokenizer.encode(PROMPTS[4]))
    found = model.generate(PROMPTS, top_k=1, max_tokens=50)
    for prompt, text in zip(PROMPTS, found, strict=True):
        ids = model.tokenizer.encode(prompt)
        whole = model.tokenizer.decode([*ids, *greedy(model, prompt, 50)])
        assert prompt + text == whole
    assert max(map(len, found)) > 20


def test_the_seed_decides_in_any_batch(model: LanguageModel) -> None:
    request = model.request(seed=7, samples=2, max_tokens=30, temperature=1.3, top_p=0.95)
    texts = model.generate(PROMPTS, request)
    assert len(texts) == 10
    assert model.generate(PROMPTS, request, batch_size=2) == texts
    assert model.generate(PROMPTS[:1], request) == texts[:2]
    assert texts[0] != texts[1]
    twice = model.generate(["a", "a"], seed=7, max_tokens=30)
    assert twice[0] != twice[1] == model.generate(["a"], seed=7, max_tokens=30, first=2)[0]
    assert model.generate(PROMPTS, seed=8, samples=2, max_tokens=30) != texts


@pytest.mark.parametrize("prompt", PROMPTS)
def test_pieces_join_to_the_whole(model: LanguageModel, prompt: str) -> None:
    """A random byte-level model generates many incomplete characters, which a piece contains only if the text does."""
    for seed in range(2):
        pieces = list(model.stream(prompt, seed=seed, max_tokens=24))
        assert "".join(pieces) == model.generate([prompt], seed=seed, max_tokens=24)[0]
        assert all(pieces)


def test_a_text_ends_before_a_stop_string(model: LanguageModel) -> None:
    whole = model.generate(["a"], seed=3, max_tokens=60)[0]
    stop = whole[10:13]
    for given in ([stop], ["never to be found", stop]):
        text = model.generate(["a"], seed=3, max_tokens=60, stop=given)[0]
        assert text == whole[: whole.index(stop)]
        assert "".join(model.stream("a", seed=3, max_tokens=60, stop=given)) == text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -0.5}, "temperature"),
        ({"top_p": 1.5}, "top_p"),
        ({"samples": 0}, "samples must be at least 1"),
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
        ({"stop": [""]}, "a stop string is empty"),
    ],
)
def test_invalid_requests_are_refused(model: LanguageModel, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        model.generate(["a"], **settings)
    with pytest.raises(ConfigError, match="2 samples cannot be streamed"):
        model.stream("a", samples=2)


@torch.no_grad()
def plain_score(model: LanguageModel, text: str, stride: int) -> float:
    """Score each token by a separate pass over the window in which it is predicted."""
    ids = [BOS, *model.tokenizer.encode(text), EOS]
    total = 0.0
    for place in range(1, len(ids)):
        late = max(0, place - model.window)
        start = -(-late // stride) * stride
        total += float(next_logits(model, ids[start:place]).log_softmax(0)[ids[place]])
    return total


@pytest.mark.parametrize("stride", [1, 5, 16, None])
def test_scores_are_those_of_each_token_in_its_window(model: LanguageModel, stride: int | None) -> None:
    texts = ["", "a dog", "The man sees a dög – 狗 🐕.\nTwo dogs  sleep."]
    found = model.score(texts, stride=stride, batch_size=3)
    for text, score in zip(texts, found, strict=True):
        assert score.log_probability == pytest.approx(plain_score(model, text, stride or 8), abs=1e-3)
    assert [score.tokens for score in found] == [len(model.tokenizer.encode(text)) + 1 for text in texts]
    assert [score.words for score in found] == [1, 3, 13]
    assert [score.bytes for score in found] == [1, 6, len(texts[2].encode()) + 1]
    assert not any(score.unknown for score in found)


def test_every_label_is_in_one_window_with_enough_context() -> None:
    for labels in range(1, 40):
        for window, stride in [(8, 1), (8, 3), (8, 8), (1, 1), (50, 7)]:
            parts = list(windows(labels, window, stride))
            assert [place for _, first, end in parts for place in range(first, end)] == list(range(labels))
            for start, first, end in parts:
                assert start >= 0
                assert end - start <= window
                assert start == 0 or first - start >= window - stride


def test_a_recurrent_model_reads_each_text_as_a_whole(tmp_path: Path) -> None:
    model = tiny_language_model(tmp_path / "model", model={"preset": "lstm", "width": 8})
    texts = ["a dog", "The man sees the dog and the woman sleeps. " * 30, ""]
    found = model.score(texts, batch_size=2)
    for text, score in zip(texts, found, strict=True):
        assert score.tokens > 2 * PIECE or text != texts[1]
        assert score.log_probability == pytest.approx(whole_score(model, text), rel=1e-5)
    assert model.window is None
    with pytest.raises(ConfigError, match="without windows: leave out the stride"):
        model.score(texts, stride=4)


@torch.no_grad()
def whole_score(model: LanguageModel, text: str) -> float:
    ids = torch.tensor([[BOS, *model.tokenizer.encode(text), EOS]])
    logits = model.model(ids[:, :-1]).logits().double().log_softmax(2)
    return float(logits.gather(2, ids[:, 1:, None]).sum())


def test_only_a_recurrence_without_positions_is_unbounded(tmp_path: Path) -> None:
    sections = {"preset": "lstm", "width": 8, "positions": {"kind": "learned", "limit": 64}}
    assert tiny_language_model(tmp_path / "model", model=sections).window == 16


def test_the_stride_is_at_most_the_window(model: LanguageModel) -> None:
    for stride in (0, 17):
        with pytest.raises(ConfigError, match="must be from 1 to the window of 16"):
            model.score(["a"], stride=stride)


def test_tokens_of_another_document_change_nothing(model: LanguageModel) -> None:
    (alone,) = model.score(["a dog sleeps"])
    for beside in (["x"], ["The man " * 9, "Two"]):
        assert model.score([*beside, "a dog sleeps"])[-1].log_probability == pytest.approx(alone.log_probability)


def test_unknowns_are_counted(tmp_path: Path) -> None:
    model = tiny_language_model(tmp_path / "model", text={"subword": {"kind": "character", "min_frequency": 1}})
    (score,) = model.score(["a dog Ж Q\n"])
    assert (score.unknown, score.tokens, score.words) == (2, 11, 6)
    assert "\ufffd" not in model.generate(["a"], max_tokens=20)[0]


@pytest.mark.parametrize(
    "sections",
    [
        {"model": {"preset": "lstm", "width": 8}},
        {"model": {"preset": None, "width": 8, "positions": {"kind": "learned", "limit": 12}}, "block": 12},
        {"model": {"preset": "tiny", "width": 8, "decoder": {"attention": {"kind": "window", "window": 4}}}},
    ],
    ids=["lstm", "learned positions", "window"],
)
def test_every_family_has_a_sliding_window(tmp_path: Path, sections: dict[str, Any]) -> None:
    model = tiny_language_model(tmp_path / "model", **sections)
    texts = model.generate(["a dog", "Two dogs sleep"], top_k=1, max_tokens=24)
    for prompt, text in zip(["a dog", "Two dogs sleep"], texts, strict=True):
        ids = model.tokenizer.encode(prompt)
        assert prompt + text == model.tokenizer.decode([*ids, *greedy(model, prompt, 24)])


def test_each_loader_names_the_functions_for_the_other_kind_of_folder(tmp_path: Path) -> None:
    write_tiny_language_model(tmp_path / "writes")
    write_tiny_model(tmp_path / "translates")
    with pytest.raises(ModelError, match=r"is a language model; it cannot translate: use `dragoman generate`"):
        Translator.load(tmp_path / "writes")
    with pytest.raises(ModelError, match=r"is a translation model; it cannot continue texts: use .*`Translator.load`"):
        LanguageModel.load(tmp_path / "translates")
    assert dragoman.LanguageModel is LanguageModel
    for folder in ("writes", "translates"):
        load_model_folder(tmp_path / folder, torch.device("cpu"))
    card = (tmp_path / "writes" / "README.md").read_text(encoding="utf-8")
    assert "\n# Language model\n" in card
    assert "dragoman generate" in card


def test_an_unknown_kind(tmp_path: Path) -> None:
    write_tiny_language_model(tmp_path)
    config = tmp_path / "config.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace("kind: decoder_only", "kind: diffusion"), "utf-8")
    with pytest.raises(ModelError, match="unknown kind 'diffusion': expected one of encoder_decoder, decoder_only"):
        LanguageModel.load(tmp_path)


def test_the_average_of_two(tmp_path: Path) -> None:
    for seed in (1, 2):
        write_tiny_language_model(tmp_path / str(seed), step=seed, seed=seed)
    bring_close(tmp_path / "2", tmp_path / "1")
    average([tmp_path / "1", tmp_path / "2"], tmp_path / "mean")
    first, second, mean = (
        dict(LanguageModel.load(tmp_path / name).model.named_parameters())  # type: ignore[attr-defined]
        for name in "1 2 mean".split()
    )
    for name, value in mean.items():
        torch.testing.assert_close(value, (first[name] + second[name]) / 2)


def test_its_own_settings_have_the_length_and_forbidden_repetitions(model: LanguageModel) -> None:
    own = LanguageModel(model.model, model.tokenizer, model.meta, model.window, {"maximum_length": 9})
    assert own.generate(PROMPTS) == model.generate(PROMPTS, max_tokens=9) != own.generate(PROMPTS, max_tokens=4)
    once = LanguageModel(model.model, model.tokenizer, model.meta, model.window, {"no_repeat_ngram": 1})
    found = once.generate(["a dog"], top_k=1, max_tokens=9)[0]
    assert found != model.generate(["a dog"], top_k=1, max_tokens=9)[0]
    ids = model.tokenizer.encode("a dog")
    assert "a dog" + found == model.tokenizer.decode([*ids, *greedy(model, "a dog", 9, repeats=False)])
    relative = LanguageModel(model.model, model.tokenizer, model.meta, None, {"minimum_factor": 0.5})
    with pytest.raises(ConfigError, match="minimum_factor is relative to the source"):
        relative.generate(["a"])
