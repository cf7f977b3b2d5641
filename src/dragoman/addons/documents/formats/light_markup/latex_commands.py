"""The commands of LaTeX whose arguments are text, and the characters that commands stand for."""

import re
import unicodedata

ARGUMENTS = frozenset(
    "part chapter section subsection subsubsection paragraph subparagraph caption footnote footnotetext thanks "
    "marginpar todo title subtitle frametitle framesubtitle".split()
)
"""Commands whose argument is a text of its own."""

SEPARATE = frozenset(("href", "hyperref"))
RAISED = frozenset(("textsuperscript", "textsubscript"))
RAISED_COMMANDS = {"circ": "°", "prime": "′", "dagger": "†", "ddagger": "‡", "ast": "*", "star": "*"}
"""The characters of commands that are the exponent of a formula."""

SPAN = ARGUMENTS | frozenset(
    "textbf textit emph textsl textsc textrm textsf textmd textup textnormal underline uline sout href hyperref "
    "textcolor colorbox mbox text enquote textquote alert structure textsuperscript textsubscript centerline".split()
)
"""Commands whose last argument is text."""

LEADING_ARGUMENTS = {"href": 1, "textcolor": 1, "colorbox": 1}
"""The numbers of arguments before the text."""

KEPT_ENVIRONMENTS = frozenset(
    "equation align gather multline eqnarray flalign alignat displaymath math array split cases matrix pmatrix bmatrix "
    "subequations verbatim Verbatim lstlisting minted tikzpicture comment algorithm algorithmic alltt filecontents "
    "thebibliography pgfplots forest tikzcd prooftree "
    # commands whose arguments are never text
    "label cite citep citet citeauthor citeyear nocite parencite textcite autocite ref eqref autoref cref Cref pageref "
    "nameref url input include includegraphics usepackage documentclass bibliography bibliographystyle newcommand "
    "renewcommand providecommand def let setlength addtolength setcounter addtocounter vspace hspace newpage index "
    "texttt path pagestyle thispagestyle bibitem graphicspath lstset hypersetup definecolor color fontsize selectfont "
    "multicolumn multirow cline resizebox scalebox rotatebox raisebox rule newtheorem DeclareMathOperator ensuremath "
    "phantom hphantom vphantom geometry addbibresource printbibliography captionsetup tikz SI num si qty unit ce gls "
    "Gls glspl acrshort acrlong ac acp author date institute affil email linespread addcontentsline markboth".split()
)
"""Environments whose content is kept, and commands whose arguments are kept without a word."""

CHARACTERS = {
    "&": "&",
    "%": "%",
    "$": "$",
    "#": "#",
    "_": "_",
    "{": "{",
    "}": "}",
    "ss": "ß",
    "o": "ø",
    "O": "Ø",
    "l": "ł",
    "L": "Ł",
    "ae": "æ",
    "AE": "Æ",
    "oe": "œ",
    "OE": "Œ",
    "aa": "å",
    "AA": "Å",
    "i": "ı",
    "j": "ȷ",
    "dots": "…",
    "ldots": "…",
    "textellipsis": "…",
    "textbackslash": "\\",
    "textasciitilde": "~",
    "textasciicircum": "^",
    "textendash": "–",
    "textemdash": "—",
    "guillemotleft": "«",
    "guillemotright": "»",
    "glqq": "„",
    "grqq": "“",
    "euro": "€",
    "S": "§",
    "pounds": "£",
    "copyright": "©",
    "LaTeX": "LaTeX",
    "TeX": "TeX",
}
"""The characters that commands without arguments stand for."""

_ACCENTS = {
    "`": "\u0300",
    "'": "\u0301",
    "^": "\u0302",
    "~": "\u0303",
    "=": "\u0304",
    "u": "\u0306",
    ".": "\u0307",
    '"': "\u0308",
    "r": "\u030a",
    "H": "\u030b",
    "v": "\u030c",
    "d": "\u0323",
    "c": "\u0327",
    "k": "\u0328",
}
_ACCENT = re.compile(
    r"\\(?:(?P<sign>[`'^~=.\"])[ ]?(?:\{(?P<braced>\\?[A-Za-z])\}|(?P<bare>\\[ij](?![A-Za-z])|[A-Za-z]))"
    r"|(?P<letter>[uvHcdkr])(?:\{(?P<inner>\\?[A-Za-z])\}|[ ](?P<after>[A-Za-z])(?![A-Za-z])))"
)
_SPECIAL = re.compile(r"[\\{}$&#%_^~]")
_ESCAPES = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}


def combined(text: str, at: int, end: int) -> tuple[str, int] | None:
    r"""Return the character of an accent and a letter, such as `\"a`, and where it ends, or None."""
    found = _ACCENT.match(text, at, end)
    if found is None:
        return None
    letter = (found["braced"] or found["bare"] or found["inner"] or found["after"]).lstrip("\\")
    whole = unicodedata.normalize("NFC", letter + _ACCENTS[found["sign"] or found["letter"]])
    return (whole, found.end()) if len(whole) == 1 else None


def escape_latex(text: str, _: bool) -> str:
    """Write text of a translation. Letters with accents are written as they are."""
    return _SPECIAL.sub(lambda found: _ESCAPES.get(found[0], f"\\{found[0]}"), text)
