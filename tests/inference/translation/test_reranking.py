"""Reranking: line search compared with a grid of weights, features with the models, and the commands."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_language_model import write_tiny_language_model
from tiny_model import SOURCES, TARGETS, tiny_config, write_tiny_model

from dragoman import translate_file, tune
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.load import parse_settings
from dragoman.checkpoint.meta import Meta, dump_meta
from dragoman.cli.main import main
from dragoman.inference.generation.language_model import LanguageModel
from dragoman.inference.translation.reranking.line_search import (
    Lists,
    corpus_score,
    find_envelopes,
    search_line,
    search_weights,
)
from dragoman.inference.translation.reranking.pair_scores import UNREADABLE
from dragoman.inference.translation.reranking.reranker import (
    Features,
    Reranker,
    RerankingConfig,
    read_reranking,
)
from dragoman.inference.translation.translator import Translator
from dragoman.metrics.bleu import BLEU
from dragoman.metrics.registry import ngram_metrics

TEXTS = [*SOURCES, "", "dogs run in the park ."]
NUMBERS = st.integers(-4, 4).map(float)


@given(st.lists(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=6), min_size=1, max_size=3))
def test_no_line_is_above_the_envelope(lines: list[list[tuple[float, float]]]) -> None:
    levels, slopes = (np.array(each) for each in zip(*(line for of in lines for line in of), strict=True))
    sentences = np.repeat(np.arange(len(lines)), [len(each) for each in lines])
    found = find_envelopes(levels, slopes, sentences)
    for sentence, first in enumerate(found.first):
        rows = np.flatnonzero(sentences == sentence)
        of = np.flatnonzero(sentences[found.after] == sentence)
        assert list(found.corners[of]) == sorted(found.corners[of])
        assert [first, *found.after[of]][:-1] == list(found.before[of])
        top = np.array([first, *found.after[of]])
        for place in np.linspace(-20.03, 20.01, 200):
            value = (levels + place * slopes)[top[int(np.searchsorted(found.corners[of], place))]]
            assert value == pytest.approx((levels + place * slopes)[rows].max(), abs=1e-9)


def random_lists(seed: int, sentences: int = 4, hypotheses: int = 5, features: int = 3) -> Lists:
    """Lists of words, so that statistics are those of real texts."""
    draws = np.random.default_rng(seed)
    words = "a b c d e".split()
    references = [" ".join(draws.choice(words, 6)) for _ in range(sentences)]
    values, statistics = [], []
    for reference in references:
        texts = [" ".join(draws.choice(words, draws.integers(3, 8))) for _ in range(hypotheses)]
        statistics.append(BLEU().statistics(texts, [reference] * hypotheses))
        values.append(draws.normal(size=(hypotheses, features)))
    return Lists(values, statistics)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_a_line_is_searched_exactly(seed: int) -> None:
    lists, metric = random_lists(seed), BLEU()
    draws = np.random.default_rng(seed)
    weights, direction = draws.normal(size=(2, 3))
    found = search_line(lists, weights, direction, metric)
    tried = [corpus_score(lists, weights + step * direction, metric) for step in np.linspace(-30, 30, 4001)]
    assert found.score >= max(tried) - 1e-9
    assert corpus_score(lists, found.weights, metric) == found.score


def test_restarts_are_as_good_as_a_grid_and_reproducible() -> None:
    lists, metric, start = random_lists(9, features=2), BLEU(), np.array([1.0, 0.0])
    found = search_weights(lists, start, metric, restarts=10, seed=3)
    angles = np.linspace(0, 2 * np.pi, 2000)
    grid = max(corpus_score(lists, np.array([np.cos(each), np.sin(each)]), metric) for each in angles)
    assert found.score == pytest.approx(grid, abs=1e-6)
    assert found.score > corpus_score(lists, start, metric)
    again = search_weights(lists, start, metric, restarts=10, seed=3)
    assert (again.weights == found.weights).all()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model, one for the reverse direction, two with wrong cards or positions, and a language model."""
    base = tmp_path_factory.mktemp("channel")
    write_tiny_model(base / "model")
    short = tiny_config(positions={"kind": "learned", "limit": 6})
    for name, seed, config in (("reverse", 2, None), ("short", 3, short)):
        write_tiny_model(base / name, seed=seed, config=config)
        (base / name / "meta.json").write_text(dump_meta(Meta(step=3, source_language="de", target_language="en")))
    write_tiny_language_model(base / "language", text={"subword": {"kind": "bpe", "size": 270}})
    return {path.name: path for path in base.iterdir()}


def config(folders: dict[str, Path], **changes: object) -> RerankingConfig:
    content = {
        "nbest": 4,
        "length": 0.5,
        "reverse": {"folder": str(folders["reverse"]), "weight": 0.7},
        "language_model": {"folder": str(folders["language"]), "weight": 0.3},
    }
    return parse_settings({**content, **changes}, RerankingConfig, "the test")


def test_the_score_is_the_weighted_sum_of_the_models_scores(folders: dict[str, Path]) -> None:
    translator = Translator.load(folders["model"], "cpu")
    found = translator.translate_nbest(TEXTS, translator.request(nbest=4))
    reranked = Reranker.load(config(folders), translator, "cpu").choose(TEXTS, found)
    reverse, language_model = Translator.load(folders["reverse"], "cpu"), LanguageModel.load(folders["language"], "cpu")
    for text, before, after in zip(TEXTS, found, reranked, strict=True):
        assert sorted(each.ids for each in before) == sorted(each.ids for each in after)
        if not text:
            assert after == before
            continue
        for each in after:
            (channel,), (fluency,) = reverse.score([each.text], [text]), language_model.score([each.text])
            own = each.log_probability + 0.5 * len(each.ids)
            assert each.score == pytest.approx(
                own + 0.7 * channel.log_probability + 0.3 * fluency.log_probability, abs=1e-3
            )
        assert [each.score for each in after] == sorted((each.score for each in after), reverse=True)
    alone = [Reranker.load(config(folders), translator, "cpu").choose([text], [its]) for text, its in zip(TEXTS, found)]  # noqa: B905
    assert [[each.ids for each in one] for (one,) in alone] == [[each.ids for each in one] for one in reranked]


def test_hypotheses_that_the_reverse_model_cannot_read_come_last(folders: dict[str, Path]) -> None:
    translator = Translator.load(folders["model"], "cpu")
    found = translator.translate_nbest(SOURCES[:1], translator.request(nbest=2))
    short = config(folders, reverse={"folder": str(folders["short"])}, language_model=None)
    (values,) = Features(short, translator.meta, "cpu").of(SOURCES[:1], found)
    assert (values[:, 2] == UNREADABLE).all()


def test_wrong_directions_and_keys_are_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    translator = Translator.load(folders["model"], "cpu")
    with pytest.raises(ConfigError, match=r"reverse model .* translates from en, but translations from en into de"):
        Reranker.load(config(folders, reverse={"folder": str(folders["model"])}), translator, "cpu")
    (tmp_path / "weights.yaml").write_text("nbest: 4\nlenght: 1\n")
    with pytest.raises(ConfigError, match=r"lenght .*line 2.*did you mean length"):
        read_reranking(tmp_path / "weights.yaml")
    with pytest.raises(ConfigError, match="--rerank and --mbr"):
        translate_file(folders["model"], None, tmp_path / "out", rerank=config(folders), mbr="chrf")
    with pytest.raises(ConfigError, match="--nbest"):
        translate_file(folders["model"], None, tmp_path / "out", mbr="chrf")
    with pytest.raises(DataError, match="lines"):
        tune(folders["model"], source=SOURCES, reference=TARGETS[:1])


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_tuned_weights_reach_the_reported_score(folders: dict[str, Path], tmp_path: Path, metric: str) -> None:
    out = tmp_path / "weights.yaml"
    options = {"reverse": folders["reverse"], "language_model": folders["language"], "nbest": 4, "restarts": 3}
    found = tune(folders["model"], source=SOURCES, reference=TARGETS, out=out, metric=metric, quiet=True, **options)  # type: ignore[arg-type]
    assert read_reranking(out) == found.config
    tuned = found.config.tuned
    assert tuned is not None and tuned.after >= tuned.before
    (tmp_path / "in").write_text("\n".join(SOURCES) + "\n")
    translate_file(folders["model"], tmp_path / "in", tmp_path / "reranked", rerank=out, quiet=True)
    translate_file(folders["model"], tmp_path / "in", tmp_path / "plain", beam=5, quiet=True)
    measure = ngram_metrics()[metric].score
    assert measure((tmp_path / "reranked").read_text().split("\n")[:-1], TARGETS).value == pytest.approx(tuned.after)
    assert measure((tmp_path / "plain").read_text().split("\n")[:-1], TARGETS).value == pytest.approx(tuned.before)
    assert tuned.metric.startswith(str(measure(TARGETS, TARGETS)).partition(" =")[0])


def test_the_command_line(folders: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").write_text("\n".join(TEXTS) + "\n")
    (tmp_path / "target").write_text("\n".join(TARGETS) + "\n")
    (tmp_path / "source").write_text("\n".join(SOURCES) + "\n")
    model, out = str(folders["model"]), tmp_path / "weights.yaml"
    pair = ["--source", str(tmp_path / "source"), "--reference", str(tmp_path / "target")]
    assert main(["tune", model, *pair, "--out", str(out), "--reverse", str(folders["reverse"]), "--nbest", "3"]) == 0
    printed = capfd.readouterr().out
    assert "reverse" in printed and "BLEU (nrefs:1|" in printed
    verb = ["translate", model, "--input", str(tmp_path / "in"), "-q"]
    outputs = []
    for options in (
        ["--rerank", str(out)],
        ["--mbr", "chrf", "--nbest", "4"],
        ["--mbr", "bleu", "--nbest", "4", "--sample", "--seed", "3"],
    ):
        assert main([*verb, *options]) == 0
        whole = capfd.readouterr().out
        outputs.append(whole.split("\n")[:-1])
        assert main([*verb, *options, "--batch-size", "1"]) == 0
        assert capfd.readouterr().out == whole
    assert all(len(each) == len(TEXTS) and each[3] == "" for each in outputs)
    assert main([*verb, "--rerank", str(out), "--sample"]) == 2
    assert main([*verb, "--mbr", "ter", "--nbest", "3"]) == 2
    assert main([*verb, "--rerank", str(tmp_path / "nowhere.yaml")]) == 2
    assert main([*verb, "--mbr", "chrf", "--nbest", "4", "--output", str(tmp_path / "done")]) == 0
    assert (tmp_path / "done").read_text().split("\n")[:-1] == outputs[1]
