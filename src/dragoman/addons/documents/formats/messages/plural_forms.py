"""`PluralForms`: how many plural forms a language has in gettext catalogues, and which form belongs to which number."""

import gettext
import re
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.base.packages import import_optional
from dragoman.text.languages.codes import base_language, bcp47

_DECLARATION = re.compile(r"nplurals\s*=\s*([1-9])\s*;\s*plural\s*=\s*([^;]{1,1000}?)\s*;?\s*\Z")
_LARGEST_NUMBER = 200
"""Numbers up to this one show which forms stand for several numbers; the rules depend on the last two digits."""


@dataclass(frozen=True)
class PluralForms:
    """count: the number of forms; declaration: the value of the header field `Plural-Forms`."""

    count: int
    declaration: str
    _form_of: Callable[[int], int]

    @property
    def singular(self) -> int:
        """The form for the number 1."""
        return self._form_of(1)

    @property
    def singular_is_shared(self) -> bool:
        """Whether the form for 1 is also the form for other numbers, such as 21 in Russian."""
        return any(self._form_of(number) == self.singular for number in range(2, _LARGEST_NUMBER))


def parse_plural_forms(declaration: str) -> PluralForms | None:
    """Return the forms that a header field declares, None if it is not filled in or invalid."""
    found = _DECLARATION.match(declaration.strip())
    if found is None:
        return None
    count = int(found[1])
    try:
        form_of = gettext.c2py(found[2])
        forms = {form_of(number) for number in range(_LARGEST_NUMBER)}
    except (ValueError, ZeroDivisionError, RecursionError, OverflowError):
        return None
    return PluralForms(count, declaration.strip(), form_of) if max(forms) < count else None


def plural_forms_of(language: str) -> PluralForms | None:
    """Return the forms of a language, None if they are unknown."""
    plurals = import_optional("babel.messages.plurals", "documents", "babel")
    known = plurals.PLURALS
    found = known.get(bcp47(language).replace("-", "_")) or known.get(base_language(language))
    return None if found is None else parse_plural_forms(f"nplurals={found[0]}; plural={found[1]};")
