"""Shows the prose of docstrings as the API reference: arguments as a list with types, code spans, and examples.

A docstring describes arguments in sentences such as "text: the source. count: number of tokens, from 1."
"""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from textwrap import dedent
from typing import Any

_SENTENCE = re.compile(r"(?:^|(?<=[.;)] ))((?:\w+, )*\w+): ")
_LAST = re.compile(r"(?<=\. )(?=Raises |The (?:other|remaining) arguments|Returns )")
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", _process)
    app.connect("autodoc-process-signature", _shorten)
    return {"parallel_read_safe": True}


def _process(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    types = _types(value)
    lines[:] = [line for paragraph in _paragraphs(lines) for line in (*_convert(paragraph, types), "")]


def _shorten(app: Any, what: str, name: str, value: Any, options: Any, signature: str, result: str) -> Any:
    """Leave types out of the signature: they stand beside the descriptions of the arguments."""
    if not callable(value):
        return signature, result
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return signature, result
    if inspect.isclass(value) and value.__init__ is object.__init__:
        return "", None
    bare = [
        parameter.replace(annotation=parameter.empty)
        for number, parameter in enumerate(parameters)
        if not (number == 0 and parameter.name in ("self", "cls"))
    ]
    node = _function(value)
    returned = ast.unparse(node.returns) if node is not None and node.returns and not inspect.isclass(value) else None
    return str(inspect.Signature(bare)), returned


def _paragraphs(lines: Iterable[str]) -> Iterator[list[str]]:
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            yield paragraph
            paragraph = []


def _convert(paragraph: list[str], types: dict[str, str]) -> list[str]:
    """Return a paragraph in reStructuredText. types: the types of the arguments by name."""
    if paragraph[0].startswith((">>>", ".. ", " ", ":")):
        return paragraph
    text = " ".join(line.strip() for line in paragraph)
    found = [match for match in _SENTENCE.finditer(text) if all(name in types for name in match[1].split(", "))]
    if not found:
        return [_spans(text)]
    converted = [_spans(text[: found[0].start()].strip()), ""] if found[0].start() else []
    rest = ""
    for match, following in zip(found, [*found[1:], None], strict=True):
        description = text[match.end() : following.start() if following else None].strip()
        if following is None:
            description, *others = _LAST.split(description)
            rest = " ".join(others)
        for name in match[1].split(", "):
            converted += [f":param {name}: {_spans(description)}"]
            converted += [f":type {name}: ``{types[name]}``"] if types[name] else []
    return [*converted, "", _spans(rest)]


def _spans(text: str) -> str:
    """Convert code spans of Markdown, and escape what reStructuredText would interpret outside of them."""
    parts = _SPAN.split(text)
    plain = (re.sub(r"([*|\\]|_(?=\W|$))", r"\\\1", part) for part in parts[::2])
    code = (f"``{part}``" for part in parts[1::2])
    return "".join(part for pair in zip(plain, [*code, ""], strict=True) for part in pair)


def _types(value: Any) -> dict[str, str]:
    """Return the types of the arguments of a function or of the fields of a class, as in its source."""
    node = _function(value)
    found: dict[str, str] = {}
    if node is not None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        found = {each.arg: ast.unparse(each.annotation) if each.annotation else "" for each in arguments}
    if inspect.isclass(value):
        fields = {name: "" for parent in value.__mro__ for name in getattr(parent, "__annotations__", {})}
        found = {**fields, **found}
    return found


def _function(value: Any) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return the definition of a function, or of the constructor of a class, from its source."""
    function = inspect.unwrap(value.__init__ if inspect.isclass(value) else getattr(value, "__func__", value))
    try:
        tree = ast.parse(dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    definition = tree.body[0]
    return definition if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef) else None
