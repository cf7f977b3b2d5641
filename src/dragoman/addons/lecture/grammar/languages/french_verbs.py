"""French conjugation: present, imperfect of the auxiliaries, simple future and past participle."""

from dragoman.addons.lecture.grammar.lexicon.verbs import VERBS

# suffix removed from the infinitive | six present endings | past participle | future stem
_MODELS: dict[str, tuple[str, str, str, str]] = {
    "rire": ("ire", "is is it ions iez ient", "i", "ir"),
    "courir": ("ir", "s s t ons ez ent", "u", "r"),
    "aître": ("aître", "ais ais aît aissons aissez aissent", "u", "aîtr"),
    "venir": ("enir", "iens iens ient enons enez iennent", "enu", "iendr"),
    "boire": ("oire", "ois ois oit uvons uvez oivent", "u", "oir"),
    "lire": ("ire", "is is it isons isez isent", "u", "ir"),
    "écrire": ("re", "s s t vons vez vent", "t", "r"),
    "voir": ("oir", "ois ois oit oyons oyez oient", "u", "err"),
    "croire": ("oire", "ois ois oit oyons oyez oient", "u", "oir"),
    "vrir": ("rir", "re res re rons rez rent", "ert", "rir"),
    "prendre": ("endre", "ends ends end enons enez ennent", "is", "endr"),
    "mettre": ("ettre", "ets ets et ettons ettez ettent", "is", "ettr"),
    "uire": ("uire", "uis uis uit uisons uisez uisent", "uit", "uir"),
    "indre": ("indre", "ins ins int ignons ignez ignent", "int", "indr"),
    "suivre": ("uivre", "uis uis uit uivons uivez uivent", "uivi", "uivr"),
    "ir": ("ir", "is is it issons issez issent", "i", "ir"),
    "re": ("re", "s s  ons ez ent", "u", "r"),
    "dire": ("ire", "is is it isons ites isent", "it", "ir"),
    "savoir": ("avoir", "ais ais ait avons avez avent", "u", "aur"),
    "aller": ("aller", "vais vas va allons allez vont", "allé", "ir"),
    "avoir": ("avoir", "ai as a avons avez ont", "eu", "aur"),
    "être": ("être", "suis es est sommes êtes sont", "été", "ser"),
    "pouvoir": ("ouvoir", "eux eux eut ouvons ouvez euvent", "u", "ourr"),
    "vouloir": ("ouloir", "eux eux eut oulons oulez eulent", "oulu", "oudr"),
    "devoir": ("evoir", "ois ois oit evons evez oivent", "û", "evr"),
}
_FUTURE = ("ai", "as", "a", "ons", "ez", "ont")
_IMPERFECT = ("ais", "ais", "ait", "ions", "iez", "aient")
_IMPERFECT_STEMS = {
    "être": "ét", "avoir": "av", "pouvoir": "pouv", "vouloir": "voul", "devoir": "dev", "coûter": "coût",
}  # fmt: skip


def _soft(infinitive: str) -> str:
    """Return the stem of the stressed forms, as in achète, jette, espère and nettoie."""
    stem = infinitive[:-2]
    if infinitive in ("appeler", "jeter"):
        return stem + stem[-1]
    if stem.endswith(("oy", "uy", "ay")):
        return stem[:-1] + "i"
    if len(stem) > 2 and stem[-2] in "eé" and stem[-1] not in "aeiouéè":
        return stem[:-2] + "è" + stem[-1]
    return stem


def _first_group(infinitive: str) -> tuple[tuple[str, ...], str, str]:
    stem, soft = infinitive[:-2], _soft(infinitive)
    link = "e" if stem.endswith("g") else ""
    we = (stem[:-1] + "ç" if stem.endswith("c") else stem + link) + "ons"
    present = (soft + "e", soft + "es", soft + "e", we, stem + "ez", soft + "ent")
    keeps = stem[-2:-1] == "é"
    future = "enverr" if infinitive == "envoyer" else (stem if keeps else soft) + "er"
    return present, stem + "é", future


def _paradigm(infinitive: str, model: tuple[str, ...]) -> tuple[tuple[str, ...], str, str]:
    if model[0] == "er":
        return _first_group(infinitive)
    if model[0] == "partir":
        long, short = infinitive[:-2], infinitive[:-3]
        return (short + "s", short + "s", short + "t", long + "ons", long + "ez", long + "ent"), long + "i", infinitive
    suffix, endings, participle, future = _MODELS[model[0]]
    stem = infinitive.removesuffix(suffix)
    return tuple(stem + ending for ending in endings.split(" ")), stem + participle, stem + future


_PARADIGMS: dict[str, tuple[tuple[str, ...], str, str]] = {
    verb.name: _paradigm(verb.french, verb.french_model) for verb in VERBS.values()
}
_PARADIGMS |= {
    "être": _paradigm("être", ("être",)),
    "avoir": _paradigm("avoir", ("avoir",)),
    "can": _paradigm("pouvoir", ("pouvoir",)),
    "want": _paradigm("vouloir", ("vouloir",)),
    "must": _paradigm("devoir", ("devoir",)),
    "cost": _paradigm("coûter", ("er",)),
    "snow": _paradigm("neiger", ("er",)),
    "rain": (("pleus", "pleus", "pleut", "", "", "pleuvent"), "plu", "pleuvr"),
}
_INFINITIVES = {
    "can": "pouvoir",
    "want": "vouloir",
    "must": "devoir",
    "cost": "coûter",
    "rain": "pleuvoir",
    "snow": "neiger",
}


def infinitive(key: str) -> str:
    """Return the infinitive of a concept."""
    return VERBS[key].french if key in VERBS else _INFINITIVES.get(key, key)


def present(key: str, person: int, plural: bool) -> str:
    """Return the present indicative of a concept or auxiliary ("être", "avoir", "can", …)."""
    return _PARADIGMS[key][0][person - 1 + 3 * plural]


def future(key: str, person: int, plural: bool) -> str:
    """Return the simple future."""
    return _PARADIGMS[key][2] + _FUTURE[person - 1 + 3 * plural]


def imperfect(key: str, person: int, plural: bool) -> str:
    """Return the imperfect of an auxiliary, a modal or a verb of state."""
    return _IMPERFECT_STEMS[infinitive(key)] + _IMPERFECT[person - 1 + 3 * plural]


def should(person: int, plural: bool) -> str:
    """Return the conditional of devoir."""
    return "devr" + _IMPERFECT[person - 1 + 3 * plural]


def participle(key: str, gender: str = "m", plural: bool = False) -> str:
    """Return the past participle, with agreement."""
    form = _PARADIGMS[key][1]
    masculine_plural = "" if form.endswith("s") else "s"
    return form + ("e" if gender == "f" else "") + (("s" if gender == "f" else masculine_plural) if plural else "")
