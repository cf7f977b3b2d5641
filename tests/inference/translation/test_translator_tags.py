"""Translating with tags: the target language and other tags, missing or unknown ones, and sampled translations."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_model import SOURCES, TARGETS, tiny_config

from dragoman import inspect
from dragoman.base.errors import ConfigError
from dragoman.checkpoint.card.card import model_card
from dragoman.checkpoint.folder import LoadedModel, load_model_folder, model_parameters, write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.cli.main import main
from dragoman.data.corpora.inputs import one_line
from dragoman.decode.decoding import Sampling
from dragoman.decode.sampling import SamplingConfig
from dragoman.engines.engine import Pair, Prefix, Row
from dragoman.inference.translation.result import Translation
from dragoman.inference.translation.translator import Request, Translator
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers

CPU = torch.device("cpu")
SEVERAL = Meta(step=1, source_language="en", target_languages=("de", "fr"), tags=("bt",))


def tokenizers(kind: str = "bpe", tags: tuple[str, ...] = ("to:de", "to:fr", "bt")) -> Tokenizers:
    size = {"size": 290} if kind == "bpe" else {}
    text = {"subword": {"kind": kind, **size}, "tags": tags}
    return train_tokenizers(TextConfig.model_validate(text), SOURCES, TARGETS)


def translator(meta: Meta = SEVERAL, made: Tokenizers | None = None) -> Translator:
    made = made or tokenizers()
    torch.manual_seed(2)
    model = tiny_config(dropout=0.0).build(made.source.size, made.target.size)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.5)
    return Translator.of(LoadedModel(model, made, meta, {}), CPU)


@pytest.fixture(scope="module")
def several() -> Translator:
    return translator()


def test_the_language_changes_the_translation_and_precedes_the_text(several: Translator) -> None:
    german, french = several.translate(SOURCES, to="de"), several.translate(SOURCES, to="fr")
    assert german != french
    assert several.translate(SOURCES, to="de", tags=["bt"]) != german
    request = Request(several.search_config(), tags=("to:de",))
    expected = [best[0].text for best in several.stream_nbest(SOURCES, request)]
    assert german == expected == list(several.stream(SOURCES, to="de"))
    assert several.translate_nbest(SOURCES, several.request(nbest=2, to="de"))[0][0].text == german[0]
    keys = inspect(several, SOURCES[0], to="de", tags=["bt"]).maps[0].keys
    assert tuple(keys[:2]) == ("<to:de>", "<bt>")


def test_scores_are_those_of_the_tagged_source(several: Translator) -> None:
    plain = [score.log_probability for score in several.score(SOURCES, TARGETS, to="de")]
    other = [score.log_probability for score in several.score(SOURCES, TARGETS, to="fr")]
    assert plain != other
    for source, best in zip(SOURCES, several.translate_nbest(SOURCES, several.request(to="fr")), strict=True):
        retold = several.tokenizers.target.encode(best[0].text)
        if best[0].finished and tuple(several.tokenizers.target.pieces(retold)) == best[0].tokens:
            (score,) = several.score([source], [best[0].text], to="fr")
            assert score.log_probability == pytest.approx(best[0].log_probability, abs=1e-3)


def test_tags_are_never_generated(several: Translator) -> None:
    target = several.tokenizers.target
    with torch.no_grad():  # the untied projection is not accessible: give the tags' rows the highest scores
        table = several.engine.model.decoder.embedding.tokens.weight  # type: ignore[attr-defined]
        before = table.clone()
        table[-3:] = 30 * torch.sign(table[-3:])
    try:
        drawn = several.sample(SOURCES, Sampling(SamplingConfig(temperature=3.0), samples=3), to="de")
        found = [*several.translate_nbest(SOURCES, several.request(beam=4, nbest=4, to="de")), *drawn]
        shown = {piece for each in found for one in each for piece in one.tokens}
        assert shown
        assert not shown & {"<to:de>", "<to:fr>", "<bt>"}
        assert target.tags
    finally:
        with torch.no_grad():
            table.copy_(before)


@pytest.mark.parametrize(
    ("to", "tags", "message"),
    [
        (None, [], r"several target languages: choose one with --to .*: de, fr"),
        ("it", [], r"no target language 'it': choose one of de, fr"),
        ("de", ["law"], r"no tag 'law'; its tags are to:de, to:fr, bt"),
        ("de", ["to:fr"], "'to:fr' names a target language"),
    ],
)
def test_missing_and_unknown_languages_and_tags(
    several: Translator, to: str | None, tags: list[str], message: str
) -> None:
    for call in (several.translate, several.stream, several.sample):
        with pytest.raises(ConfigError, match=message):
            list(call(SOURCES, to=to, tags=tags))  # type: ignore[operator]
    with pytest.raises(ConfigError, match=message):
        several.request(to=to, tags=tags)
    with pytest.raises(ConfigError, match=message):
        several.score(SOURCES, TARGETS, to=to, tags=tags)


def test_a_model_with_one_language_needs_no_tag() -> None:
    one = translator(Meta(step=1, target_languages=("de",)))
    assert one.translate(SOURCES) == one.translate(SOURCES, to="de") == list(one.stream(SOURCES))
    assert one.translate(SOURCES) == translator().translate(SOURCES, to="de")
    with pytest.raises(ConfigError, match="no target language 'fr': choose one of de"):
        one.translate(SOURCES, to="fr")


def test_a_model_without_languages_accepts_no_tag() -> None:
    plain = translator(Meta(step=1, target_language="de"), tokenizers(tags=()))
    assert plain.translate(SOURCES, to="de") == plain.translate(SOURCES)
    with pytest.raises(ConfigError, match="one target language, de: leave out --to fr"):
        plain.translate(SOURCES, to="fr")
    with pytest.raises(ConfigError, match="no choice of target languages"):
        translator(Meta(step=1), tokenizers(tags=("bt",))).translate(SOURCES, to="fr")


def texts(found: Iterable[list[Translation]]) -> list[list[str]]:
    return [[each.text for each in every] for every in found]


def test_sampled_translations_depend_on_seed_and_line_only(several: Translator) -> None:
    sampling = Sampling(SamplingConfig(temperature=1.5), seed=3, samples=2)
    drawn = several.sample(SOURCES, sampling, to="de")
    assert [len(each) for each in drawn] == [2] * len(SOURCES)
    assert texts(drawn) == texts(several.sample(SOURCES, sampling, batch_size=1, to="de"))
    assert texts(drawn) != texts(several.sample(SOURCES, Sampling(sampling.config, 4, 2), to="de"))
    assert drawn[0][0].text != drawn[0][1].text
    request = several.request(sampling=sampling, to="de")
    assert texts(drawn[1:]) == texts(several.translate_window(SOURCES[1:], request, first=2))
    begun = list(several.stream_nbest(SOURCES, [request, replace(request, prefix="ein"), request]))
    assert texts(begun[::2]) == texts(drawn[::2])
    assert all(each.text.startswith("ein") for each in begun[1])
    with pytest.raises(ConfigError, match="leave out the search settings"):
        several.request(sampling=sampling, beam=2, to="de")


def test_the_log_probability_of_a_sample_counts_its_prefix(several: Translator) -> None:
    source, prefix = several.tokenizers.source.encode(SOURCES[1]), several.tokenizers.target.encode("ein")
    sampling = Sampling(SamplingConfig(length_margin=60), seed=3, samples=40)
    rows = [Row(1, "", source, sampling), Row(2, "", source, sampling, Prefix(tuple(prefix)))]
    for place, drawn in several.engine.hypotheses(rows, batch_size=2):
        ended = [each for each in drawn if each.finished]
        assert ended
        scores = several.engine.scores([Pair(1, source, each.tokens) for each in ended], batch_size=8)
        assert [each.log_probability for each in ended] == pytest.approx(scores, abs=1e-4)
        assert place == 0 or all(list(each.tokens[: len(prefix)]) == prefix for each in drawn)


@pytest.fixture(scope="module")
def folder(several: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model as a folder next to a text to translate."""
    place = tmp_path_factory.mktemp("tagged") / "model"
    section = "\n".join(f"  {line}" for line in _dumped().splitlines())
    write_model_folder(
        place,
        model_parameters(several.engine.model),  # type: ignore[attr-defined]
        f"model:\n{section}\n",
        several.tokenizers,
        SEVERAL,
    )
    (place.parent / "text").write_text("".join(f"{line}\n" for line in SOURCES))
    (place.parent / "target").write_text("".join(f"{line}\n" for line in TARGETS))
    return place


def _dumped() -> str:
    from dragoman.base.settings.load import dump_settings

    return dump_settings(tiny_config(dropout=0.0))


def test_a_folder_keeps_languages_and_its_card_lists_them(folder: Path, several: Translator) -> None:
    loaded = load_model_folder(folder, CPU)
    assert loaded.meta.target_languages == ("de", "fr")
    assert loaded.meta.tags == ("bt",)
    assert Translator.of(loaded, CPU).translate(SOURCES, to="fr") == several.translate(SOURCES, to="fr")
    card = (folder / "README.md").read_text()
    assert "en → de, fr" in card
    assert "| Tags of source texts | bt |" in card
    assert "dragoman translate FOLDER --to de" in card
    plain = Meta(step=1, target_language="de")
    assert "--to" not in model_card(plain, {}, {})


def test_the_commands_take_languages_and_tags(
    folder: Path, several: Translator, capfd: pytest.CaptureFixture[str]
) -> None:
    text, target = str(folder.parent / "text"), str(folder.parent / "target")
    assert main(["translate", str(folder), "-i", text, "--to", "fr", "--tags", "bt"]) == 0
    assert capfd.readouterr().out.splitlines() == several.translate(SOURCES, to="fr", tags=["bt"])
    assert main(["score", str(folder), "--source", text, "--target", target, "--to", "fr"]) == 0
    scores = [float(line) for line in capfd.readouterr().out.splitlines()]
    expected = [each.log_probability for each in several.score(SOURCES, TARGETS, to="fr")]
    assert scores == pytest.approx(expected, abs=1e-4)
    assert main(["evaluate", str(folder), "--source", text, "--reference", target, "--to", "de"]) == 0
    capfd.readouterr()
    for verb in (["translate", str(folder), "-i", text], ["score", str(folder), "--source", text, "--target", target]):
        assert main(verb) == 2
        assert "to=): de, fr" in capfd.readouterr().err
    assert main(["evaluate", str(folder), "--source", text, "--reference", target, "--to", "xx"]) == 2
    assert main(["evaluate", "--hypothesis", target, "--reference", target, "--to", "de"]) == 2
    assert "--to can only be used with a model" in capfd.readouterr().err


def test_sampling_on_the_command_line(folder: Path, several: Translator, capfd: pytest.CaptureFixture[str]) -> None:
    text = str(folder.parent / "text")
    common = ["translate", str(folder), "-i", text, "--to", "de"]
    drawn = ["--sample", "--temperature", "1.5", "--top-k", "50", "--top-p", "0.95", "--seed", "7", "--nbest", "2"]
    assert main([*common, *drawn]) == 0
    sampling = Sampling(SamplingConfig(temperature=1.5, top_k=50, top_p=0.95), seed=7, samples=2)
    expected = [one_line(each.text) for both in several.sample(SOURCES, sampling, to="de") for each in both]
    assert [line.split(" ||| ")[1] for line in capfd.readouterr().out.split("\n")[:-1]] == expected
    for wrong, message in (
        (["--top-k", "3"], "--top-k can only be used with --sample"),
        (["--sample", "--beam", "3"], "--beam can only be used without --sample"),
        (["--sample", "--temperature", "-1"], "temperature"),
        (["--sample", "--top-p", "1.5"], "top_p"),
    ):
        assert main([*common, *wrong]) == 2
        assert message in capfd.readouterr().err
