"""Labels of held-out examples that no training example has, and labels that differ only in their spelling."""

from collections import Counter
from collections.abc import Iterable, Iterator

from dragoman.base.errors import DataError
from dragoman.data.held_out.check import Finding


def check_labels(train: Iterable[str], valid: Iterable[str], name: str) -> Iterator[Finding]:
    """Yield the number of held-out labels that are unknown, with examples and the likely cause.

    name: name of the held-out examples. Raises DataError if all of them are unknown, because there is nothing to score.
    """
    known, found = dict.fromkeys(train), Counter(valid)
    unknown = [label for label in found if label not in known]
    if not unknown:
        return
    count = sum(found[label] for label in unknown)
    twins = [(label, twin) for label in unknown if (twin := _twin(label, known)) is not None]
    listed = " and ".join(map(repr, unknown[:2]))
    cause = f". {twins[0][0]!r} is probably the training label {twins[0][1]!r}: use one spelling" if twins else ""
    if len(unknown) == len(found):
        others = " and ".join(map(repr, list(known)[:2]))
        raise DataError(
            f"no label of {name} occurs in the training data, so nothing can be scored: {name} has {listed}, the "
            f"training data {others}{cause or '. Check that the files belong together'}"
        )
    yield Finding(
        f"{count:,} of {found.total():,} labels of {name} do not occur in the training data and count as wrong, for "
        f"example {listed}{cause}"
    )


def check_spellings(train: Iterable[str], name: str) -> Iterator[Finding]:
    """Yield labels of the training examples that differ only in their spelling. name: name of the examples."""
    groups: dict[str, list[str]] = {}
    counts = Counter(train)
    for label in counts:
        groups.setdefault(_plain(label), []).append(label)
    alike = [group for group in groups.values() if len(group) > 1]
    if alike:
        listed = " and ".join(f"{label!r} ({counts[label]:,})" for label in alike[0])
        yield Finding(f"the labels {listed} of {name} are different classes. If they are the same, use one spelling")


def _twin(label: str, known: Iterable[str]) -> str | None:
    """Return the known label that is the same word or number in another spelling, if any."""
    return next((each for each in known if _plain(each) == _plain(label)), None)


def _plain(label: str) -> str:
    plain = label.strip().casefold()
    try:
        return repr(float(plain))
    except ValueError:
        return plain.replace("_", " ").replace("-", " ")
