"""Adverbs, time expressions, names, conjunctions and vehicles of the embedded grammar in the three languages.

Translations are (English, German, French) triples.
"""

Triple = tuple[str, str, str]

# Time expressions for the past, the ongoing present, habits and the future.
PAST: dict[str, Triple] = {
    "yesterday": ("yesterday", "gestern", "hier"),
    "last week": ("last week", "letzte Woche", "la semaine dernière"),
    "last month": ("last month", "letzten Monat", "le mois dernier"),
    "last year": ("last year", "letztes Jahr", "l'année dernière"),
    "yesterday evening": ("yesterday evening", "gestern Abend", "hier soir"),
    "this morning": ("this morning", "heute Morgen", "ce matin"),
    "last summer": ("last summer", "letzten Sommer", "l'été dernier"),
    "last winter": ("last winter", "letzten Winter", "l'hiver dernier"),
}
ONGOING: dict[str, Triple] = {
    "now": ("now", "jetzt", "maintenant"),
    "at the moment": ("at the moment", "im Moment", "en ce moment"),
    "today": ("today", "heute", "aujourd'hui"),
}
HABIT: dict[str, Triple] = {
    "every day": ("every day", "jeden Tag", "tous les jours"),
    "every morning": ("every morning", "jeden Morgen", "chaque matin"),
    "every evening": ("every evening", "jeden Abend", "chaque soir"),
    "every week": ("every week", "jede Woche", "chaque semaine"),
    "every year": ("every year", "jedes Jahr", "chaque année"),
    "in spring": ("in spring", "im Frühling", "au printemps"),
    "in summer": ("in summer", "im Sommer", "en été"),
    "in autumn": ("in autumn", "im Herbst", "en automne"),
    "in winter": ("in winter", "im Winter", "en hiver"),
}
FUTURE: dict[str, Triple] = {
    "tomorrow": ("tomorrow", "morgen", "demain"),
    "next week": ("next week", "nächste Woche", "la semaine prochaine"),
    "next month": ("next month", "nächsten Monat", "le mois prochain"),
    "next year": ("next year", "nächstes Jahr", "l'année prochaine"),
    "this evening": ("this evening", "heute Abend", "ce soir"),
    "tomorrow morning": ("tomorrow morning", "morgen früh", "demain matin"),
    "soon": ("soon", "bald", "bientôt"),
}
TIMES: dict[str, Triple] = PAST | ONGOING | HABIT | FUTURE
FREQUENCIES: dict[str, Triple] = {
    "always": ("always", "immer", "toujours"),
    "often": ("often", "oft", "souvent"),
    "sometimes": ("sometimes", "manchmal", "parfois"),
    "rarely": ("rarely", "selten", "rarement"),
}
# Adverbs of manner, and the verbs that they modify.
MANNERS: dict[str, Triple] = {
    "slowly": ("slowly", "langsam", "lentement"),
    "quickly": ("quickly", "schnell", "vite"),
    "quietly": ("quietly", "leise", "doucement"),
    "loudly": ("loudly", "laut", "fort"),
    "carefully": ("carefully", "vorsichtig", "prudemment"),
    "patiently": ("patiently", "geduldig", "patiemment"),
    "together": ("together", "zusammen", "ensemble"),
}
MANNER_VERBS: dict[str, tuple[str, ...]] = {
    "slowly": ("swim", "run", "dance", "eat", "read", "write", "open", "close", "push", "pull", "drink"),
    "quickly": ("swim", "run", "eat", "fall_asleep", "disappear", "drink", "hide", "repair", "wash", "run"),
    "quietly": ("sing", "cry", "laugh", "play", "open", "close"),
    "loudly": ("sing", "laugh", "cry", "shout"),
    "carefully": ("open", "close", "cut", "carry", "push", "clean", "repair", "drive"),
    "patiently": ("wait", "work", "wait_for", "help", "look_for"),
}
NAMES: dict[str, str] = {
    "Anna": "f", "Paul": "m", "Maria": "f", "Thomas": "m", "Julia": "f", "Martin": "m", "Sophie": "f", "David": "m",
    "Clara": "f", "Simon": "m", "Emma": "f", "Daniel": "m", "Nina": "f", "Felix": "m",
}  # fmt: skip
# Family names are used with a title in polite address.
FAMILY_NAMES: dict[str, str] = {
    "Mr Weber": "m", "Mrs Weber": "f", "Mr Martin": "m", "Mrs Martin": "f", "Mr Miller": "m", "Mrs Miller": "f",
}  # fmt: skip
TITLES: dict[str, Triple] = {"Mr": ("Mr", "Herr", "monsieur"), "Mrs": ("Mrs", "Frau", "madame")}
CONJUNCTIONS: dict[str, Triple] = {
    "and": ("and", "und", "et"),
    "but": ("but", "aber", "mais"),
    "because": ("because", "weil", "parce que"),
    "when": ("when", "wenn", "quand"),
    "if": ("if", "wenn", "si"),
    "while": ("while", "während", "pendant que"),
}
SUBORDINATING = frozenset({"because", "when", "if", "while"})
COMPLEMENTIZERS: dict[str, Triple] = {"clause": ("that", "dass", "que"), "ask": ("whether", "ob", "si")}
QUESTION_WORDS: dict[str, Triple] = {
    "where": ("where", "wo", "où"),
    "where to": ("where", "wohin", "où"),
    "when": ("when", "wann", "quand"),
    "why": ("why", "warum", "pourquoi"),
}
VEHICLES: dict[str, Triple] = {
    "bus": ("by bus", "mit dem Bus", "en bus"),
    "train": ("by train", "mit dem Zug", "en train"),
    "car": ("by car", "mit dem Auto", "en voiture"),
    "bicycle": ("by bicycle", "mit dem Fahrrad", "à vélo"),
    "taxi": ("by taxi", "mit dem Taxi", "en taxi"),
}
