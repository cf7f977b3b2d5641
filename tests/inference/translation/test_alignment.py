"""Word alignments by attention: batches equal single pairs, every layer and head, pieces to words for any Unicode."""

import unicodedata
from collections.abc import Sequence
from io import BytesIO
from itertools import accumulate, pairwise

import numpy as np
import pytest
import torch
from closeness import assert_close
from hypothesis import example, given
from learned_vocabularies import KINDS, TEXT, learn
from tiny_model import SOURCES, TARGETS, tiny_config, tiny_model, tiny_tokenizers, write_tiny_model
from toys import fit

from dragoman.base.errors import ConfigError, DataError
from dragoman.data.batches.batch import collate
from dragoman.engines.torch.engine import AttentionTorchEngine
from dragoman.inference.translation.alignment import AttentionAligner
from dragoman.inference.translation.translator import Translator
from dragoman.models.attention_weights import AttentionChoice, capture, cross_attention_layers, source_attention
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.statistical.alignment.links import format_pharaoh
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import TextConfig, train_tokenizers
from dragoman.text.vocabularies.sentencepiece import SentencePieceTokenizer, pieces_of
from dragoman.text.words import word_indices, word_spans

FAMILIES = {
    "transformer": {"preset": "tiny", "width": 16, "encoder": {"heads": 2}, "decoder": {"heads": 2}},
    "recurrent": {"preset": "rnn", "width": 16},
    "convolutional": {"encoder": {"kind": "convolutional"}, "decoder": {"kind": "convolutional"}, "width": 16},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_of_pairs_equals_single_pairs(family: str) -> None:
    model = tiny_model(ModelConfig.model_validate(FAMILIES[family]), tiny_tokenizers()).eval()
    pairs = [([5, 6, 7], [8, 9]), ([9], [4, 5, 6, 7, 8]), ([4, 4, 8, 9, 10, 11], [12])]
    layers = len(cross_attention_layers(model))
    for layer in range(1, layers + 1):
        found = source_attention(model, pairs, AttentionChoice(layer))
        for (source, target), weights in zip(pairs, found, strict=True):
            alone = [
                value for name, value in capture(model, target, source).items() if name.endswith("cross_attention")
            ]
            assert len(alone) == layers
            assert_close(weights, alone[layer - 1].mean(0)[:-1, :-1])
    np.testing.assert_array_equal(
        source_attention(model, pairs)[0], source_attention(model, pairs, AttentionChoice(max(1, layers - 1)))[0]
    )


def test_weights_of_the_input_step_are_those_of_the_next_prediction() -> None:
    model = tiny_model(ModelConfig.model_validate(FAMILIES["transformer"]), tiny_tokenizers()).eval()
    pairs = [([5, 6, 7], [8, 9]), ([9], [4, 5, 6])]
    for (source, target), weights in zip(
        pairs, source_attention(model, pairs, AttentionChoice(1, step="input")), strict=True
    ):
        expected = capture(model, target, source)["decoder.layers.0.cross_attention"].mean(0)
        assert_close(weights, expected[1:, :-1])  # the last row is that of the end of the sentence


def test_a_head_belongs_to_its_layer() -> None:
    model = tiny_model(ModelConfig.model_validate(FAMILIES["transformer"]), tiny_tokenizers()).eval()
    heads = [source_attention(model, [([5, 6], [7, 8])], AttentionChoice(1, head))[0] for head in (1, 2)]
    assert not np.allclose(*heads)
    assert_close(np.mean(heads, 0), source_attention(model, [([5, 6], [7, 8])], AttentionChoice(1))[0])
    for layer, head in ((1, 3), (99, None), (0, 1)):
        with pytest.raises(ConfigError, match="there is no"):
            source_attention(model, [([5, 6], [7])], AttentionChoice(layer, head))


def test_a_model_without_attention_says_so() -> None:
    config = ModelConfig.model_validate({"preset": "rnn", "width": 8, "decoder": {"attention": None}})
    with pytest.raises(ConfigError, match="has no attention weights over source tokens"):
        source_attention(tiny_model(config, tiny_tokenizers()), [([5], [6])])


@pytest.fixture(scope="module")
def learned() -> dict[str, Tokenizer]:
    return {kind: learn(kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@given(text=TEXT)
@example("  two  blanks  ")
@example("a\u00a0b\u2003c\u3000d\x1fe")
@example("e\u0301 👨‍👩‍👧‍👦 \U0010ffff ")
@example(" \u0344 a \u1161\ufa2a\n\u0301\u0958")
def test_each_piece_belongs_to_its_word(learned: dict[str, Tokenizer], kind: str, text: str) -> None:
    tokenizer = learned[kind]
    ids, places = tokenizer.encode(text), word_indices(tokenizer, text)
    assert len(places) == len(ids)
    given_places = [place for place in places if place is not None]
    assert given_places == sorted(given_places)
    if not any(character.isspace() and character not in " \t\n" for character in text):
        assert set(given_places) == set(range(len(text.split())))
    if tokenizer.lossless:
        assert places == words_by_bytes(tokenizer, unicodedata.normalize("NFC", text), ids)


def words_by_bytes(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> list[int | None]:
    """Return the word of each piece's first character, computed by counting the bytes of all pieces."""
    word_of_byte: list[int | None] = [] if tokenizer.kind == "gpt2" else [None]  # the blank before the first word
    number = -1
    for place, character in enumerate(text):
        if not character.isspace() and (place == 0 or text[place - 1].isspace()):
            number += 1
        word_of_byte += [None if character.isspace() else number] * len(character.encode())
    ends = list(accumulate(len(tokenizer.surface(each)) for each in ids))
    words, strings = tokenizer.words(text)
    begins = [0, *accumulate(len(string.encode()) for string in strings)]
    assert (ends[-1] if ends else 0) in (0, len(word_of_byte))
    spans = [word_of_byte[begins[word] : begins[word + 1]] for word in words]
    return [next((place for place in span if place is not None), None) for span in spans]


@given(text=TEXT)
@example(" a\u00a0b\u2003c\u3000d\x1fe\x85")
def test_word_boundaries_equal_those_of_split(text: str) -> None:
    spans = word_spans(text)
    assert [text[begin:end] for begin, end in spans] == text.split()
    assert all(first[1] < second[0] for first, second in pairwise(spans))


@pytest.mark.parametrize("text", ["ﬁne ① x", "a\u200b b", " ½  ab ", "ａｂ\u3000ｃｄ", "", "Ａ\x1fb c"])
def test_sentencepiece_knows_which_characters_it_read(text: str) -> None:
    pytest.importorskip("sentencepiece")
    config = TextConfig.model_validate({"subword": {"kind": "sentencepiece", "size": 60}})
    tokenizer = train_tokenizers(config, ["fine 1 x ab cd half", "the dog is in the park"] * 20, []).source
    places = word_indices(tokenizer, text)
    assert len(places) == len(tokenizer.encode(text))
    assert {place for place in places if place is not None} <= set(range(len(text.split())))
    if len(text.split()) > 1:
        assert next(place for place in places if place is not None) == 0 and places[-1] == len(text.split()) - 1


def test_sentencepiece_counts_the_bytes_of_unknown_characters() -> None:
    library = pytest.importorskip("sentencepiece")
    file = BytesIO()
    library.SentencePieceTrainer.train(
        sentence_iterator=iter(["fine 1 x ab cd half", "the dog is in the park"] * 20),
        model_writer=file,
        vocab_size=280,
        byte_fallback=True,
        minloglevel=2,
    )
    tokenizer = SentencePieceTokenizer(file.getvalue(), list(pieces_of(file.getvalue())))
    places = word_indices(tokenizer, "a 😀 犬犬 x")
    assert [place for place in places if place is not None] == [0, *[1] * 4, *[2] * 6, 3]


def test_pieces_of_weight_become_links_of_words() -> None:
    """With an engine whose attention is known: each target piece attends to the mirrored source piece."""
    tokenizers = tiny_tokenizers()

    class Mirror(AttentionTorchEngine):
        def source_attention(self, pairs, batch_size, choice):  # type: ignore[no-untyped-def]
            return [np.eye(len(pair.target), len(pair.source), dtype=np.float32)[:, ::-1] for pair in pairs]

    engine = Mirror(tiny_model(tiny_config(), tokenizers), tokenizers, torch.device("cpu"))
    source, target = "a dog", "dog a"
    links = AttentionAligner(engine, tokenizers).align([source], [source], 1)[0]
    sides = word_indices(tokenizers.source, source)
    assert links == tuple(sorted({(sides[-1 - place], word) for place, word in enumerate(sides)}))
    assert format_pharaoh(((0, 0), (1, 2))) == "0-0 1-2"
    assert target.split() == source.split()[::-1]


@pytest.mark.slow
def test_a_model_that_has_learned_to_reverse_is_aligned_backwards() -> None:
    words = "ab cd ef gh ij kl mn op".split()
    text = TextConfig.model_validate({"subword": {"kind": "word", "size": 20}})
    tokenizers = train_tokenizers(text, [" ".join(words)] * 3, [])
    config = ModelConfig.model_validate({"preset": "rnn", "width": 32})
    model = tiny_model(config, tokenizers)
    draw = np.random.default_rng(1)

    def lines(count: int) -> list[list[str]]:
        return [[str(word) for word in draw.choice(words, draw.integers(2, 6))] for _ in range(count)]

    def batches():  # type: ignore[no-untyped-def]
        while True:
            chosen = lines(64)
            ids = [tokenizers.source.encode(" ".join(each)) for each in chosen]
            yield collate(ids, [each[::-1] for each in ids], range(len(ids)))

    fit(model, batches(), 200, 0.01)
    translator = Translator(AttentionTorchEngine(model, tokenizers, torch.device("cpu")), tokenizers)
    tests = lines(40)
    sources, targets = [" ".join(each) for each in tests], [" ".join(each[::-1]) for each in tests]
    found = translator.align(sources, targets, batch_size=7)
    expected = [tuple((place, len(each) - 1 - place) for place in range(len(each))) for each in tests]
    right = sum(set(one) == set(other) for one, other in zip(found, expected, strict=True))
    assert right >= 36


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder = tmp_path_factory.mktemp("aligned") / "model"
    write_tiny_model(folder)
    return Translator.load(folder, "cpu")


def test_alignments_do_not_depend_on_the_batch(translator: Translator) -> None:
    sources, targets = [*SOURCES, "", "a dog", "  "], [*TARGETS, "Ein Hund", "", "x"]
    found = translator.align(sources, targets)
    assert found == translator.align(sources, targets, batch_size=1)
    assert found == translator.align(sources[::-1], targets[::-1])[::-1]
    assert found[-3:] == [(), (), ()]
    for source, target, links in zip(sources, targets, found, strict=True):
        assert all(i < len(source.split()) and j < len(target.split()) for i, j in links)
        if source.strip():
            assert {j for _, j in links} == set(range(len(target.split())))
    assert found != translator.align(sources, targets, attention=AttentionChoice(1, 1))
    with pytest.raises(DataError, match="each source needs one target"):
        translator.align(["a"], [])
    assert translator.align([], []) == []


def test_characters_that_the_model_does_not_read_have_no_words() -> None:
    """Their pieces do not exist, so that links of later words would be those of other pieces."""
    tokenizers = tiny_tokenizers()
    model = tiny_model(tiny_config(), tokenizers).eval()
    aligner = AttentionAligner(AttentionTorchEngine(model, tokenizers, torch.device("cpu")), tokenizers)
    plain, odd = "a dog runs", "\ufeffa \u200b dog\u2060\u00a0ru\u00adns\u202c"
    target = TARGETS[0]
    expected = aligner.link_weights(plain, target)
    assert np.array_equal(aligner.link_weights(odd, target)[:, [0, 2, 3]], expected)
    assert not aligner.link_weights(odd, target)[:, 1].any()
    kept = {0: 0, 1: 2, 2: 3}
    (links,) = aligner.align([plain], [target], 1)
    assert aligner.align([odd], [target], 1)[0] == tuple(sorted((kept[i], j) for i, j in links))
