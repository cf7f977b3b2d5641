"""`dragoman demo`: the size of its model, its training and its explanations, and examples of its own kind of text."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from repository import ROOT

from dragoman.addons.lecture import demo_sizes
from dragoman.addons.lecture.commands import demo
from dragoman.addons.lecture.demo_sizes import LARGE, SMALL, DemoSize, choose_size, layer_seconds
from dragoman.addons.lecture.grammar.corpus import EmbeddedCorpus, generate
from dragoman.cli.main import main

PAGES = ("README.md", "docs/start/first-translator.md", "docs/start/first-server.md", "docs/paths/lecturer.md")
SENTENCE = re.compile(r'(?:echo|inspect \S+|inspect tree \S+|"q":|translate\(\[) ?"([A-Z][^"]+\.)"')
PAGE_EXAMPLES = "src/dragoman/addons/serving/page/examples.js"


@pytest.fixture(scope="module")
def corpus() -> EmbeddedCorpus:
    return generate(1, 6000, 4, 10)  # the first half of that of the demo


def words(text: str) -> list[str]:
    """Return the words of a sentence, with the full stop as a word."""
    return text.lower().replace(".", " .").split()


def neighbours(text: str) -> set[tuple[str, str]]:
    """Return the pairs of neighbouring words of a sentence."""
    return set(pairwise(words(text)))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_examples_of_pages_consist_of_neighbouring_words_of_the_corpus(page: str, corpus: EmbeddedCorpus) -> None:
    """A model cannot know words that it has not seen, and a small one translates words badly in new surroundings."""
    seen = set().union(*(neighbours(each.en) for each in corpus.train))
    found = SENTENCE.findall((ROOT / page).read_text(encoding="utf-8"))
    assert found
    for text in found:
        assert neighbours(text) - seen == set(), text


@pytest.mark.slow
@pytest.mark.parametrize("language", demo.LANGUAGES)
def test_the_example_of_the_translation_page_has_words_of_the_corpus(language: str, corpus: EmbeddedCorpus) -> None:
    text = re.findall(rf'^  {language}: "(.*)",$', (ROOT / PAGE_EXAMPLES).read_text(encoding="utf-8"), re.M)[0]
    seen = set().union(*(words(getattr(each, language)) for each in corpus.train))
    assert set(words(text)) - seen == set()


def test_slow_machines_train_a_smaller_model() -> None:
    assert choose_size(1e-9) == LARGE
    assert choose_size(0.015) == SMALL  # two quiet Zen 3 cores
    assert choose_size(1.0) == SMALL
    assert SMALL.seconds(0.01) < LARGE.seconds(0.01)
    assert layer_seconds(0.01) > 0


def test_the_corpus_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, count in (("TRAIN", 50), ("VALID", 0), ("TEST", 0)):
        monkeypatch.setattr(demo, name, count)
    command = ["demo", "--corpus-only", "--languages", "fr-en", "--out", str(tmp_path / "new" / "corpus")]
    assert main(command) == 0
    assert "50 pairs for training, 0 for validation" in capsys.readouterr().out
    files = {path.name: path.read_text().count("\n") for path in (tmp_path / "new" / "corpus").iterdir()}
    assert files == {
        f"{part}.{language}": count
        for part, count in (("train", 50), ("valid", 0), ("test", 0))
        for language in ("fr", "en")
    }
    assert main(command) == 2
    assert main([*command[:-1], str(tmp_path / "other"), "train.max_steps=1"]) == 2
    assert "settings can only be used without --corpus-only" in capsys.readouterr().err


def test_the_difference_between_the_sets_is_explained() -> None:
    """The named words occur in training, but not together."""
    corpus = generate(1, 600, 4, 10)
    explanation = demo._compare_sets(corpus, 80.24)
    assert "On the validation sentences, BLEU was 80.2" in explanation
    found = re.search(r"“(.*)” with “(.*)”, in “(.*)”", explanation)
    assert found
    assert found[3] in {each.en for each in corpus.test}


@pytest.mark.slow
def test_the_whole_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The model learns nothing in a few updates, so the training continues twice."""
    tiny = DemoSize(width=16, feedforward=16, vocabulary=300, tokens=256, updates=8, cost=1.0)
    monkeypatch.setattr(demo_sizes, "SMALL", tiny)
    monkeypatch.setattr(demo_sizes, "choose_size", lambda layer: tiny)
    monkeypatch.setattr(demo_sizes, "_MEASURED_SECONDS", 0.0)
    for name, count in (("TRAIN", 4000), ("VALID", 6), ("TEST", 8)):
        monkeypatch.setattr(demo, name, count)
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert "This demo trains a small English–German translator on 4,000 sentence pairs" in said.err
    assert "minute" in said.err.splitlines()[1]
    assert said.err.count("Validation BLEU is below 65, so the training continues.") == 2
    assert "8 test sentences" in said.out
    assert re.search(r"“\w.*” with “\w.*”, in “.*”", said.out)
    assert (out / "attention.png").exists()
    assert (out / "log.jsonl").read_text().count('"valid_bleu"') >= 3
    assert main(["demo", "--out", str(out), "--languages", "en-fr"]) == 2
    assert "has a demo for other languages" in capsys.readouterr().err
