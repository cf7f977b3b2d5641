"""CITATION.cff has the fields that version 1.2.0 of the Citation File Format requires, and the package's version."""

import yaml
from repository import ROOT

import dragoman

CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
# https://github.com/citation-file-format/citation-file-format/blob/1.2.0/schema.json
REQUIRED = {"authors", "cff-version", "message", "title"}
KNOWN = REQUIRED | {
    "type",
    "version",
    "license",
    "abstract",
    "keywords",
    "date-released",
    "doi",
    "url",
    "repository-code",
}


def test_it_has_the_required_fields_and_no_unknown_ones() -> None:
    assert CITATION.keys() >= REQUIRED
    assert CITATION.keys() <= KNOWN
    assert CITATION["cff-version"] == "1.2.0" and CITATION["type"] == "software"


def test_authors_are_entities_or_persons_with_text_values() -> None:
    assert CITATION["authors"]
    for author in CITATION["authors"]:
        assert {"name"} <= author.keys() or {"family-names"} <= author.keys()
    assert all(isinstance(CITATION[key], str) and CITATION[key] for key in ("message", "title", "version", "license"))
    assert len(set(CITATION["keywords"])) == len(CITATION["keywords"])


def test_it_names_the_version_and_the_licence_of_the_package() -> None:
    assert CITATION["version"] == dragoman.__version__
    assert CITATION["license"] == "Apache-2.0"
