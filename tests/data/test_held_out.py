"""Validation sets are compared with the training corpora before the first update."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import compare_data
from dragoman.cli.main import main
from dragoman.data.cleaning.sentence_keys import normalise
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.held_out.check import (
    FEW_PAIRS,
    PairSet,
    TextSet,
    check_examples,
    check_pairs,
    check_texts,
)
from dragoman.data.held_out.overlap import OverlapCounter
from dragoman.data.held_out.shifts import BLOCK, ShiftDetector
from dragoman.data.held_out.sides import Sides

NOUNS = {"dog": "Hund", "house": "Haus", "tree": "Baum", "river": "Fluss", "teacher": "Lehrer", "window": "Fenster"}
VERBS = {"sees": "sieht", "finds": "findet", "forgets": "vergisst", "describes": "beschreibt", "likes": "mag"}
PLACES = {"in the old town": "in der alten Stadt", "behind the school": "hinter der Schule", "today": "heute"}


def made_pairs(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Return distinct English sentences of various lengths with their German translations."""
    draw, pairs = random.Random(seed), {}
    while len(pairs) < count:
        clauses = []
        for _ in range(draw.randint(1, 4)):
            subject, thing = (draw.choice(list(NOUNS.items())) for _ in range(2))
            verb, place = draw.choice(list(VERBS.items())), draw.choice(list(PLACES.items()))
            number = draw.randint(2, 9999)
            clauses.append(
                (
                    f"the {subject[0]} {verb[0]} the {number} {thing[0]}s {place[0]}",
                    f"der {subject[1]} {verb[1]} die {number} {thing[1]} {place[1]}",
                )
            )
        pairs[" and ".join(clause[0] for clause in clauses)] = " und ".join(clause[1] for clause in clauses)
    return list(pairs.items())


@pytest.fixture(autouse=True)
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mixed-up languages, which have their own tests, are looked for in few pairs."""
    monkeypatch.setattr("dragoman.data.held_out.mixed._SAMPLE", 100)


TRAIN = made_pairs(FEW_PAIRS)
VALID = [pair for pair in made_pairs(FEW_PAIRS + 200, seed=2) if pair not in TRAIN][:200]


def written(folder: Path, pairs: list[tuple[str, str]], **settings: Any) -> CorpusConfig:
    path = folder / f"{len(list(folder.iterdir()))}.tsv"
    path.write_text("".join("\t".join(pair) + "\n" for pair in pairs), encoding="utf-8")
    return CorpusConfig(pairs=path, name="train", **settings)


def held_out(pairs: list[tuple[str, str]], language: str | None = None) -> PairSet:
    return PairSet("valid", [source for source, _ in pairs], [target for _, target in pairs], language)


def messages(
    folder: Path, valid: list[tuple[str, str]], train: list[tuple[str, str]] = TRAIN, **named: str
) -> list[str]:
    """Return the warnings."""
    return [
        finding.message
        for finding in check_pairs(
            [written(folder, train)], [held_out(valid)], (named.get("source_language"), named.get("target_language"))
        )
        if finding.is_warning
    ]


def shifted(pairs: list[tuple[str, str]], lines: int) -> list[tuple[str, str]]:
    """Return pairs in which target n + lines belongs to source n."""
    return [(source, pairs[(row - lines) % len(pairs)][1]) for row, (source, _) in enumerate(pairs)]


def test_a_good_validation_set_is_not_reported(tmp_path: Path) -> None:
    assert messages(tmp_path, VALID, source_language="en", target_language="de") == []
    assert list(check_pairs([written(tmp_path, TRAIN)], [held_out(VALID)])) == []


def test_pairs_of_the_training_corpora_are_counted(tmp_path: Path) -> None:
    (message,) = messages(tmp_path, TRAIN[:300])
    assert message.startswith("valid: 300 of 300 validation pairs are also in the training corpora. The scores")
    changed = [(source.upper().replace(" ", "  "), f" {target}") for source, target in TRAIN[:30]]
    (message,) = messages(tmp_path, VALID[:70] + TRAIN[:20] + changed[:10])
    assert (
        "valid: 30 of 100 validation pairs are also in the training corpora, 10 of them with other case or spaces"
        in message
    )
    findings = list(check_pairs([written(tmp_path, TRAIN)], [held_out(VALID + TRAIN[:1])]))
    assert [finding.is_warning for finding in findings] == [False]  # less than 1%
    assert findings[0].message == "valid: 1 of 201 validation pairs are also in the training corpora"
    others = [(source, target) for (source, _), (_, target) in zip(TRAIN[:50], VALID, strict=False)]
    findings = list(check_pairs([written(tmp_path, TRAIN)], [held_out(VALID + others)]))
    assert (
        "the sources of 50 of 250 validation pairs are also in the training corpora, with other transl"
        in findings[0].message
    )


@given(st.lists(st.tuples(st.text("aA ß\tẞ", max_size=4), st.text("bB", max_size=2)), max_size=12), st.data())
def test_the_overlap_is_that_of_a_direct_comparison(items: list[tuple[str, str]], data: st.DataObject) -> None:
    train = data.draw(st.lists(st.sampled_from(items) if items else st.nothing(), max_size=5)) if items else []
    train += data.draw(st.lists(st.tuples(st.text("aA ß", max_size=4), st.text("bB", max_size=2)), max_size=5))
    counter = OverlapCounter(items)
    counter.add_all(train)
    result = counter.result()
    rows = [item for item in items if any(map(normalise, item))]
    known = {tuple(map(normalise, item)) for item in train}
    assert result.total == len(rows)
    assert result.exact == sum(item in set(train) for item in rows)
    assert result.normalised == sum(tuple(map(normalise, item)) in known for item in rows)
    assert result.sources in (sum(normalise(item[0]) in {source for source, _ in known} for item in rows), None)


def test_normalisation_ignores_case_spaces_composition_and_repairs() -> None:
    assert normalise("AT&amp;T\u00ad said\x0c&quot;no&quot;") == normalise('AT&T said "no"')
    assert normalise("  Straße\u00a0A\u0308b ") == normalise("STRASSE äB")
    assert normalise("日本 語") == "日本 語"


def test_swapped_sides_in_different_scripts_are_reported(tmp_path: Path) -> None:
    draw = random.Random(4)
    chinese = [(source, "".join(chr(draw.randint(0x4E00, 0x9000)) for _ in range(12))) for source, _ in TRAIN + VALID]
    train, valid = chinese[: len(TRAIN)], chinese[len(TRAIN) :]
    assert messages(tmp_path, valid, train) == []
    (message,) = messages(tmp_path, [(target, source) for source, target in valid], train)
    assert message.startswith("valid: source and target seem to be swapped: they are written in Han and Latin letters")


@pytest.mark.parametrize("count", [6, 200])
def test_swapped_sides_are_reported(count: int, tmp_path: Path) -> None:
    (message,) = messages(tmp_path, [(target, source) for source, target in VALID[:count]])
    assert message.startswith(
        "valid: source and target seem to be swapped: 100% of the sources are more similar to the"
    )


def test_a_side_in_the_language_of_the_other_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both_german = [(target, f"{target} !") for _, target in VALID]
    both_english = [(f"{source} !", source) for source, _ in VALID]
    (message,) = messages(tmp_path, both_german)
    assert message.startswith("valid: the source is probably de (confidence 100%), but that of the training corpora en")
    (message,) = messages(tmp_path, both_english)
    assert message.startswith("valid: the target is probably en (confidence 100%), but that of the training corpora de")
    monkeypatch.setattr("dragoman.data.held_out.check._detect", lambda *_: None)  # as without the library
    (message,) = messages(tmp_path, both_german)
    assert message.startswith("valid: 100% of the sources are more similar to the training targets")
    (message,) = messages(tmp_path, both_english)
    assert message.startswith("valid: 100% of the targets are more similar to the training sources")


def test_sides_that_cannot_be_distinguished_are_not_judged() -> None:
    same = [(source, other) for (source, _), (other, _) in zip(TRAIN, made_pairs(FEW_PAIRS, seed=9), strict=True)]
    sides = Sides(same)
    assert not sides.are_distinct
    assert sides.compare([(target, source) for source, target in same[:100]]) is None
    assert Sides(TRAIN).are_distinct
    assert Sides([]).compare(VALID) is None


@pytest.mark.parametrize("lines", [-2, -1, 1, 2])
@pytest.mark.parametrize("count", [60, 200])
def test_shifted_sides_are_reported_with_their_direction(lines: int, count: int, tmp_path: Path) -> None:
    (message,) = messages(tmp_path, shifted(VALID[:count], lines))
    direction = "later" if lines > 0 else "earlier"
    plural = "" if abs(lines) == 1 else "s"
    assert f"the translation of a line is {abs(lines)} line{plural} {direction}" in message
    assert "standard deviations" in message


def test_a_training_corpus_that_is_shifted_from_some_line_on_is_reported(tmp_path: Path) -> None:
    pairs = made_pairs(3 * BLOCK, seed=3)
    train = pairs[:BLOCK] + shifted(pairs[BLOCK:], 1)
    (message,) = messages(tmp_path, VALID, train)
    assert message.startswith(f"train: the two sides seem to be shifted from about line {BLOCK + 1} on")


@settings(max_examples=10)
@given(st.integers(0, 10_000))
def test_unshifted_pairs_of_any_order_are_not_reported(seed: int) -> None:
    pairs = TRAIN[:300]
    random.Random(seed).shuffle(pairs)
    orders = [pairs, sorted(pairs, key=lambda pair: len(pair[0])), [("one", "eins")] * 300]
    draw = random.Random(seed)
    orders.append([("x" * draw.randint(1, 99), "y" * draw.randint(1, 99)) for _ in range(300)])  # no translations
    for order in orders:
        detector = ShiftDetector()
        for pair in order:
            detector.add(*pair)
        assert detector.finish() is None


def test_languages_other_than_the_named_ones_are_reported(tmp_path: Path) -> None:
    found = messages(tmp_path, VALID, source_language="de", target_language="en")
    assert [message.partition(" (")[0] for message in found] == [
        "train: the source is probably en",
        "train: the target is probably de",
        "valid: the source is probably en",
        "valid: the target is probably de",
    ]
    assert "not de as data.source_language says" in found[0]


RUSSIAN = [("собака видит дом в старом городе", "dom"), ("учитель забывает окно за школой", "okno")] * 30
FRENCH = [("le chien voit la maison dans la vieille ville et il oublie la fenêtre", "der Hund sieht das Haus")] * 60


@pytest.mark.parametrize(
    ("valid", "expected"),
    [
        (RUSSIAN, "valid: the source is mostly written in Cyrillic letters, but that of the training corpora in Latin"),
        (FRENCH, "valid: the source is probably fr (confidence"),
    ],
)
def test_another_language_than_that_of_training_is_reported(
    valid: list[tuple[str, str]], expected: str, tmp_path: Path
) -> None:
    assert any(message.startswith(expected) for message in messages(tmp_path, valid))


@pytest.mark.parametrize(
    ("texts", "train", "differs"),
    [
        (["我们" * 60] * 3, ["我们", "北京"], False),  # long and short Chinese
        (["日本語です。", "これは犬です。"], ["我们", "北京"], True),
        (["한국어입니다"], ["日本語です。"], True),
        (["สวัสดี"], ["ສະບາຍດີ"], True),
        (["नमस्ते"], ["नमस्ते दुनिया", "हम"], False),
    ],
)
def test_scripts_of_all_kinds_are_compared(texts: list[str], train: list[str], differs: bool) -> None:
    findings = check_examples([(text,) for text in train] * 20, [(text,) for text in texts], "valid")
    assert any("mostly written in" in finding.message for finding in findings) == differs


def test_each_target_language_is_compared_with_its_own_corpora(tmp_path: Path) -> None:
    reversed_pairs = [(target, source) for source, target in TRAIN]
    corpora = [written(tmp_path, TRAIN, target_language="de"), written(tmp_path, reversed_pairs, target_language="en")]
    valid = [(target, source) for source, target in VALID]
    assert list(check_pairs(corpora, [held_out(VALID, "de"), held_out(valid, "en")])) == []
    swapped = list(check_pairs(corpora, [held_out(VALID, "en"), held_out(valid, "de")]))
    assert [finding.message[:43] for finding in swapped] == ["valid: source and target seem to be swapped"] * 2


def test_few_training_pairs_are_questioned(tmp_path: Path) -> None:
    (message,) = messages(tmp_path, VALID, TRAIN[:20])
    assert message.startswith("data.train has only 20 pairs. ")


def test_lines_of_plain_text_are_compared(tmp_path: Path) -> None:
    lines = [source for source, _ in made_pairs(2000, seed=5)]
    path = tmp_path / "text"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    corpus = TextCorpusConfig(text=path)
    assert list(check_texts([corpus], [TextSet("valid", [source for source, _ in VALID])])) == []
    documents = ["\n".join([*lines[:10], "", "too short", *(source for source, _ in VALID[:10])])]
    for config in (corpus, TextCorpusConfig(text=path, documents="file")):
        (finding,) = check_texts([config], [TextSet("valid", documents)])
        assert finding.message.startswith("valid: 10 of 20 validation lines are also in the training corpora")
    german = [target for _, target in VALID]
    (finding,) = check_texts([corpus], [TextSet("valid", german)])
    assert finding.message.startswith("valid: the text is probably de")


def test_labelled_examples_are_compared() -> None:
    train = [(source, "b") for source, _ in TRAIN[:50]]
    valid = [(source, "b") for source, _ in VALID[:50]]
    assert list(check_examples(train, valid, "valid")) == []
    (finding,) = check_examples(train, [*valid, ("The Dog", "b"), *train[:50]], "valid")
    assert finding.message.startswith("valid: 50 of 101 validation examples are also in the training corpora")
    assert [finding.message[:31] for finding in check_examples(train[:3], valid, "valid")] == [
        "data.train has only 3 examples."
    ]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("translation", "40 of 40 validation pairs are also in the training corpora"),
        ("language_model", "40 of 40 validation lines are also in the training corpora"),
        ("masked_language_model", "40 of 40 validation lines are also in the training corpora"),
        ("classification", "40 of 40 validation examples are also in the training corpora"),
    ],
)
def test_every_task_compares_before_it_prepares(
    task: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for name in (
        "translation.job.prepare",
        "corpora.text_job.prepare_texts",
    ):
        monkeypatch.setattr(f"dragoman.tasks.{name}", stop)
    monkeypatch.setattr("dragoman.tasks.labelled.job.train_tokenizers", stop)
    path = tmp_path / "corpus"
    path.write_text("".join("\t".join(pair) + "\n" for pair in TRAIN[:40]), encoding="utf-8")
    key = "text" if "language" in task else "path" if task == "classification" else "pairs"
    corpus = {key: str(path)} | ({"columns": {"text": 1, "label": 2}} if task == "classification" else {})
    recipe = f"task: {{kind: {task}}}\ndata: {{train: {corpus}, valid: {corpus}}}\n"
    recipe += f"train: {{max_steps: 1}}\nout: {tmp_path}/run\n"
    (tmp_path / "recipe.yaml").write_text(recipe)
    assert main(["train", str(tmp_path / "recipe.yaml")]) == 130
    assert expected in capsys.readouterr().err


def test_the_command_compares_several_corpora_and_sets_without_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, pairs in (("first", TRAIN[:500]), ("second", TRAIN[500:]), ("good", VALID), ("bad", TRAIN[450:550])):
        (tmp_path / name).write_text("".join("\t".join(pair) + "\n" for pair in pairs), encoding="utf-8")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        f"""
        data:
          train: [{{pairs: {tmp_path}/first}}, {{pairs: {tmp_path}/second}}]
          valid: [{{pairs: {tmp_path}/good}}, {{pairs: {tmp_path}/bad}}]
        out: {tmp_path}/run
        """
    )
    assert main(["data", "compare", str(recipe)]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"warning: {tmp_path}/bad: 100 of 100 validation pairs are also in the training corpora. ")
    assert main(["data", "compare", str(recipe), f"data.valid={{pairs: {tmp_path}/good}}"]) == 0
    assert capsys.readouterr().out == "No problem found.\n"
    assert not (tmp_path / "run").exists()
    (finding,) = compare_data(recipe)
    assert finding.is_warning
