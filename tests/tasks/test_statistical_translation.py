"""Statistical translation as a task, a model folder and an engine, on a small language with another word order."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from adjectives import sentences

from dragoman.base.errors import ConfigError, ModelError
from dragoman.checkpoint.folder import read_config, read_meta
from dragoman.decode.decoding import Sampling
from dragoman.inference.translation.reranking.reranker import Reranker, RerankingConfig, ReverseConfig
from dragoman.inference.translation.translator import Translator
from dragoman.models.kinds.statistical import StatisticalConfig
from dragoman.statistical.phrases.word_probabilities import FLOOR
from dragoman.tasks.description import describe
from dragoman.tasks.estimation import EstimationResult
from dragoman.tasks.train import train


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for name, pairs in (("train", sentences(150, 1)), ("valid", sentences(20, 2))):
        (folder / f"{name}.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
        (folder / f"{name}-reverse.tsv").write_text("".join(f"{target}\t{source}\n" for source, target in pairs))
    return folder


Estimator = Callable[..., EstimationResult]


@pytest.fixture(scope="module")
def estimate(corpus: Path) -> Estimator:
    def run(out: str, suffix: str = "", **settings: object) -> EstimationResult:
        recipe = {
            "task": {"kind": "statistical_translation"},
            "data": {
                "train": {"pairs": f"{corpus}/train{suffix}.tsv"},
                "valid": {"pairs": f"{corpus}/valid{suffix}.tsv"},
            },
            "model": {"order": 3},
            "tuning": {"rounds": 2, "nbest": 10, "restarts": 1},
            "search": {"beam": 20},
            "threads": 1,
            "out": str(corpus / out),
        }
        return train(recipe, settings, quiet=True)  # type: ignore[return-value]

    return run


@pytest.fixture(scope="module")
def phrase_based(estimate: Estimator) -> Path:
    return estimate("phrases").folder


@pytest.fixture(scope="module")
def dictionary(estimate: Estimator) -> Path:
    return estimate("dictionary", **{"model.method.kind": "dictionary"}).folder


def test_phrases_are_reordered_and_unknown_words_are_copied(phrase_based: Path) -> None:
    translator = Translator.load(phrase_based)
    texts = ["The old bird likes the small tree.", "the red zebra sees the dog.", "", "THE CAT finds the car"]
    translations = translator.translate(texts)
    assert translations[0] == "Le oiseau vieux aime le arbre petit."
    assert "zebra" in translations[1].split()
    assert translations[2] == ""
    assert "chat" in translations[3].split()  # words are found in any case
    assert "zebra" not in translator.translate([texts[1]], unknown="forbid")[0]
    assert translator.translate(texts, batch_size=1) == translations
    assert Translator.load(phrase_based, threads=3).translate(texts) == translations


def test_nbest_translations_are_distinct_and_sorted(phrase_based: Path) -> None:
    translator = Translator.load(phrase_based)
    (found,) = translator.translate_nbest(["The big house likes the cat."], translator.request(nbest=10))
    assert len(found) == len({each.text for each in found}) == 10
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


def test_weights_are_tuned_reproducibly_and_never_become_worse(estimate: Estimator, phrase_based: Path) -> None:
    again = estimate("again").folder
    assert read_config(again)["model"] == read_config(phrase_based)["model"]
    assert (again / "model.safetensors").read_bytes() == (phrase_based / "model.safetensors").read_bytes()
    untuned = estimate("untuned", tuning=None)
    scores = {score.metric: score.value for score in read_meta(phrase_based).scores}
    assert scores["BLEU"] >= untuned.validation["bleu"].value
    names = StatisticalConfig.model_validate(read_config(phrase_based)["model"]).method.features
    assert list(read_config(phrase_based)["model"]["weights"]) == list(names)


def test_word_based_model_is_better_than_the_dictionary(estimate: Estimator, dictionary: Path) -> None:
    words = estimate("words", **{"model.method.kind": "word_based", "tuning": None})
    scores = {score.metric: score.value for score in read_meta(dictionary).scores}
    assert words.validation["bleu"].value > scores["BLEU"]
    config = StatisticalConfig.model_validate(read_config(words.folder)["model"])
    assert config.weights["language_model"] == config.weights["source_given_target"] == 1  # argmax P(e) P(f | e)
    assert Translator.load(dictionary).translate(["big dog sees cat"]) == ["grand chien voit chat"]


def test_dictionary_scores_pairs_by_ibm_model_1(dictionary: Path) -> None:
    translator = Translator.load(dictionary)
    good, reordered, wrong = translator.score(["the dog"] * 3, ["le chien", "chien le", "le oiseau"])
    assert good.log_probability == pytest.approx(reordered.log_probability)  # the model has no word order
    assert good.log_probability > wrong.log_probability
    (unknown,) = translator.score(["the"], ["zebra"])
    assert unknown.log_probability == pytest.approx(math.log(FLOOR))


def test_nbest_lists_are_reranked_by_a_reverse_dictionary(estimate: Estimator, phrase_based: Path) -> None:
    reverse = estimate("reverse", "-reverse", **{"model.method.kind": "dictionary"}).folder
    translator = Translator.load(phrase_based)
    source = "The big house likes the cat."
    found = translator.translate_nbest([source], translator.request(nbest=10))
    config = RerankingConfig(nbest=10, model=0.0, reverse=ReverseConfig(folder=reverse, weight=1.0))
    (ordered,) = Reranker.load(config, translator).choose([source], found)
    expected = Translator.load(reverse).score([each.text for each in ordered], [source] * len(ordered))
    assert [each.score for each in ordered] == pytest.approx([each.log_probability for each in expected])
    assert ordered[0].score == max(each.score for each in ordered)


@pytest.mark.parametrize(
    ("settings", "feature"),
    [
        ({"sampling": Sampling()}, "sampling"),
        ({"prefix": "Le"}, "prefixes"),
        ({"constraints": ["chien"]}, "required phrases"),
        ({"length_penalty": 0.6}, "length penalties"),
        ({"search": {"no_repeat_ngram": 2}}, "search.no_repeat_ngram"),
        ({"search": {"maximum_length": 5}}, "search.maximum_length"),
    ],
)
def test_unsupported_requests_are_rejected(phrase_based: Path, settings: dict[str, object], feature: str) -> None:
    translator = Translator.load(phrase_based)
    with pytest.raises(ConfigError, match=feature):
        translator.translate_nbest(["The dog sees the cat."], translator.request(**settings))  # type: ignore[arg-type]


def test_errors_name_the_remedy(estimate: Estimator, phrase_based: Path) -> None:
    with pytest.raises(ConfigError, match="already exists: choose another --out"):
        estimate("phrases")
    with pytest.raises(ConfigError, match=r"no updates to resume.*without --resume"):
        train(phrase_based, resume=True)
    with pytest.raises(ConfigError, match="method.kind=dictionary"):
        Translator.load(phrase_based).score(["the dog"], ["le chien"])
    with pytest.raises(ConfigError, match="torch engine does not compute .* statistical: use auto, statistical"):
        Translator.load(phrase_based, engine="torch")
    with pytest.raises(ConfigError, match="int8"):
        Translator.load(phrase_based, engine="statistical", precision="int8")
    with pytest.raises(ConfigError, match="unknown features: fluency"):
        estimate("weights", **{"model.weights": {"fluency": 1}})
    with pytest.raises(ConfigError, match="does not support tags"):
        estimate("tags", **{"data.train.tags": ["news"]})
    with pytest.raises(ConfigError, match="does not support weights"):
        estimate("weights", **{"data.train.weight": 2})
    with pytest.raises(ConfigError, match="without tags"):
        estimate("tags", **{"text.tags": ["news"]})
    path = phrase_based / "config.yaml"
    settings = path.read_text()
    try:
        path.write_text(settings.replace("nodes: ", "nodes: 1"))
        with pytest.raises(ModelError, match=r"phrases\.words"):
            Translator.load(phrase_based)
    finally:
        path.write_text(settings)


def test_other_precisions_are_replaced_with_a_warning(phrase_based: Path, capsys: pytest.CaptureFixture[str]) -> None:
    translator = Translator.load(phrase_based, precision="int8")
    assert translator.engine.precision == "float32"
    assert capsys.readouterr().err == "warning: computing in float32, because no engine can compute in int8\n"


def test_description_lists_the_tables(phrase_based: Path) -> None:
    text = str(describe(phrase_based))
    assert "statistical translation model" in text
    assert "language_model" in text
    assert "statistical translation model, estimated from counts\n" in text
    assert text.endswith("\nThe source may have any number of tokens.\nThe target may have any number of tokens.")
    card = (phrase_based / "README.md").read_text()
    assert "| Values | " in card and "step 0" not in card
    assert "wrong names and numbers on any text" in card
