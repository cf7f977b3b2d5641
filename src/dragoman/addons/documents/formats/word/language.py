"""The spelling languages of Word documents (`w:lang`, ECMA-376 part 1, section 17.3.2.20)."""

from dragoman.addons.documents.formats.word.package import Element, attribute, child, local_name, set_attribute
from dragoman.addons.documents.languages import Languages, script_group, with_region
from dragoman.text.languages.codes import is_same_language

_ATTRIBUTES = {"western": "val", "asian": "eastAsia", "complex": "bidi"}
"""The attribute of `w:lang` by the group of scripts of a language."""


def language_tag(code: str) -> str:
    """Return a language as Word writes it, such as `de-DE`."""
    return "-".join(filter(None, with_region(code)))


def set_run_language(properties: Element, target: str) -> None:
    """Set the language of translated text whose properties, `w:rPr`, name a language."""
    language = child(properties, "lang")
    if language is not None:
        set_attribute(language, _ATTRIBUTES[script_group(target)], language_tag(target))


def set_style_languages(styles: Element, languages: Languages) -> bool:
    """Change the source language of the document defaults and styles to the target language.

    If the source language is unknown, only the defaults are changed. Returns whether anything has changed.
    """
    changed = False
    for owner in styles:
        if local_name(owner) == "docDefaults":
            owner = child(owner, "rPrDefault")
        elif local_name(owner) != "style" or languages.source is None:
            continue
        properties = None if owner is None else child(owner, "rPr")
        language = None if properties is None else child(properties, "lang")
        if language is not None and languages.target is not None and _names_source(language, languages.source):
            set_attribute(language, _ATTRIBUTES[script_group(languages.target)], language_tag(languages.target))
            changed = True
    return changed


def _names_source(language: Element, source: str | None) -> bool:
    if source is None:
        return True
    present = attribute(language, _ATTRIBUTES[script_group(source)])
    return present is not None and is_same_language(present, source)
