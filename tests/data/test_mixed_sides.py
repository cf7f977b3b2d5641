"""Corpora in which source and target are exchanged in some of the pairs."""

import random
from pathlib import Path

import pytest

from dragoman.cli.main import main
from dragoman.data.held_out.mixed import find_mixed

ENGLISH = "the dog cat house runs sleeps quickly under with green small children play water yesterday".split()
GERMAN = "der Hund Katze Haus läuft schläft schnell unter mit grün klein Kinder spielen Wasser gestern".split()


def sample(fraction: float, languages: tuple[list[str], list[str]] = (ENGLISH, GERMAN)) -> list[tuple[int, str, str]]:
    draw = random.Random(1)
    rows = []
    for line in range(1, 401):
        words = [draw.randrange(len(ENGLISH)) for _ in range(draw.randint(3, 9))]
        pair = [" ".join(language[word] for word in words) for language in languages]
        rows.append((line, *(pair[::-1] if draw.random() < fraction else pair)))
    return rows  # type: ignore[return-value]


@pytest.mark.parametrize("fraction", [0.05, 0.2, 0.45])
def test_the_exchanged_pairs_are_found(fraction: float) -> None:
    rows = sample(fraction)
    expected = [line for line, source, _ in rows if source.split()[0] in GERMAN]
    found = find_mixed(rows)
    assert found is not None
    assert found.fraction == len(expected) / len(rows)
    assert found.lines == tuple(expected[:3])


@pytest.mark.parametrize(
    "rows",
    [[], [(1, "a", "b")], sample(0), sample(1), sample(0.005), sample(0.3, (ENGLISH, ENGLISH)),
     [(line, source, " ".join(reversed(source.split()))) for line, source, _ in sample(0)]],
)  # fmt: skip
def test_nothing_is_found_without_exchanged_pairs_or_without_two_languages(rows: list[tuple[int, str, str]]) -> None:
    assert find_mixed(rows) is None


def test_the_check_of_a_corpus_warns_with_the_fraction_and_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pairs.tsv"
    rows = sample(0.2)
    path.write_text("".join(f"{source}\t{target}\n" for _, source, target in rows), encoding="utf-8")
    assert main(["data", "check", "--pairs", str(path)]) == 0
    found = find_mixed(rows)
    assert found is not None
    error = capsys.readouterr().err
    count = round(400 * found.fraction)
    expected = f"exchanged in {found.fraction:.0%} of the pairs (about {count} of 400), such as those of lines "
    assert f"{expected}{found.lines[0]}, " in error
    assert main(["data", "compare", "--pairs", str(path)]) == 0  # training makes the same checks
    assert capsys.readouterr().out.count(f"{expected}{found.lines[0]}, ") == 1
