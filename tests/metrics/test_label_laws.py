"""Laws of labels: metrics ignore order and names, spans survive tagging, and files are read as they were written."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.data.labelled.corpus import LabelledCorpusConfig, TaggedCorpusConfig
from dragoman.data.labelled.examples import LabelledText, TaggedSentence
from dragoman.data.labelled.read import read_labelled, read_tagged
from dragoman.metrics.labels.classification import ConfusionMatrix
from dragoman.metrics.labels.regression import pearson, spearman
from dragoman.metrics.labels.spans import CONVENTIONS, SCHEMES, Scheme, Span, detect_scheme, find_spans

quick = settings(max_examples=30, deadline=None, derandomize=True)
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\t\ufeff"), max_size=8)
label = text.filter(str.strip)
rows = st.lists(st.tuples(text, text, label), min_size=1, max_size=6)
pairs = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("laws")


@quick
@given(pairs)
def test_order_and_names_do_not_matter(examples: list[tuple[str, str]]) -> None:
    values = ConfusionMatrix.of(*zip(*examples, strict=True)).values
    shuffled = sorted(examples)
    assert ConfusionMatrix.of(*zip(*shuffled, strict=True)).values == pytest.approx(values)
    renamed = [("zxy"["abc".index(gold)], "zxy"["abc".index(guess)]) for gold, guess in examples]
    assert ConfusionMatrix.of(*zip(*renamed, strict=True)).values == pytest.approx(values)
    ordered = ConfusionMatrix.of(*zip(*examples, strict=True), labels=["c", "unused", "a", "b"])
    assert ordered.values == pytest.approx(values)
    swapped = ConfusionMatrix.of(*reversed(list(zip(*examples, strict=True)))).values
    for key in ("accuracy", "macro_f1", "matthews"):  # symmetric in labels and predictions
        assert swapped[key] == pytest.approx(values[key])


@quick
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=12))
def test_correlations_ignore_scale_order_and_side(values: list[tuple[int, int]]) -> None:
    gold, predicted = ([float(value) for value in side] for side in zip(*values, strict=True))
    for correlation in (pearson, spearman):
        value = correlation(gold, predicted)
        expected = None if value is None else pytest.approx(value, abs=1e-9)
        assert correlation(predicted, gold) == expected
        assert correlation([3 * each - 7 for each in gold], predicted) == expected
        assert correlation(gold[::-1], predicted[::-1]) == expected
        negative = correlation([-each for each in gold], predicted)
        assert negative == (None if value is None else pytest.approx(-value, abs=1e-9))
    rank = spearman(gold, predicted)
    assert spearman([each**3 for each in gold], predicted) == (None if rank is None else pytest.approx(rank))


def write_tags(spans: list[Span], length: int, scheme: Scheme) -> list[str]:
    tags = ["O"] * length
    for span in spans:
        for position in range(span.start, span.end):
            tags[position] = f"I-{span.type}"
        if scheme != "IOB1" or (span.start and tags[span.start - 1].partition("-")[2] == span.type):
            tags[span.start] = f"B-{span.type}"
        if scheme in ("IOBES", "BILOU"):
            end, single = ("E", "S") if scheme == "IOBES" else ("L", "U")
            tags[span.end - 1] = f"{single if span.end - span.start == 1 else end}-{span.type}"
    return tags


@quick
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from(["X", "Y-Z"])), min_size=1, max_size=5))
def test_spans_survive_their_tags_in_every_scheme(gaps: list[tuple[int, int, str]]) -> None:
    spans: list[Span] = []
    position = 0
    for gap, size, kind in gaps:
        spans.append(Span(kind, position + gap, position + gap + size))
        position += gap + size
    for scheme in SCHEMES:
        tags = write_tags(spans, position + 1, scheme)
        for convention in CONVENTIONS:
            assert find_spans(tags, scheme, convention) == spans, (scheme, convention, tags)
        assert detect_scheme([tags]) == scheme


@quick
@given(rows)
def test_tables_and_json_are_read_as_written(folder: Path, examples: list[tuple[str, str, str]]) -> None:
    expected = [LabelledText((first, second), name) for first, second, name in examples]
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\r\n")
    writer.writerows([("sentence1", "sentence2", "label"), *examples])
    contents = {
        "x.tsv": "sentence1\tsentence2\tlabel\n" + "".join("\t".join(row) + "\n" for row in examples),
        "x.csv": table.getvalue(),
        "x.jsonl": "".join(
            json.dumps({"sentence1": row[0], "sentence2": row[1], "label": row[2]}, ensure_ascii=False) + "\n"
            for row in examples
        ),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content.encode())
        assert read_labelled(LabelledCorpusConfig(path=folder / name)) == expected, name


@quick
@given(st.lists(st.lists(st.tuples(label, label), min_size=1, max_size=4), min_size=1, max_size=3))
def test_tagged_sentences_are_read_as_written(folder: Path, sentences: list[list[tuple[str, str]]]) -> None:
    if any(word.startswith("-DOCSTART-") for sentence in sentences for word, _ in sentence):
        return
    content = "\n\n".join("\n".join(f"{word}\t{tag}" for word, tag in sentence) for sentence in sentences)
    (folder / "x.conll").write_bytes(content.encode())
    expected = [TaggedSentence(*zip(*sentence, strict=True)) for sentence in sentences]
    assert read_tagged(TaggedCorpusConfig(path=folder / "x.conll")) == expected
