"""`Contender`: a program to compare."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Contender:
    """A program with its recipe.

    name: in options and results; title: in tables and pictures; trainer: its module in `trainers`. fitted: whether its
    learning rate is fitted to the time limit, so that a run with another limit is another run. writes_ids: whether its
    translations are ids of the joint units instead of text. options: for the trainer.
    """

    name: str
    title: str
    trainer: str
    fitted: bool = False
    writes_ids: bool = False
    options: dict[str, Any] = field(default_factory=dict)


CONTENDERS = (
    Contender("dragoman", "dragoman: two files, nothing else", "dragoman", fitted=True),
    Contender(
        "dragoman-912dc44",
        "dragoman: recipe of 912dc44",
        "dragoman",
        fitted=True,
        options={"recipe": "multi30k-en-de-912dc44.yaml"},
    ),
    Contender("fairseq", "fairseq 0.12: its IWSLT'14 recipe", "fairseq", writes_ids=True),
    Contender("joey", "Joey NMT 2.3: its IWSLT'14 recipe", "joey"),
    *(
        Contender(name, f"plain loop: torch.nn.Transformer, dropout {rate}", "plain", False, True, {"dropout": rate})
        for name, rate in (("plain", 0.1), ("plain-0.3", 0.3))
    ),
)


def chosen(names: list[str]) -> list[Contender]:
    """Return the contenders with these names, or all if there are none. Raises KeyError for an unknown name."""
    known = {contender.name: contender for contender in CONTENDERS}
    return [known[name] for name in names] or list(CONTENDERS)
