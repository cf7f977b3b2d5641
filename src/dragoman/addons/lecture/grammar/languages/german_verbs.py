"""German conjugation: present, preterite of auxiliaries and modals, infinitive and past participle."""

from dragoman.addons.lecture.grammar.lexicon.verbs import VERBS

_PRESENT = {
    "sein": "bin bist ist sind seid sind", "haben": "habe hast hat haben habt haben",
    "werden": "werde wirst wird werden werdet werden", "can": "kann kannst kann können könnt können",
    "must": "muss musst muss müssen müsst müssen", "want": "will willst will wollen wollt wollen",
    "should": "sollte solltest sollte sollten solltet sollten", "know_that": "weiß weißt weiß wissen wisst wissen",
    "have": "habe hast hat haben habt haben", "exist": "gebe gibst gibt geben gebt geben",
    "cost": "koste kostest kostet kosten kostet kosten", "rain": "_ _ regnet _ _ _", "snow": "_ _ schneit _ _ _",
}  # fmt: skip
_PRETERITE = {
    "sein": "war warst war waren wart waren", "haben": "hatte hattest hatte hatten hattet hatten",
    "have": "hatte hattest hatte hatten hattet hatten", "can": "konnte konntest konnte konnten konntet konnten",
    "must": "musste musstest musste mussten musstet mussten", "want": "wollte wolltest wollte wollten wolltet wollten",
    "exist": "gab gabst gab gaben gabt gaben", "cost": "kostete kostetest kostete kosteten kostetet kosteten",
}  # fmt: skip
_NONFINITE = {
    "be": ("sein", "gewesen"), "exist": ("geben", "gegeben"), "cost": ("kosten", "gekostet"),
    "rain": ("regnen", "geregnet"), "snow": ("schneien", "geschneit"),
}  # fmt: skip


def _regular(infinitive: str, changed: tuple[str, str]) -> tuple[str, ...]:
    stem = infinitive.removesuffix("n") if infinitive.endswith(("eln", "ern")) else infinitive.removesuffix("en")
    plural = infinitive
    dental = stem.endswith(("t", "d", "chn")) or (stem.endswith(("n", "m")) and stem[-2] not in "aeiouäöürlhmn")
    link = "e" if dental else ""
    sibilant = stem.endswith(("s", "ß", "z", "x"))
    first = stem[:-2] + "le" if stem.endswith("el") else stem + "e"
    second, third = changed
    if not second:
        second = stem + link + ("t" if sibilant else "st")
        third = stem + link + "t"
    return first, second, third, plural, stem + link + "t", plural


_FORMS: dict[str, tuple[str, ...]] = {verb.name: _regular(verb.german, verb.german_present) for verb in VERBS.values()}
_FORMS |= {key: tuple(forms.split()) for key, forms in _PRESENT.items()}
_PAST_FORMS: dict[str, tuple[str, ...]] = {key: tuple(forms.split()) for key, forms in _PRETERITE.items()}


def present(key: str, person: int, plural: bool) -> str:
    """Return the present indicative without the separable prefix."""
    return _FORMS[key][person - 1 + 3 * plural]


def preterite(key: str, person: int, plural: bool) -> str:
    """Return the preterite of the auxiliaries, the modals and the verbs of state."""
    return _PAST_FORMS[key][person - 1 + 3 * plural]


def infinitive(key: str) -> str:
    """Return the infinitive with its prefix."""
    if key in _NONFINITE:
        return _NONFINITE[key][0]
    return VERBS[key].german_prefix + VERBS[key].german


def participle(key: str) -> str:
    """Return the past participle."""
    return _NONFINITE[key][1] if key in _NONFINITE else VERBS[key].german_participle


def prefix(key: str) -> str:
    """Return the separable prefix or an empty string."""
    return VERBS[key].german_prefix if key in VERBS else ""
