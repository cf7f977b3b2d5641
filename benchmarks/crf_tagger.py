"""A linear-chain CRF with features made by hand, the simple peer of a tagger.

    PYTHON benchmarks/crf_tagger.py TRAIN TEST OUT [--valid VALID] [--columns 1]

PYTHON has python-crfsuite. The files have one word per line, its further columns (--columns: how many of them), and
its tag in the last column. OUT becomes a JSON object: `tags`, those of the test sentences; `lowered`, those with the
probability of O divided by the factor with the best F1 of spans on VALID; `seconds`, the processor time of features,
training and prediction without that choice.
"""

import argparse
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pycrfsuite  # not a dependency: installed in an environment of its own

FACTORS = [2**number for number in range(9)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("train", "test", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--valid", type=Path)
    parser.add_argument("--columns", type=int, default=0)
    parser.add_argument("--c1", type=float, default=0.0)
    parser.add_argument("--c2", type=float, default=1.0)
    parser.add_argument("--iterations", type=int, default=60)
    chosen = parser.parse_args()
    started = time.process_time()
    settings = {"c1": chosen.c1, "c2": chosen.c2, "max_iterations": chosen.iterations}
    trainer = pycrfsuite.Trainer("lbfgs", {**settings, "feature.possible_transitions": True}, verbose=False)
    for sentence in read(chosen.train):
        trainer.append(features(sentence, chosen.columns), [row[-1] for row in sentence])
    model = str(chosen.out.with_suffix(".crfsuite"))
    trainer.train(model)
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    test = [features(sentence, chosen.columns) for sentence in read(chosen.test)]
    result = {"tags": [tagger.tag(each) for each in test], "seconds": time.process_time() - started}
    if chosen.valid is not None:
        result["lowered"] = lowered(tagger, list(read(chosen.valid)), test, chosen.columns)
    chosen.out.write_text(json.dumps(result))


def read(path: Path) -> Iterator[list[list[str]]]:
    """Yield the rows of each sentence, each a list of its columns."""
    for block in re.split(r"\n[^\S\n]*\n", path.read_text(encoding="utf-8")):
        if rows := [line.split("\t") if "\t" in line else line.split(" ") for line in block.split("\n") if line]:
            yield rows


def shape(word: str) -> str:
    return re.sub(r"(.)\1+", r"\1", re.sub("[0-9]", "d", re.sub("[a-z]", "x", re.sub("[A-Z]", "X", word))))


def word_features(word: str) -> list[str]:
    lower = word.lower()
    ends = [
        f"{name}{size}={part}" for size in range(1, 5) for name, part in (("p", lower[:size]), ("s", lower[-size:]))
    ]
    kinds = [f"capital={word[:1].isupper()}", f"upper={word.isupper()}", f"digit={any(map(str.isdigit, word))}"]
    return [f"w={word}", f"l={lower}", f"shape={shape(word)}", *ends, *kinds]


def features(sentence: list[list[str]], columns: int) -> list[list[str]]:
    """Return the features of each word: its own, those of its neighbours, and pairs; and the same of the columns."""
    words = [row[0] for row in sentence]
    own = [word_features(word) for word in words]
    found = []
    for place in range(len(words)):
        here = ["bias", *own[place]]
        for distance in (-2, -1, 1, 2):
            if not 0 <= place + distance < len(words):
                here.append(f"{distance}:outside")
            elif abs(distance) == 1:
                here += [f"{distance}:{each}" for each in own[place + distance]]
            else:
                here += [f"{distance}:{each}" for each in own[place + distance][1:3]]
        lower, shapes = [word.lower() for word in words], [shape(word) for word in words]
        for name, values in (("l", lower), ("s", shapes)):
            window = [values[at] if 0 <= at < len(values) else "" for at in range(place - 1, place + 2)]
            here += [f"{name}{start}={'|'.join(window[start : start + 2])}" for start in (0, 1)]
            here.append(f"{name}={'|'.join(window)}")
        for column in range(1, columns + 1):
            tags = [sentence[at][column] if 0 <= at < len(words) else "" for at in range(place - 2, place + 3)]
            for size in (1, 2, 3):
                here += [f"{column}.{size}.{at}={'|'.join(tags[at : at + size])}" for at in range(6 - size)]
        found.append(here)
    return found


def spans(tags: list[str]) -> set[tuple[int, int, str]]:
    """Return the first and the last word, and the type, of each span of tags in IOB2."""
    found = set()
    for start in (place for place, tag in enumerate(tags) if tag[0] == "B"):
        end = start
        while end + 1 < len(tags) and tags[end + 1] == f"I-{tags[start][2:]}":
            end += 1
        found.add((start, end, tags[start][2:]))
    return found


def lowered(tagger: pycrfsuite.Tagger, valid: list, test: list, columns: int) -> list[list[str]]:
    """Return the most probable tag of each word of the test sentences, with the best factor on the validation set."""
    labels = tagger.labels()

    def marginals(sentence: list[list[str]]) -> list[dict[str, float]]:
        tagger.set(sentence)
        return [{label: tagger.marginal(label, place) for label in labels} for place in range(len(sentence))]

    def tags(sentence: list[dict[str, float]], factor: float) -> list[str]:
        return [max(word, key=lambda label: word[label] / (factor if label == "O" else 1)) for word in sentence]

    def score(factor: float) -> float:
        correct = total = 0
        for sentence, probabilities in zip(valid, known, strict=True):
            gold, found = spans([row[-1] for row in sentence]), spans(tags(probabilities, factor))
            correct, total = correct + len(gold & found), total + len(gold) + len(found)
        return 2 * correct / max(1, total)

    known = [marginals(features(sentence, columns)) for sentence in valid]
    factor = max(FACTORS, key=score)
    return [tags(marginals(sentence), factor) for sentence in test]


if __name__ == "__main__":
    main()
