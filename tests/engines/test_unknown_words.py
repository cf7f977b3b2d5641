"""Unknown words in translations: the source words that replace them, the attention used, and the settings."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from given_logits import GivenLogits
from scripted_decoder import Script
from torch import Tensor

from dragoman.base.errors import ConfigError, DataError
from dragoman.checkpoint.folder import LoadedModel, model_parameters, write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.cli.main import main
from dragoman.data.batches.batch import pad
from dragoman.decode.decoding import Sampling
from dragoman.decode.prompts import Prompts
from dragoman.decode.search import Hypothesis, SearchConfig, search
from dragoman.engines.engine import Prefix, Row
from dragoman.engines.unknown_words import UnknownWords, read_dictionary
from dragoman.inference.translation.translator import Translator
from dragoman.models.interface import Decoder, Memory, State
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.text.symbols import BOS, EOS, UNK
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers

SOURCES = ["the dog sees the (old) cat .", "a cat sleeps ."] * 2
TARGETS = ["der Hund sieht die (alte) Katze .", "eine Katze schläft ."] * 2
TEXTS = ["Xaver sees (Yvonne) .", "the old Zebulon sleeps .", "Quentin"]


RECURRENT: dict[str, Any] = {"kind": "recurrent"}
TRANSFORMER: dict[str, Any] = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 16}
DECODERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "transformer": (TRANSFORMER, {**TRANSFORMER, "layers": 2}),
    "window": (TRANSFORMER, {**TRANSFORMER, "attention": {"kind": "window", "window": 2}}),
    "linear": (TRANSFORMER, {**TRANSFORMER, "cross_attention": {"kind": "linear"}}),
    "hard": (TRANSFORMER, {**TRANSFORMER, "heads": 1, "cross_attention": {"kind": "hard"}}),
    "bahdanau": (RECURRENT, RECURRENT),
    "luong": (
        RECURRENT,
        {**RECURRENT, "cell": "lstm", "wiring": {"kind": "luong"}, "attention": {"scorer": {"kind": "dot"}}},
    ),
    "feeding": (RECURRENT, {**RECURRENT, "layers": 2, "wiring": {"kind": "luong", "input_feeding": True}}),
    "tutorial": (RECURRENT, {**RECURRENT, "wiring": {"kind": "tutorial"}}),
    "softplus": (RECURRENT, {**RECURRENT, "attention": {"normaliser": "sum"}}),
    "convolutional": (RECURRENT, {"kind": "convolutional", "layers": 2}),
    "bytenet": (RECURRENT, {"kind": "bytenet", "layers": 2, "stacked": False, "cross_attention": {"kind": "soft"}}),
}
FEW = ("transformer", "hard", "bahdanau", "luong", "convolutional")


def vocabularies(kind: str = "word") -> Tokenizers:
    settings = {"subword": {"kind": kind, "min_frequency": 1}, "shared": False}
    return train_tokenizers(TextConfig.model_validate(settings), SOURCES, TARGETS)


def row(text: str, config: SearchConfig) -> Row:
    return Row(1, text, (), config)


def searched(words: UnknownWords, decoder: Decoder, memory: Memory, rows: Sequence[Row]) -> list[list[Hypothesis]]:
    """Search as `TorchEngine` does."""
    configs = words.configs(decoder, memory, rows)
    prompts = Prompts.of(decoder, memory, configs, [each.prefix.ids for each in rows])
    return words.replaced(decoder, memory, rows, search(decoder, prompts, configs))


def replaced(
    tokenizers: Tokenizers,
    text: str,
    written: Sequence[int],
    attended: Sequence[Sequence[float]] | None,
    prefix: Sequence[int] = (),
    kept: tuple[str, ...] = (),
    **settings: object,
) -> str:
    ids = [*tokenizers.source.encode(text), EOS]
    memory = Memory(torch.zeros(1, len(ids), 2), torch.ones(1, len(ids), dtype=torch.bool))
    config = SearchConfig.model_validate({"beam": 2, "length_margin": 20, **settings})
    decoder = Script(tokenizers.target.size, written, attended)
    ((best, *_),) = searched(
        UnknownWords(tokenizers), decoder, memory, [row(text, config)._replace(prefix=Prefix(tuple(prefix), kept))]
    )
    return tokenizers.target.decode(best.tokens, best.unknown)


def looking(*positions: int, width: int = 8) -> list[list[float]]:
    return [[float(place == position) for place in range(width)] for position in positions]


def test_an_unknown_is_the_source_word_that_its_own_step_attends_to() -> None:
    tokenizers = vocabularies()
    source = "Xaver sees (Yvonne) ."  # ␣Xaver ␣sees ␣( Yvonne ) ␣.
    assert [tokenizers.source.words(source)[1][place] for place in (0, 3)] == [" Xaver", "Yvonne"]
    sees, bracket, closing = (tokenizers.target.encode(text)[-1] for text in ("sieht", "(", "(alte)"))
    written = [UNK, sees, bracket, UNK, closing]
    text = replaced(tokenizers, source, written, looking(0, 1, 2, 3, 4, 5))
    assert text == "Xaver sieht (Yvonne)"
    assert replaced(tokenizers, source, written, looking(3, 1, 2, 0, 4, 5)) == "Yvonne sieht ( Xaver)"


def test_the_end_of_the_source_and_less_attended_words_do_not_count() -> None:
    tokenizers = vocabularies()
    weights = [[0.1, 0.2, 0.7, 0, 0, 0, 0, 0]]  # the end is at 2
    assert replaced(tokenizers, "Xaver Yvonne", [UNK], weights) == "Yvonne"


def test_tags_before_the_source_are_not_words() -> None:
    tokenizers = vocabularies()
    memory = Memory(torch.zeros(1, 5, 2), torch.ones(1, 5, dtype=torch.bool))  # two tags, two words, the end
    weights = [[0.6, 0.1, 0.1, 0.2, 0.0], [0.5, 0.1, 0.3, 0.1, 0.0]]
    searching, decoder = UnknownWords(tokenizers), Script(tokenizers.target.size, [UNK, UNK], weights)
    ((best, *_),) = searched(searching, decoder, memory, [row("Xaver Yvonne", SearchConfig())._replace(tags=2)])
    assert best.unknown == (" Yvonne", " Xaver")


def test_attention_is_summed_over_the_pieces_of_a_word() -> None:
    tokenizers = vocabularies("wordpiece")
    places, words = tokenizers.source.words("the tosdocat")
    assert places.count(1) > 3
    split = [0.3, *[0.7 / places.count(1)] * places.count(1), 0.0]
    assert max(split) == split[0]
    assert words[1] == " tosdocat"
    assert replaced(tokenizers, "the tosdocat", [UNK], [split]) == "tosdocat"


def test_a_dictionary_translates_the_word_and_copies_what_it_lacks(tmp_path: Path) -> None:
    tokenizers = vocabularies()
    (tmp_path / "words").write_text("Xaver\tXaverl junior\nYvonne\tIwan\nYvonne\tIgnored\n", encoding="utf-8")
    setting = {"unknown": {"kind": "dictionary", "path": str(tmp_path / "words")}}
    found = replaced(tokenizers, "Xaver (Yvonne) Zoe", [UNK, UNK, UNK], looking(0, 2, 4), **setting)
    assert found == "Xaverl juniorIwan Zoe"


def test_forbidden_unknowns_are_never_written() -> None:
    tokenizers = vocabularies()
    config = SearchConfig(beam=2, unknown="forbid")
    memory = Memory(torch.zeros(1, 3, 2), torch.ones(1, 3, dtype=torch.bool))
    decoder = Script(tokenizers.target.size, [UNK], looking(0))
    ((best, *_),) = searched(UnknownWords(tokenizers), decoder, memory, [row("Xaver Zoe", config)])
    assert UNK not in best.tokens
    assert best.unknown == ()


def test_words_of_a_prefix_are_kept_with_every_setting() -> None:
    tokenizers = vocabularies()
    for unknown in (None, "copy", "forbid"):
        setting = {} if unknown is None else {"unknown": unknown}
        found = replaced(tokenizers, "Xaver Zoe", [4, 5], looking(0, 1), [UNK, 6], (" Ottokar",), **setting)
        assert found.startswith("Ottokar")
    text = replaced(tokenizers, "Xaver Zoe", [UNK, UNK], looking(0, 1), [UNK], (" Ottokar",))
    assert text == "Ottokar Zoe"


def test_without_attention_unknowns_are_forbidden_and_requesting_them_is_an_error() -> None:
    tokenizers = vocabularies()
    assert "Xaver" not in replaced(tokenizers, "Xaver Zoe", [UNK, 5], None)
    with pytest.raises(ConfigError, match="needs attention over the source"):
        replaced(tokenizers, "Xaver Zoe", [UNK, 5], None, unknown="copy")


@pytest.mark.parametrize("decoder", [{"kind": "recurrent", "attention": None}, {"kind": "bytenet"}])
def test_real_decoders_without_attention(decoder: dict[str, Any]) -> None:
    tokenizers = vocabularies()
    model = random_model(RECURRENT, decoder, tokenizers, seed=1)
    memory = model.encode(*pad(tokenizers.source.encode_batch(TEXTS), after=(EOS,)))
    for unknown, allowed in ((None, True), ("forbid", True), ("copy", False)):
        config = SearchConfig.model_validate({"beam": 2, "length_margin": 2, "unknown": unknown})
        with nullcontext() if allowed else pytest.raises(ConfigError, match="needs attention over the source"):
            rows = [row(text, config) for text in TEXTS]
            found = searched(UnknownWords(tokenizers), Eager(model.decoder), memory, rows)
            assert not any(UNK in best.tokens for best, *_ in found)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("dog\tHund\ncat Katze\n", "line 2"),
        ("dog\tHund\tWauwau\n", "line 1"),
        ("dog\t \n", "line 1"),
        ("\n\n", "empty"),
        ("d\xff\tHund\n", "line 1.*UTF-8"),
    ],
)
def test_bad_dictionaries_are_named_by_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "words").write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=message):
        read_dictionary(tmp_path / "words")


def random_model(
    encoder: dict[str, Any], decoder: dict[str, Any], tokenizers: Tokenizers, seed: int, target_scale: float = 1.0
) -> Seq2Seq:
    """A model with large random parameters; target_scale: factor of the target's embeddings."""
    ties = {"tie_embeddings": False, "tie_projection": False}
    config = ModelConfig.model_validate(
        {"preset": None, "width": 16, "encoder": encoder, "decoder": decoder, "dropout": 0.0, **ties}
    )
    torch.manual_seed(seed)
    model = config.build(tokenizers.source.size, tokenizers.target.size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.5)
        model.decoder.embedding.tokens.weight *= target_scale
        model.decoder.projection.weight[UNK] *= 2  # very probable or very improbable
    return model


def random_model_folder() -> LoadedModel:
    """A folder whose translations of all TEXTS contain unknowns, which a test that uses it checks."""
    tokenizers = vocabularies()
    settings = {"preset": None, "width": 16, "encoder": RECURRENT, "decoder": RECURRENT, "dropout": 0.0}
    config = ModelConfig.model_validate({**settings, "tie_embeddings": False, "tie_projection": False})
    model = random_model(RECURRENT, RECURRENT, tokenizers, seed=0, target_scale=0.1)
    folder = {"model": config.model_dump(mode="json"), "search": {"minimum_length": 5, "length_factor": 1.0}}
    return LoadedModel(model, tokenizers, Meta(step=0), folder)


class Eager:
    """A decoder that prefers UNK after some tokens at some positions, and otherwise equals the given one."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder

    def start(self, memory: Memory, attention: bool = False) -> State:
        return self.decoder.start(memory, attention)

    def step(self, tokens: Tensor, state: State) -> tuple[GivenLogits, State]:
        places = torch.arange(state.position, state.position + tokens.size(1))
        wish = 8.0 * ((tokens + 2 * places) % 3 == 0)
        output, state = self.decoder.step(tokens, state)
        logits = output.logits()
        chosen = torch.nn.functional.one_hot(torch.tensor(UNK), logits.size(-1))
        return GivenLogits(logits + wish.unsqueeze(2) * chosen, output.attention), state


def test_every_hypothesis_gets_words_from_its_own_source() -> None:
    translator = Translator.of(random_model_folder(), torch.device("cpu"))
    lists = translator.translate_nbest(TEXTS, translator.request(beam=6, nbest=6))
    seen = 0
    for text, hypotheses in zip(TEXTS, lists, strict=True):
        words = {word.strip() for word in translator.tokenizers.source.words(text)[1]}
        for hypothesis in hypotheses:
            assert len(hypotheses) == 6
            known = [token for token in hypothesis.tokens if token != "<unk>"]
            copied = hypothesis.tokens.count("<unk>")
            seen += copied
            rest = [word.strip() for word in translator.tokenizers.target.words(hypothesis.text)[1]]
            assert len(rest) <= len(known) + copied
            assert sum(word in words for word in rest) >= min(copied, 1)
    assert seen > 3


def test_results_do_not_depend_on_batches_and_their_order() -> None:
    translator = Translator.of(random_model_folder(), torch.device("cpu"))
    request = translator.request(beam=4, nbest=4)
    whole = translator.translate_nbest(TEXTS, request)
    for batch_size, order in ((1, [0, 1, 2]), (3, [2, 0, 1])):
        found = translator.translate_nbest([TEXTS[row] for row in order], request, batch_size)
        assert [[each.text for each in found[order.index(row)]] for row in range(3)] == [
            [each.text for each in hypotheses] for hypotheses in whole
        ]


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one not in FEW)) for one in DECODERS])
@torch.no_grad()
def test_words_are_those_that_single_steps_attend_to(name: str) -> None:
    """In a beam, in a batch with padding, compared with a hypothesis read alone, one token at a time."""
    tokenizers = vocabularies()
    ids = tokenizers.source.encode_batch(TEXTS)
    config = SearchConfig(beam=3, nbest=3, length_factor=1, length_margin=6)
    shown = []
    for seed in (3, 4):
        model = random_model(*DECODERS[name], tokenizers, seed)
        memory = model.encode(*pad(ids, after=(EOS,)))
        rows = [row(text, config) for text in TEXTS]
        found = searched(UnknownWords(tokenizers), Eager(model.decoder), memory, rows)
        for text, source, hypotheses in zip(TEXTS, ids, found, strict=True):
            words = tokenizers.source.words(text)[1]
            alone = model.encode(*pad([source], after=(EOS,)))
            for hypothesis in hypotheses:
                attended = attended_positions(model, alone, hypothesis.tokens)
                assert hypothesis.unknown == tuple(words[place] for place in attended)
                shown.append(set(hypothesis.unknown))
    assert len(set().union(*shown)) > 3
    assert max(map(len, shown)) > 1


def attended_positions(model: Seq2Seq, memory: Memory, tokens: Sequence[int]) -> list[int]:
    """Return the most attended source position, except the end, at the step of each UNK of a hypothesis."""
    state, token, places = model.decoder.start(memory, attention=True), BOS, []
    for following in tokens:
        output, state = model.decoder.step(torch.tensor([[token]]), state)
        assert output.attention is not None
        if following == UNK:
            places.append(int(output.attention[0, 0, :-1].argmax()))
        token = following
    return places


@pytest.mark.parametrize("name", DECODERS)
def test_a_few_steps_at_a_time_give_the_same_attention(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.engines.unknown_words._MAX_WEIGHTS", 1)
    test_words_are_those_that_single_steps_attend_to(name)


@pytest.mark.parametrize("name", DECODERS)
def test_the_attention_of_a_step_is_what_its_prediction_reads(name: str) -> None:
    """Hard attention in one layer: only the positions attended so far have a gradient, including the step's own."""
    encoder, decoder = DECODERS[name]
    where = "attention" if decoder["kind"] == "recurrent" else "cross_attention"
    looking = {**decoder.get(where, {}), "kind": "hard", "gradient": "reinforce"}
    hard = {**decoder, where: looking, "layers": 1, "heads": 1}
    tokenizers = vocabularies()
    model = random_model(encoder, {**hard, "bridge": "none"} if where == "attention" else hard, tokenizers, seed=2)
    text = "the dog sees a cat (old)"
    with torch.no_grad():
        encoded = model.encode(*pad([tokenizers.source.encode(text)], after=(EOS,)))
    states = encoded.states.clone().requires_grad_()
    tokens = torch.tensor([[BOS, 7, 5, 9, 6, 8, 5, 4]])
    output, _ = model.decoder.step(tokens, model.decoder.start(Memory(states, encoded.mask, encoded.final), True))
    assert output.attention is not None
    looked: list[int] = []
    for step in range(tokens.size(1)):
        looked.append(int(output.attention[0, step].argmax()))
        (gradient,) = torch.autograd.grad(output.logits()[0, step].square().sum(), states, retain_graph=True)
        reading = set(gradient[0].abs().sum(1).nonzero().flatten().tolist())
        assert looked[-1] in reading
        assert reading <= set(looked)
    assert len(set(looked)) > 1


def test_prefixes_with_unknown_words_stay_in_the_translation_and_of_blank_lines() -> None:
    translator = Translator.of(random_model_folder(), torch.device("cpu"))
    out = translator.translate(["Xaver sees", ""], prefixes=["der Ottokar", "der Ottokar"])
    assert out[0].startswith("der Ottokar")
    assert out[1] == "der Ottokar"
    request = translator.request(sampling=Sampling(samples=2), prefix="der Ottokar")
    drawn = translator.translate_nbest(["Xaver sees"], request)
    assert len(drawn[0]) == 2 and all(each.text.startswith("der Ottokar") for each in drawn[0])


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_without_unknowns_forbids_them_and_warns_once(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"subword": {"kind": kind, "size": 300}}
    tokenizers = train_tokenizers(TextConfig.model_validate(settings), SOURCES, TARGETS)
    decoder, searching = Script(tokenizers.target.size, [UNK], looking(0)), UnknownWords(tokenizers)
    memory = Memory(torch.zeros(1, 3, 2), torch.ones(1, 3, dtype=torch.bool))
    for unknown, told in ((None, 0), ("forbid", 0), ("copy", 1), ("copy", 0)):
        config = SearchConfig.model_validate({"beam": 1, "unknown": unknown})
        ((best,),) = searched(searching, decoder, memory, [row("Xaver Zoe", config)])
        assert UNK not in best.tokens
        assert capsys.readouterr().err.count("has no effect: this model's vocabulary can encode any text") == told
    missing = SearchConfig.model_validate({"unknown": {"kind": "dictionary", "path": str(tmp_path / "none")}})
    with pytest.raises(DataError, match="There is no file"):
        searched(searching, decoder, memory, [row("Xaver Zoe", missing)])


def test_a_source_of_vectors_has_no_words_to_show(capsys: pytest.CaptureFixture[str]) -> None:
    text = {"subword": {"kind": "word", "min_frequency": 1}, "vectors": {"width": 2}}
    tokenizers = train_tokenizers(TextConfig.model_validate(text), SOURCES, TARGETS)
    decoder = Script(tokenizers.target.size, [UNK], looking(0))
    memory = Memory(torch.zeros(1, 3, 2), torch.ones(1, 3, dtype=torch.bool))
    config = SearchConfig.model_validate({"beam": 1, "unknown": "copy"})
    ((best,),) = searched(UnknownWords(tokenizers), decoder, memory, [row("[[1, 2], [3, 4]]", config)])
    assert UNK not in best.tokens
    assert "sources of this model are vectors" in capsys.readouterr().err


def test_from_the_command_line(tmp_path: Path) -> None:
    loaded, folder = random_model_folder(), tmp_path / "model"
    translator = Translator.of(loaded, torch.device("cpu"))
    content = yaml.safe_dump(loaded.config)
    write_model_folder(folder, model_parameters(loaded.model), content, loaded.tokenizers, Meta(step=1))
    (tmp_path / "in").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    (tmp_path / "words").write_text("\n".join(f"{word}\tNAME" for word in ("Xaver", "Yvonne", "Zebulon", "Quentin")))

    def lines(*options: str) -> list[str]:
        arguments = ["translate", str(folder), "-i", str(tmp_path / "in"), "-o", str(tmp_path / "out"), *options]
        (tmp_path / "out").unlink(missing_ok=True)
        assert main(arguments) == 0
        return (tmp_path / "out").read_text(encoding="utf-8").splitlines()

    copied = lines()
    assert copied == lines("--unknown", "copy") == translator.translate(TEXTS)
    assert lines("--unknown", "forbid") == translator.translate(TEXTS, unknown="forbid") != copied
    named = lines("--unknown", str(tmp_path / "words"))
    assert named == translator.translate(TEXTS, unknown=str(tmp_path / "words"))
    assert [line.count("NAME") for line in named] == [
        sum(line.count(word) for word in ("Xaver", "Yvonne", "Zebulon", "Quentin")) for line in copied
    ]
    assert main(["translate", str(folder), "-i", str(tmp_path / "in"), "--unknown", str(tmp_path / "nowhere")]) != 0
