"""The messages that docs/reference/error-messages.md explains are still those of the code."""

import re

import pytest
from repository import ROOT

PAGE = ROOT / "docs" / "reference" / "error-messages.md"
MESSAGES = re.findall(r"^### `(.*)`$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.fixture(scope="module")
def code() -> str:
    """The package with its strings on one line each and … for what is inserted into them."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    joined = re.sub(r'"\s*\n\s*f?"', "", text)
    braces = re.sub(r"\{\{|\}\}(?!\})", lambda match: "\x01" if match[0] == "{{" else "\x02", joined)
    return re.sub(r"\{[^{}]*\}", "…", braces).replace("\x01", "{").replace("\x02", "}")


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_one_of_the_code(message: str, code: str) -> None:
    """… at the ends of a message stands for the rest of the sentence, within it for one inserted value."""
    assert message.strip("… ") in code


def test_at_least_thirty_messages_are_explained() -> None:
    assert len(MESSAGES) == len(set(MESSAGES)) >= 30
