"""Code outside of a model's own package asks what it can do (its record or a protocol), never for its class."""

import ast
from collections.abc import Iterator

import pytest
from repository import ROOT

from dragoman.inference.abilities import PROTOCOLS
from dragoman.models.kinds.registry import ABILITIES, KINDS

SOURCE = ROOT / "src" / "dragoman"
ROOMS = {
    "Translator": "inference/translation",
    "LanguageModel": "inference/generation",
    "Predictor": "inference/prediction",
    "NodePredictor": "inference/prediction",
    "WordAligner": "statistical/alignment",
}
"""The classes of loaded models of the built-in kinds, each with its package."""
WITHOUT_OBJECT = {"ensemble", "fuse", "export", "teach"}
"""Abilities of model folders, for which no loaded object is needed."""


def asked_classes(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that ask for the class of a loaded model: isinstance, issubclass, type(…), and match patterns."""
    for node in ast.walk(ast.parse(source)):
        asked: list[ast.AST] = []
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            asked = node.args[1:2]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        elif isinstance(node, ast.Compare) and any(
            isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "type"
            for each in (node.left, *node.comparators)
        ):
            asked = [node]
        names = {each for part in asked for each in map(_name, ast.walk(part)) if each in ROOMS}
        yield from ((getattr(node, "lineno", 0), name) for name in sorted(names))


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def test_no_module_asks_for_the_class_of_a_loaded_model() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, name in asked_classes(path.read_text("utf-8"))
        if not path.is_relative_to(SOURCE / ROOMS[name])
    ]
    assert not found, f"ask the record of the kind (`.kind.abilities`) or a protocol of inference/abilities: {found}"


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(model, Translator)",
        "isinstance(model, str | Predictor)",
        "isinstance(model, (dragoman.LanguageModel, str))",
        "issubclass(cls, NodePredictor)",
        "type(model) is WordAligner",
        "match model:\n    case Translator(): pass",
    ],
)
def test_a_question_for_a_class_would_be_found(line: str) -> None:
    assert list(asked_classes(f"import dragoman\n{line}\n"))


def test_each_ability_of_a_loaded_object_has_a_protocol() -> None:
    assert set(PROTOCOLS) == set(ABILITIES) - WITHOUT_OBJECT
    assert all(kind.loader is not None for kind in KINDS.values() if kind.config.__module__.startswith("dragoman."))
