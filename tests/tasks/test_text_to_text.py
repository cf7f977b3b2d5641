"""Text-to-text tasks: templates of records, several references, summaries, labels and answers that models write."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Translator, evaluate_outputs, train
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.load import parse_settings
from dragoman.checkpoint.folder import read_config, read_meta
from dragoman.cli.main import main
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.corpora.documents import read_texts
from dragoman.data.corpora.readers import HeldOutRecords, read_pairs, read_references
from dragoman.evaluation.text_to_text import baselines

STACK: dict[str, Any] = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 32, "norm": "pre"}
MODEL: dict[str, Any] = {"preset": None, "width": 32, "encoder": STACK, "decoder": STACK, "dropout": 0.0}
MACHINE = {"device": "cpu", "precision": "float32", "threads": 1, "average": {"count": 0}, "ema": None}
WORDS = "red green blue black white".split()
PAPERS = [
    {
        "source": ["We see a dog.", "It is old."],
        "target": ["an old dog", "dog"],
        "year": 1990,
        "meta": {"title": "Dogs"},
    },
    {"source": "One text. Two sentences.", "target": ["two sentences"], "year": None, "meta": {"title": "T"}},
]


def write_objects(path: Path, objects: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in objects))
    return path


def corpus(**settings: Any) -> CorpusConfig:
    return parse_settings(settings, CorpusConfig, "corpus")


def test_templates_make_pairs_of_the_fields_of_objects(tmp_path: Path) -> None:
    path = write_objects(tmp_path / "papers.jsonl", PAPERS)
    template = {"source": "{meta.title} ({year}): {source} {{TL;DR}}", "target": "{target}"}
    papers = corpus(pairs=str(path), template=template)
    pairs = [(pair.line, pair.source, pair.target) for pair in read_pairs(papers)]
    first = "Dogs (1990): We see a dog. It is old. {TL;DR}"
    second = "T (): One text. Two sentences. {TL;DR}"
    assert pairs == [(1, first, "an old dog"), (1, first, "dog"), (2, second, "two sentences")]
    held_out = read_references(papers)
    assert held_out.sources == [first, second]
    assert held_out.references == (["an old dog", "two sentences"], ["dog", "two sentences"])
    assert held_out.sentences == [("We see a dog.", "It is old."), ()]


def test_labelled_texts_and_questions_have_templates(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("premise\thypothesis\tlabel\na dog runs\tit moves\t1\n")
    labelled = {"path": str(tmp_path / "pairs.tsv"), "labels": {"1": "yes"}}
    template = {"source": "{text}? {pair}:", "target": "{label}"}
    (pair,) = read_pairs(corpus(labelled=labelled, template=template))
    assert pair.texts == ("a dog runs? it moves:", "yes")
    answers = [
        {"text": "a dog", "answer_start": 7},
        {"text": "dog", "answer_start": 9},
        {"text": "dog", "answer_start": 9},
    ]
    question = {"id": "q", "question": "Who?", "context": "We see a dog.", "answers": answers}
    path = write_objects(tmp_path / "questions.json", [question])
    questions = [pair.texts for pair in read_pairs(corpus(questions={"path": str(path)}))]
    assert questions == [("question: Who? context: We see a dog.", answer) for answer in ("a dog", "dog")]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"template": {"source": "{a", "target": "{b}"}}, "is not valid"),
        ({"template": {"source": "{}", "target": "{b}"}}, "a field is only a name in braces"),
        ({"template": {"source": "text", "target": "{b}"}}, "has no field"),
        ({"template": {"source": "{a}", "target": "{b}"}, "source_column": "a"}, "`template` replaces"),
        (
            {"format": "tsv", "template": {"source": "{a}", "target": "{b}"}},
            "use it with `labelled`",
        ),
        ({"labelled": "b.tsv"}, "give either both"),
    ],
)
def test_wrong_templates_are_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        corpus(**{"pairs": "a.jsonl", **settings})


@pytest.mark.parametrize(
    ("source", "message"),
    [("{tittle}", r"line 1: there is no field 'tittle'; the fields are source, target"), ("{meta}", "is an object")],
)
def test_faulty_fields_are_reported_with_their_line(source: str, message: str, tmp_path: Path) -> None:
    path = write_objects(tmp_path / "papers.jsonl", PAPERS)
    with pytest.raises(DataError, match=message):
        list(read_pairs(corpus(pairs=str(path), template={"source": source, "target": "{target}"})))
    if "tittle" in source:
        labelled = tmp_path / "labelled.tsv"
        labelled.write_text("a dog\tyes\n")
        template = {"source": source, "target": "{label}"}
        with pytest.raises(DataError, match="example 1: there is no field 'tittle'; the fields are text, label"):
            list(read_pairs(corpus(labelled=str(labelled), template=template)))


def test_documents_of_language_models_are_made_by_templates(tmp_path: Path) -> None:
    path = write_objects(tmp_path / "papers.jsonl", PAPERS)
    template = {"source": "{source} <summarize>", "target": " {target}"}
    text = parse_settings({"jsonl": str(path), "template": template}, TextCorpusConfig, "corpus")
    assert read_texts(text)[:2] == [f"We see a dog. It is old. <summarize> {each}" for each in ("an old dog", "dog")]
    with pytest.raises(ConfigError, match="replaces `field`"):
        parse_settings({"jsonl": str(path), "template": template, "field": "x"}, TextCorpusConfig, "corpus")


def toy(folder: Path, kind: str, **train_settings: Any) -> dict[str, Any]:
    """Texts of two sentences, of which the second contains the colour that is the summary."""
    texts = [
        {"source": [f"I see {noise} .", f"It is {word} ."], "target": [word, f"the {word}"], "label": word}
        for word in WORDS
        for noise in ("a dog", "one cat", "two men", "it")
    ]
    for name in ("train", "valid"):
        write_objects(folder / f"{name}.jsonl", texts if name == "train" else texts[::3])
    template = {"source": "{source}", "target": "{target}" if kind == "summarization" else "{label}"}
    return {
        "task": {"kind": kind},
        "data": {
            **{name: {"pairs": str(folder / f"{name}.jsonl"), "template": template} for name in ("train", "valid")},
            "batch": {"tokens": 256},
        },
        "text": {"subword": {"kind": "word"}},
        "model": MODEL,
        "train": {"max_steps": 60, "schedule": {"kind": "cosine", "peak": 0.02}, **MACHINE, **train_settings},
        "out": str(folder / "run"),
    }


@pytest.fixture(scope="module")
def summarizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("summarizer")
    train(toy(folder, "summarization"), quiet=True)
    return folder / "run"


def test_summaries_are_learned_selected_by_rouge_and_compared_with_sentences(
    summarizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = summarizer.parent / "valid.jsonl"
    arguments = ["evaluate", "outputs", str(summarizer), "--test", str(test), "--device", "cpu"]
    assert main([*arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    names = [system["system"] for system in result["systems"]]
    assert names == [str(summarizer), "first sentence", "random sentence"]
    scores = [{score["name"]: score["value"] for score in system["scores"]} for system in result["systems"]]
    assert list(scores[0]) == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    assert scores[0]["ROUGE-L"] > 80 and scores[1]["ROUGE-L"] == 0 and scores[2]["ROUGE-L"] < 50
    assert result["systems"][0]["scores"][0]["signature"] == "F1, maximum of 2 references, not stemmed"
    log = [json.loads(line) for line in (summarizer / "log.jsonl").read_text().splitlines()]
    valid = next(line["valid_rougeL"] for line in reversed(log) if "valid_rougeL" in line)
    assert valid > 80
    card = (summarizer / "README.md").read_text()
    assert "\n# Summarization model" in card and "| ROUGE-L | " in card
    assert main([*arguments, "--metric", "rouge1_stemmed", 'template.source="{label} . {source}"']) == 0
    assert "ROUGE-1 (stemmed)" in capsys.readouterr().out
    assert main([*arguments, "--source", str(test)]) == 2


def test_a_summarizer_reads_several_sentences_as_a_whole(summarizer: Path) -> None:
    assert read_meta(summarizer).whole_texts
    translator = Translator.load(summarizer, "cpu")
    assert translator.translate(["I see a dog . It is red ."])[0] in ("red", "the red")
    assert read_config(summarizer)["search"]["maximum_length"] == 5


def test_generated_labels_are_scored_beside_the_most_frequent_one(tmp_path: Path) -> None:
    train(toy(tmp_path, "text_to_text"), quiet=True)
    result = evaluate_outputs(tmp_path / "run", tmp_path / "valid.jsonl", device="cpu", quiet=True)
    assert result["accuracy"].value > 80 and result["other_outputs"].value == 0
    assert [system.system for system in result.systems][1:] == ["always 'red'"]
    assert result.systems[1].scores["accuracy"].value == pytest.approx(100 * 2 / 7)
    assert "against" in str(result) and "()" not in str(result)
    assert result.systems[0].scores["accuracy"].signature == "1 reference"


def test_a_language_model_writes_summaries_after_a_marker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Selected by the metric of the generated texts."""
    schedule = {"kind": "cosine", "peak": 0.01}
    settings = toy(tmp_path, "text_to_text", max_steps=100, schedule=schedule, metric="rougeL", validate_every=25)
    template = {"source": "{source} <summarize>", "target": " {label}"}
    data = {name: {"jsonl": str(tmp_path / f"{name}.jsonl"), "template": template} for name in ("train", "valid")}
    model = {name: value for name, value in MODEL.items() if name != "encoder"}
    model |= {"decoder": {**STACK, "layers": 2}, "positions": {"kind": "rotary"}}
    settings |= {"task": {"kind": "language_model"}, "data": {**data, "block": 64}, "model": model}
    train(settings, quiet=True)
    text = "I see a dog . It is blue . <summarize>"
    assert main(["generate", str(tmp_path / "run"), "--prompt", text, "--top-k", "1", "--device", "cpu"]) == 0
    assert capsys.readouterr().out.split() == [*text.split(), "blue"]
    result = evaluate_outputs(tmp_path / "run", tmp_path / "valid.jsonl", device="cpu", quiet=True)
    assert result["rougeL"].value > 80
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    validations = {line["step"]: line for line in log if "valid_rougeL" in line}
    best = max(line["valid_rougeL"] for line in validations.values())
    assert validations[read_meta(tmp_path / "run").step]["valid_rougeL"] == best
    assert result["rougeL"].value == pytest.approx(best)
    assert [system.system for system in result.systems][1:] == ["first sentence", "random sentence"]


def test_a_metric_of_generated_texts_needs_records(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a dog runs\n" * 9)
    text = {"text": str(tmp_path / "text.txt")}
    recipe = {
        "task": {"kind": "language_model"},
        "data": {"train": text, "valid": text},
        "train": {"metric": "rougeL"},
        "out": str(tmp_path / "run"),
    }
    with pytest.raises(ConfigError, match="train.metric=rougeL compares generated texts .*text.txt has no template"):
        train(recipe, quiet=True)


def test_models_of_other_tasks_are_not_evaluated_on_records(tmp_path: Path) -> None:
    from tiny_language_model import tiny_language_model

    tiny_language_model(tmp_path / "model")
    with pytest.raises(ConfigError, match="without templates of records"):
        evaluate_outputs(tmp_path / "model", tmp_path / "test.jsonl")


def test_baselines_are_sentences_of_the_corpus_or_of_the_text() -> None:
    texts = ["A dog ran. The cat slept.", "One two."]
    held_out = HeldOutRecords([f"shorten: {each}" for each in texts], (["x", "y"],), [(), ("One", "two.")], texts)
    systems = dict(baselines(held_out, {"rougeL"}))
    assert systems["first sentence"] == ["A dog ran.", "One"]
    assert systems["random sentence"][0] in ("A dog ran.", "The cat slept.") and systems["random sentence"][1] in (
        "One",
        "two.",
    )
    assert baselines(held_out, {"bleu"}) == []


def test_baselines_divide_texts_by_the_rules_of_their_language(tmp_path: Path) -> None:
    """`bzw.` is an abbreviation in German."""
    german = "Er kommt bzw. Sie geht. Danach regnet es."
    template = {"source": "summarize: {text} TL;DR", "target": "{summary}"}
    path = write_objects(tmp_path / "texts.jsonl", [{"text": german, "summary": "x"}])
    held_out = read_references(corpus(pairs=str(path), template=template))
    assert held_out.sources == [f"summarize: {german} TL;DR"] and held_out.contents == [german]
    assert dict(baselines(held_out, {"rougeL"}, "de"))["first sentence"] == ["Er kommt bzw. Sie geht."]
    assert dict(baselines(held_out, {"rougeL"}, "en"))["first sentence"] != ["Er kommt bzw. Sie geht."]


def test_sets_that_are_held_out_are_scored_without_arguments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = toy(tmp_path, "text_to_text", max_steps=2)
    labels = [{"source": f"the {first} and the {second} box", "label": first} for first in WORDS for second in WORDS]
    recipe["data"]["train"]["pairs"] = str(write_objects(tmp_path / "all.jsonl", labels))
    del recipe["data"]["valid"]
    train(recipe, quiet=True)
    run = tmp_path / "run"
    assert read_config(run)["data"]["held_out"] == {"valid": 2, "test": 2, "seed": 1}
    test = run / "held_out" / "test.records.jsonl"
    assert main(["evaluate", str(run), "--json", "--metric", "exact_match"]) == 0
    own = json.loads(capsys.readouterr().out)
    assert main(["evaluate", "outputs", str(run), "--test", str(test), "--json", "--metric", "exact_match"]) == 0
    assert json.loads(capsys.readouterr().out)["systems"] == own["systems"]
    assert main(["evaluate", str(run), "--tokenized", "en"]) == 2
    assert "--tokenized can only be used with a translation model" in capsys.readouterr().err
    assert main(["evaluate", "outputs", str(run), "template.source=x"]) == 2
    assert "KEY=VALUE can only be used with --test FILE" in capsys.readouterr().err
    sets = {path: path.read_bytes() for path in (run / "held_out").iterdir()}
    assert main(["train", "--resume", "--out", str(run), "train.max_steps=3", "--quiet"]) == 0
    assert {path: path.read_bytes() for path in (run / "held_out").iterdir()} == sets
