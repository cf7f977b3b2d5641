"""Translator with a tiny random model: order, blanks, batch independence, streaming, scores and memory limits."""

import copy
import pickle
from dataclasses import replace
from typing import Any

import pytest
import torch
from closeness import close_to

from dragoman import inspect
from dragoman.base.errors import ConfigError, DataError, ResourceError
from dragoman.checkpoint.folder import LoadedModel
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.inference.translation.translator import Request, Translator
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.text.normalization import STRAY_JOINERS
from dragoman.text.tokenizers import TextConfig, train_tokenizers
from dragoman.text.vocabularies.bpe import BPEConfig

TEXT = [
    "A dog runs over the green grass .",
    "",
    "Two men",
    "   ",
    "The small child in the red coat looks at a big white horse , which is tired .",
    "Nobody sleeps .",
    "snow ❄ and\ttabs",
]
SHORT: dict[str, Any] = {"beam": 2, "search": {"maximum_length": 12}}
"""For tests that translate often: the model is not trained, so its translations do not end by themselves."""


@pytest.fixture(scope="module")
def translator() -> Translator:
    tokenizers = train_tokenizers(TextConfig(subword=BPEConfig(size=300)), TEXT, TEXT)
    stack = {"layers": 2, "heads": 2, "feedforward": 32}
    config = ModelConfig(preset=None, width=16, encoder=stack, decoder=stack)
    torch.manual_seed(3)
    model = config.build(tokenizers.source.size, tokenizers.target.size)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.4)  # far from uniform, so that sentences differ
    loaded = LoadedModel(model=model, text=tokenizers, meta=None, config={"model": config.model_dump()})
    return Translator.of(loaded, torch.device("cpu"))


def test_as_many_lines_out_as_in_and_blanks_stay_blank(translator: Translator) -> None:
    out = translator.translate(TEXT)
    assert len(out) == len(TEXT)
    assert [not line for line in out] == [not line.strip() for line in TEXT]


def test_no_text_gives_no_translation(translator: Translator) -> None:
    assert translator.translate([]) == []


def test_output_depends_neither_on_batch_size_nor_on_order(translator: Translator) -> None:
    expected = translator.translate(TEXT, batch_size=1, **SHORT)
    assert len(set(expected)) > 3
    assert translator.translate(TEXT, batch_size=3, **SHORT) == expected
    assert translator.translate(TEXT, batch_size=64, **SHORT) == expected
    assert translator.translate(TEXT[::-1], batch_size=2, **SHORT) == expected[::-1]


def test_nbest_is_sorted_and_its_first_is_the_translation(translator: Translator) -> None:
    lists = translator.translate_nbest(TEXT, translator.request(beam=4, nbest=3))
    assert [best[0].text for best in lists] == translator.translate(TEXT, beam=4)
    for line, hypotheses in zip(TEXT, lists, strict=True):
        assert len(hypotheses) == (3 if line.strip() else 1)
        finished = [each.score for each in hypotheses if each.finished]
        assert finished == sorted(finished, reverse=True)


def test_stream_equals_translate_and_reads_a_bounded_window_ahead(translator: Translator) -> None:
    taken = 0

    def lines():
        nonlocal taken
        for _ in range(3):
            for line in TEXT:
                taken += 1
                yield line

    stream = translator.stream(lines(), batch_size=1, **SHORT)
    first = next(stream)
    assert taken <= 16
    assert [first, *stream] == translator.translate(TEXT, **SHORT) * 3


def test_score_equals_the_log_probability_reported_by_the_search(translator: Translator) -> None:
    texts = [line for line in TEXT if line.strip()]
    ids = translator.tokenizers.target
    lists = translator.translate_nbest(texts, translator.request(beam=3, nbest=2))
    for line, hypotheses in zip(texts, lists, strict=True):
        for each in hypotheses:
            retold = ids.pieces(ids.encode(each.text))
            if each.finished and tuple(retold) == each.tokens:
                score = translator.score([line], [each.text])[0]
                assert score.log_probability == pytest.approx(each.log_probability, abs=1e-3)
                assert score.tokens == len(each.tokens) + 1


def test_score_keeps_order_under_any_batch_size(translator: Translator) -> None:
    one = translator.score(TEXT, TEXT[::-1], batch_size=1)
    many = translator.score(TEXT, TEXT[::-1], batch_size=5)
    assert [each.log_probability for each in many] == pytest.approx([each.log_probability for each in one], abs=1e-3)
    assert [each.tokens for each in one] == [len(translator.tokenizers.target.encode(text)) + 1 for text in TEXT[::-1]]


def test_score_refuses_unequal_sides(translator: Translator) -> None:
    with pytest.raises(DataError, match="2 sources and 1 targets"):
        translator.score(["a", "b"], ["a"])


@pytest.mark.parametrize(
    "text",
    [
        "A  dog runs  over the  green grass .",
        " A dog runs over the green grass . ",
        "A\u00a0dog\u202fruns over\u3000the green grass .",
        "\ufeffA dog runs over the gr\u00adeen\u200b grass .\u200f",
        "\u2067A dog\u2069 runs \u202aover\u202c the gr\u034feen grass .\u061c",
        "A d\u200dog\u200c runs\ufe0f over\u1680the green \u200cgrass .\u200d",
        "Ａ dog runs over the ｇｒｅｅｎ grass ．",
        "A 𝐝𝐨𝐠 runs 𝘰𝘷𝘦𝘳 the green grass .",
    ],
)
def test_spaces_invisible_characters_and_odd_forms_change_no_translation(translator: Translator, text: str) -> None:
    assert translator.translate([text], **SHORT) == translator.translate(TEXT[:1], **SHORT)
    assert translator.score([text], ["ok"]) == translator.score(TEXT[:1], ["ok"])


@pytest.mark.parametrize("text", ["می\u200cخواهم", "क्\u200dष", "👨\u200d👩\u200d👧 x", "1\ufe0f\u20e3", "葛\ufe00城"])
def test_joiners_that_distinguish_words_stay(text: str) -> None:
    assert STRAY_JOINERS.search(text) is None


def test_a_text_of_invisible_characters_has_no_words(translator: Translator) -> None:
    assert not translator.translate(["\u200b\u00ad"], **SHORT)[0].strip()


def test_a_very_long_line_is_translated(translator: Translator) -> None:
    assert translator.translate(["A dog runs over the green grass . " * 30], beam=1)[0]


def test_translations_cut_by_the_length_limit_are_reported(
    translator: Translator, capsys: pytest.CaptureFixture
) -> None:
    config = translator.search_config(beam=1).model_copy(
        update={"length_factor": 0.0, "length_margin": 1, "minimum_length": 3}
    )
    cut = [not best[0].finished for best in translator.stream_nbest(TEXT, Request(config))]
    assert any(cut)
    first = cut.index(True) + 1
    assert f"reached the length limit: line {first}" in " ".join(capsys.readouterr().err.split())


def test_a_batch_that_runs_out_of_memory_is_halved(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = translator.translate(TEXT, **SHORT)
    encode = translator.engine.model.encode  # type: ignore[attr-defined]

    def narrow(tokens, keep):
        if len(tokens) > 1:
            raise RuntimeError(
                "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
            )
        return encode(tokens, keep)

    monkeypatch.setattr(translator.engine.model, "encode", narrow)  # type: ignore[attr-defined]
    assert translator.translate(TEXT, **SHORT) == expected


def test_a_sentence_that_does_not_fit_the_memory_is_named(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(tokens, keep):
        raise MemoryError

    monkeypatch.setattr(translator.engine.model, "encode", full)  # type: ignore[attr-defined]
    with pytest.raises(ResourceError, match="line 3 "):
        translator.translate(["", " ", "Two men"])


def test_memory_is_estimated_before_the_search(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.engines.torch.batches.available_memory", lambda: 1000)
    with pytest.raises(ResourceError, match="line 1 "):
        translator.translate(["Two men"])
    with pytest.raises(ResourceError, match="line 1 "):
        translator.score(["Two men"], ["Two men"])


def test_a_model_too_large_to_be_measured_does_not_fit_the_memory(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory that a model needs is measured by running it."""

    def full(*_: object) -> int:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 33554432 bytes")

    monkeypatch.setattr(translator.engine, "_decoding_bytes", full)
    with pytest.raises(ResourceError, match=r"line 1 \(\d+ tokens\) does not fit into memory: [\d,]+ MiB free"):
        translator.translate(["Two men"])


def test_a_large_length_limit_is_not_treated_as_the_length(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.engines.torch.batches.available_memory", lambda: 50_000_000)
    monkeypatch.setattr(translator.engine, "_decode", lambda rows: [[Hypothesis((), 0.0, 0.0, True)] for _ in rows])
    request = translator.request()
    assert isinstance(request.decoding, SearchConfig)
    far = replace(request, decoding=request.decoding.model_copy(update={"length_margin": 10**7}))
    assert translator.translate(["Two men"], requests=far) == [""]


def test_other_failures_are_not_treated_as_a_lack_of_memory(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(tokens, keep):
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr(translator.engine.model, "encode", broken)  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        translator.translate(["Two men"])


def test_invalid_settings_are_refused(translator: Translator) -> None:
    with pytest.raises(ConfigError, match="beam"):
        translator.translate(["a"], beam=0)
    with pytest.raises(ConfigError, match="length penalty 'long'"):
        translator.translate(["a"], length_penalty="long")
    with pytest.raises(ConfigError, match="batch size"):
        translator.translate(["a"], batch_size=0)
    with pytest.raises(ConfigError, match="batch size"):
        translator.score(["a"], ["a"], batch_size=0)
    with pytest.raises(TypeError, match="list"):
        translator.translate("one string")


def test_the_length_penalty_reaches_the_search(translator: Translator) -> None:
    assert translator.search_config(length_penalty=1.5).length_penalty.divisor(7) == pytest.approx(2**1.5)
    assert translator.search_config(length_penalty="mean").length_penalty.divisor(7) == 7
    assert translator.search_config(length_penalty="none").length_penalty.divisor(7) == 1


def test_the_coverage_penalty_reaches_the_search(translator: Translator) -> None:
    assert translator.search_config().coverage_penalty == 0
    assert translator.search_config(coverage_penalty=0.3).coverage_penalty == 0.3
    with pytest.raises(ConfigError, match="coverage_penalty"):
        translator.translate(["a"], coverage_penalty=-1)
    texts = [line for line in TEXT if line.strip()]
    free = translator.translate_nbest(texts, translator.request(beam=4, nbest=4))
    covered = translator.translate_nbest(texts, translator.request(beam=4, nbest=4, coverage_penalty=0.5))
    charges = []
    for sentence in zip(free, covered, strict=True):
        without, charged = ({each.tokens: each.score for each in best} for best in sentence)
        charges += [without[tokens] - charged[tokens] for tokens in set(without) & set(charged)]
    assert min(charges) >= 0
    assert max(charges) > 0.01
    assert list(translator.stream(texts, beam=4, coverage_penalty=0.5)) == [best[0].text for best in covered]


PREFIXES = ["Ein Hund", "", "  Zwei Män", " ", "Das", "Niem", "snow ❄\t–"]


def test_every_output_starts_with_its_prefix(translator: Translator) -> None:
    request = translator.request(beam=4, nbest=3)
    found = translator.translate_nbest(TEXT, [replace(request, prefix=prefix) for prefix in PREFIXES])
    free = translator.translate(TEXT, beam=4)
    for text, prefix, hypotheses, unforced in zip(TEXT, PREFIXES, found, free, strict=True):
        for each in hypotheses:
            assert each.text.startswith(prefix.rstrip())
        if not prefix.strip():
            assert hypotheses[0].text == unforced
        elif text.strip():
            assert hypotheses[0].text != unforced
    assert translator.translate(TEXT, beam=4, prefixes=[" "] * len(TEXT)) == free


def test_prefixes_follow_their_texts_through_every_batching(translator: Translator) -> None:
    expected = translator.translate(TEXT, **SHORT, prefixes=PREFIXES)
    assert translator.translate(TEXT, batch_size=2, **SHORT, prefixes=PREFIXES) == expected
    assert translator.translate(TEXT[::-1], batch_size=3, **SHORT, prefixes=PREFIXES[::-1]) == expected[::-1]
    assert list(translator.stream(iter(TEXT), batch_size=1, **SHORT, prefixes=iter(PREFIXES))) == expected


def test_blanks_that_end_a_prefix_are_ignored(translator: Translator) -> None:
    assert translator.translate(["Two men"], prefixes=["Zwei \t "]) == translator.translate(
        ["Two men"], prefixes=["Zwei"]
    )


def test_the_translation_of_a_blank_text_is_its_prefix(translator: Translator) -> None:
    texts = [" ", "", "Two men"]
    requests = [translator.request(beam=2, prefix=prefix) for prefix in ("Zwei Männer ", "", "Zwei")]
    ((first,), (second,), _) = translator.translate_nbest(texts, requests)
    assert (first.text, second.text) == ("Zwei Männer", "")
    assert (first.log_probability, first.finished) == (0.0, True)


def test_there_must_be_as_many_prefixes_as_texts(translator: Translator) -> None:
    with pytest.raises(DataError, match="2 texts and 1 prefixes"):
        translator.translate(["a", "b"], prefixes=["c"])
    with pytest.raises(DataError, match="1 prefixes, but more texts"):
        list(translator.stream(["a", "b"], prefixes=["c"]))
    with pytest.raises(DataError, match="1 texts, but more prefixes"):
        list(translator.stream(["a"], prefixes=["c", "d"]))
    with pytest.raises(TypeError, match="lists of strings"):
        translator.translate(["a"], prefixes="c")


def test_attention_has_a_map_for_every_layer_and_kind(translator: Translator) -> None:
    maps = {each.name: each for each in inspect(translator, "A dog runs .", target="Two men").maps}
    assert set(maps) == {
        f"{place}.layers.{layer}.{kind}"
        for place, kind in (
            ("encoder", "self_attention"),
            ("decoder", "self_attention"),
            ("decoder", "cross_attention"),
        )
        for layer in (0, 1)
    }
    for each in maps.values():
        assert each.weights.shape == (2, len(each.queries), len(each.keys))
        assert each.weights.sum(-1) == close_to(1)
    cross = maps["decoder.layers.1.cross_attention"]
    assert cross.keys == (
        *translator.tokenizers.source.pieces(translator.tokenizers.source.encode("A dog runs .")),
        "</s>",
    )
    assert cross.queries[-1] == "</s>"
    own = maps["decoder.layers.0.self_attention"]
    assert own.keys[0] == "<s>"
    assert not own.weights[:, 0, 1:].any()  # the first prediction has read <s> only


def test_attention_without_a_target_shows_the_translation(translator: Translator) -> None:
    best = translator.translate_nbest(["Two men"])[0][0]
    assert inspect(translator, "Two men").maps[-1].queries == (*best.tokens, "</s>")


def test_a_model_is_not_sent_to_another_process(translator: Translator) -> None:
    for send in (pickle.dumps, copy.deepcopy):
        with pytest.raises(ConfigError, match="call dragoman.load in that process"):
            send(translator)
    assert copy.copy(translator).engine is translator.engine
