"""The elements and attributes of HTML by their role in the translation of a page."""

from dragoman.addons.documents.passage import Style

BLOCK_TAGS = frozenset(
    "address article aside audio base blockquote body button canvas caption center col colgroup datalist dd details "
    "dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup "
    "hr html iframe input label legend li listing main marquee menu meter nav noembed noframes noscript object ol "
    "optgroup option output p plaintext pre progress search section select summary table tbody td template textarea "
    "tfoot th thead title tr ul video xmp".split()
)
"""Elements that separate texts: blocks, cells, and everything that people operate, such as buttons and fields."""

VOID_TAGS = frozenset(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr".split()
)

RAW_TEXT_TAGS = frozenset("style xmp iframe noembed noframes".split())
"""Elements whose content is text without character references (besides `script` and `plaintext`)."""

TEXT_TAGS = frozenset(("textarea", "title"))
"""Elements whose content is text with character references, but without tags."""

UNTRANSLATED_TAGS = frozenset(
    "script style code pre textarea kbd samp var tt math iframe noembed noframes xmp listing plaintext rt rp "
    "rtc".split()
)
COPIED_TAGS = frozenset("code kbd samp var tt".split())
"""Elements that translations must copy."""

_RAISED_TAGS = frozenset(("sup", "sub"))
_EMPHASIS_TAGS = frozenset(
    "abbr acronym b bdi bdo big cite del dfn em font i ins mark q s strike strong tt u var wbr".split()
)

SVG_TEXT_TAGS = frozenset("text title desc foreignobject".split())
"""Elements of SVG that contain text."""

NAVIGATION_TAGS = frozenset(("nav", "menu"))
OPERATED_ROLES = frozenset("button link menuitem menuitemcheckbox menuitemradio option radio switch tab".split())
"""ARIA roles of elements that people operate. Their texts are separate, like the texts of neighbouring links."""

FOREIGN_BREAKOUT_TAGS = frozenset(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta "
    "nobr ol p pre ruby s small span strong strike sub sup table tt u ul var".split()
)
"""HTML elements that end SVG and MathML, which cannot contain them."""

CLOSED_BY: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (frozenset(("li",)), frozenset(("ul", "ol", "menu", "dir"))),
    "dt": (frozenset(("dt", "dd")), frozenset(("dl",))),
    "dd": (frozenset(("dt", "dd")), frozenset(("dl",))),
    "option": (frozenset(("option", "optgroup")), frozenset(("select", "datalist"))),
    "td": (frozenset(("td", "th", "tr", "tbody", "thead", "tfoot")), frozenset(("table",))),
    "th": (frozenset(("td", "th", "tr", "tbody", "thead", "tfoot")), frozenset(("table",))),
    "rt": (frozenset(("rt", "rp", "rb", "rtc")), frozenset(("ruby",))),
    "rp": (frozenset(("rt", "rp", "rb", "rtc")), frozenset(("ruby",))),
    "p": (
        frozenset(
            "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form "
            "h1 h2 h3 h4 h5 h6 header hgroup hr main menu nav ol p pre search section table ul".split()
        ),
        frozenset("button td th caption table template object marquee html".split()),
    ),
}
"""Elements without a required end tag: the start tags that end them, and the elements that limit this effect."""

DESCRIPTIONS = frozenset(
    "description keywords author-description twitter:title twitter:description twitter:image:alt og:title "
    "og:description og:site_name og:image:alt dc.title dc.description dcterms.title dcterms.description "
    "application-name apple-mobile-web-app-title abstract subject".split()
)
"""Names and properties of `meta` elements whose `content` is text for readers."""

_TEXT_ATTRIBUTES = frozenset(
    "alt title placeholder aria-label aria-description aria-placeholder aria-roledescription aria-valuetext".split()
)
_ATTRIBUTES_BY_TAG = {
    "option": frozenset(("label",)),
    "optgroup": frozenset(("label",)),
    "track": frozenset(("label",)),
    "th": frozenset(("abbr",)),
    "table": frozenset(("summary",)),
}


def is_text_attribute(tag: str, name: str, values: dict[str, str]) -> bool:
    """Return whether an attribute is text for readers. values: the values of all attributes of the tag, by name.

    The choice follows the HTML standard (translatable attributes), with those of ARIA.
    """
    if name in _TEXT_ATTRIBUTES or name in _ATTRIBUTES_BY_TAG.get(tag, ()):
        return True
    if tag == "input" and name == "value":
        return values.get("type", "").lower() in ("submit", "button", "reset")
    if tag == "meta" and name == "content":
        return (values.get("name") or values.get("property") or "").lower() in DESCRIPTIONS
    return False


def is_separate_piece(tag: str, values: dict[str, str]) -> bool:
    """Return whether an inline element is often a text of its own: links, custom elements, and operated elements."""
    return tag == "a" or "-" in tag or values.get("role", "").lower() in OPERATED_ROLES


def style_of(tag: str) -> Style:
    """Return how an inline element relates to the word that it is a part of."""
    if tag in _RAISED_TAGS:
        return "raised"
    return "emphasis" if tag in _EMPHASIS_TAGS else "separate"
