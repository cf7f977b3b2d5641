"""The three languages against small handwritten tables, and laws that hold for every sentence."""

import re

import pytest

from dragoman.addons.lecture.grammar.corpus import EmbeddedCorpus, generate
from dragoman.addons.lecture.grammar.languages import english, french, french_verbs, german, german_verbs
from dragoman.addons.lecture.grammar.languages.german_nominals import noun_phrase
from dragoman.addons.lecture.grammar.lexicon.adjectives import ADJECTIVES
from dragoman.addons.lecture.grammar.lexicon.function_words import FREQUENCIES, MANNERS, TIMES
from dragoman.addons.lecture.grammar.lexicon.nouns import NOUNS
from dragoman.addons.lecture.grammar.lexicon.numerals import (
    english_number,
    english_ordinal,
    english_year,
    french_number,
    french_year,
    german_number,
    german_ordinal,
    german_year,
)
from dragoman.addons.lecture.grammar.lexicon.verbs import VERBS
from dragoman.addons.lecture.grammar.tree import Clause, Gap, Name, Phrase, Pronoun, Quality, Time, Utterance


@pytest.fixture(scope="module")
def corpus() -> EmbeddedCorpus:
    return generate(3, 1200, 0, 0)


def say(clause: Clause, **more: object) -> tuple[str, str, str]:
    utterance = Utterance(clause, **more)  # type: ignore[arg-type]
    return english.realise(utterance), german.realise(utterance), french.realise(utterance).replace("\u00a0", " ")


MAN, WOMAN, CHILD = Phrase("man"), Phrase("woman"), Phrase("child")

SENTENCES = [
    (Clause(MAN, "read", object=Phrase("book", determiner="a")),
     "The man is reading a book.", "Der Mann liest ein Buch.", "L'homme lit un livre."),
    (Clause(MAN, "read", object=Phrase("book", determiner="a"), tense="past", negation="not"),
     "The man did not read a book.", "Der Mann hat kein Buch gelesen.", "L'homme n'a pas lu de livre."),
    (Clause(WOMAN, "go", place=Phrase("school"), tense="past"),
     "The woman went to the school.", "Die Frau ist in die Schule gegangen.", "La femme est allée à l'école."),
    (Clause(Pronoun(3, gender="f"), "see", object=Pronoun(3, gender="f"), tense="past"),
     "She saw her.", "Sie hat sie gesehen.", "Elle l'a vue."),
    (Clause(Pronoun(1), "give", object=Phrase("book"), receiver=Pronoun(3, plural=True)),
     "I am giving them the book.", "Ich gebe ihnen das Buch.", "Je leur donne le livre."),
    (Clause(Pronoun(1), "help", object=Phrase("farmer")),
     "I am helping the farmer.", "Ich helfe dem Bauern.", "J'aide l'agriculteur."),
    (Clause(CHILD, "get_up", time=Time("clock", 7)),
     "The child gets up at seven o'clock.", "Das Kind steht um sieben Uhr auf.", "L'enfant se lève à sept heures."),
    (Clause(Phrase("girl", plural=True), "get_up", tense="past"),
     "The girls got up.", "Die Mädchen sind aufgestanden.", "Les filles se sont levées."),
    (Clause(MAN, "call", object=Phrase("woman"), modal="want", negation="not"),
     "The man does not want to call the woman.", "Der Mann will die Frau nicht anrufen.",
     "L'homme ne veut pas appeler la femme."),
    (Clause(MAN, "call", object=Pronoun(3, gender="f"), modal="can"),
     "The man can call her.", "Der Mann kann sie anrufen.", "L'homme peut l'appeler."),
    (Clause(Name("Anna"), "be", quality=Quality("good", "more", Name("Paul"))),
     "Anna is better than Paul.", "Anna ist besser als Paul.", "Anna est meilleure que Paul."),
    (Clause(Pronoun(1), "drink", object=Phrase("water", determiner="bare"), negation="never"),
     "I never drink water.", "Ich trinke nie Wasser.", "Je ne bois jamais d'eau."),
    (Clause(Pronoun(1), "see", object=Phrase("tree", plural=True, determiner="bare", adjective="beautiful")),
     "I see beautiful trees.", "Ich sehe schöne Bäume.", "Je vois de beaux arbres."),
    (Clause(Phrase("hotel", determiner="a", adjective="beautiful"), "be", place=Phrase("city")),
     "A beautiful hotel is in the city.", "Ein schönes Hotel ist in der Stadt.", "Un bel hôtel est dans la ville."),
    (Clause(Pronoun(3), "talk_about", object=Phrase("hedgehog")),
     "He is talking about the hedgehog.", "Er redet über den Igel.", "Il parle du hérisson."),
    (Clause(MAN, "visit", object=Phrase("church", adjective="old", superlative=True, place=Phrase("village"))),
     "The man is visiting the oldest church in the village.", "Der Mann besucht die älteste Kirche im Dorf.",
     "L'homme visite la plus vieille église du village."),
    (Clause(MAN, "visit", object=Phrase("museum", adjective="famous", superlative=True, place=Phrase("city"))),
     "The man is visiting the most famous museum in the city.", "Der Mann besucht das berühmteste Museum in der Stadt.",
     "L'homme visite le musée le plus célèbre de la ville."),
    (Clause(Phrase("ship", determiner="of", possessor=Phrase("king")), "arrive", tense="past"),
     "The king's ship arrived.", "Das Schiff des Königs ist angekommen.", "Le bateau du roi est arrivé."),
    (Clause(Pronoun(1), "have", object=Phrase("clock", plural=True, determiner="number", number=21)),
     "I have twenty-one clocks.", "Ich habe einundzwanzig Uhren.", "J'ai vingt et une horloges."),
    (Clause(Name("Anna"), "be", object=Phrase("nurse", determiner="a"), negation="not"),
     "Anna is not a nurse.", "Anna ist keine Krankenschwester.", "Anna n'est pas infirmière."),
    (Clause(Pronoun(3), "know_that", complement=Clause(CHILD, "get_up", tense="past")),
     "He knows that the child got up.", "Er weiß, dass das Kind aufgestanden ist.", "Il sait que l'enfant s'est levé."),
    (Clause(Pronoun(3), "ask", complement=Clause(Pronoun(3), "call", object=WOMAN, modal="must")),
     "He is asking whether he has to call the woman.", "Er fragt, ob er die Frau anrufen muss.",
     "Il demande s'il doit appeler la femme."),
    (Clause(Phrase("letter", relative=Clause(Name("Anna"), "write", object=Gap(Phrase("letter")), tense="past")), "be",
            quality=Quality("long")),
     "The letter that Anna wrote is long.", "Der Brief, den Anna geschrieben hat, ist lang.",
     "La lettre qu'Anna a écrite est longue."),
]  # fmt: skip


@pytest.mark.parametrize(("clause", "en", "de", "fr"), SENTENCES, ids=[row[1] for row in SENTENCES])
def test_statement(clause: Clause, en: str, de: str, fr: str) -> None:
    assert say(clause) == (en, de, fr)


def test_questions() -> None:
    clause = Clause(Pronoun(2), "read", object=Phrase("book"), tense="past")
    assert say(clause, question="yesno", address=("Anna",)) == (
        "Did you read the book, Anna?",
        "Hast du das Buch gelesen, Anna?",
        "Est-ce que tu as lu le livre, Anna ?",
    )
    polite = Clause(Pronoun(2, gender="f", formal=True), "be", quality=Quality("patient"))
    assert say(polite, question="yesno", address=("Mrs Weber",)) == (
        "Are you patient, Mrs Weber?",
        "Sind Sie geduldig, Frau Weber?",
        "Est-ce que vous êtes patiente, madame Weber ?",
    )
    where = Clause(MAN, "go", tense="past")
    assert say(where, question="where to") == (
        "Where did the man go?",
        "Wohin ist der Mann gegangen?",
        "Où est-ce que l'homme est allé ?",
    )
    who = Clause(Gap(word="who"), "eat", object=Phrase("apple"))
    assert say(who, question="who") == ("Who is eating the apple?", "Wer isst den Apfel?", "Qui mange la pomme ?")


def test_fronting_and_subordinate_clauses() -> None:
    assert say(Clause(MAN, "sleep", tense="past", time=Time("yesterday")), fronted=True) == (
        "Yesterday the man slept.",
        "Gestern hat der Mann geschlafen.",
        "Hier, l'homme a dormi.",
    )
    main, second = Clause(MAN, "get_up", tense="future"), Clause(CHILD, "wake_up")
    assert say(main, conjunction="if", second=second, fronted=True) == (
        "If the child wakes up, the man will get up.",
        "Wenn das Kind aufwacht, wird der Mann aufstehen.",
        "Si l'enfant se réveille, l'homme se lèvera.",
    )


def test_german_noun_phrases_in_all_cases() -> None:
    expected = {
        ("the", "old", "dog", False): "der alte Hund|den alten Hund|dem alten Hund|des alten Hundes",
        ("the", "old", "cat", False): "die alte Katze|die alte Katze|der alten Katze|der alten Katze",
        ("the", "old", "house", False): "das alte Haus|das alte Haus|dem alten Haus|des alten Hauses",
        ("the", "old", "house", True): "die alten Häuser|die alten Häuser|den alten Häusern|der alten Häuser",
        ("a", "old", "dog", False): "ein alter Hund|einen alten Hund|einem alten Hund|eines alten Hundes",
        ("a", "old", "house", False): "ein altes Haus|ein altes Haus|einem alten Haus|eines alten Hauses",
        ("my", "old", "cat", False): "meine alte Katze|meine alte Katze|meiner alten Katze|meiner alten Katze",
        ("our", "old", "car", True): "unsere alten Autos|unsere alten Autos|unseren alten Autos|unserer alten Autos",
        (
            "this",
            "tired",
            "boy",
            False,
        ): "dieser müde Junge|diesen müden Jungen|diesem müden Jungen|dieses müden Jungen",
        (
            "the",
            "proud",
            "soldier",
            False,
        ): "der stolze Soldat|den stolzen Soldaten|dem stolzen Soldaten|des stolzen Soldaten",
        ("bare", "expensive", "ring", True): "teure Ringe|teure Ringe|teuren Ringen|teurer Ringe",
        ("bare", "fresh", "milk", False): "frische Milch|frische Milch|frischer Milch|frischer Milch",
        ("bare", "fresh", "bread", False): "frisches Brot|frisches Brot|frischem Brot",
    }
    for (determiner, adjective, noun, plural), forms in expected.items():
        phrase = Phrase(noun, plural=plural, determiner=determiner, adjective=adjective)
        for case, form in zip(("nom", "acc", "dat", "gen"), forms.split("|"), strict=False):
            assert " ".join(noun_phrase(phrase, case, german.relative)) == form


def test_german_present() -> None:
    expected = {
        "read": "lese liest liest lesen lest lesen",
        "work": "arbeite arbeitest arbeitet arbeiten arbeitet arbeiten",
        "smile": "lächle lächelst lächelt lächeln lächelt lächeln",
        "draw": "zeichne zeichnest zeichnet zeichnen zeichnet zeichnen",
        "hate": "hasse hasst hasst hassen hasst hassen",
        "open": "öffne öffnest öffnet öffnen öffnet öffnen",
        "feed": "füttere fütterst füttert füttern füttert füttern",
        "invite": "lade lädst lädt laden ladet laden",
        "live": "wohne wohnst wohnt wohnen wohnt wohnen",
        "dance": "tanze tanzt tanzt tanzen tanzt tanzen",
    }
    for verb, forms in expected.items():
        assert [german_verbs.present(verb, p, n) for n in (False, True) for p in (1, 2, 3)] == forms.split()


def test_french_verbs() -> None:
    present = {
        "eat": "mange manges mange mangeons mangez mangent",
        "buy": "achète achètes achète achetons achetez achètent",
        "call": "appelle appelles appelle appelons appelez appellent",
        "hope": "espère espères espère espérons espérez espèrent",
        "clean": "nettoie nettoies nettoie nettoyons nettoyez nettoient",
        "choose": "choisis choisis choisit choisissons choisissez choisissent",
        "sleep": "dors dors dort dormons dormez dorment",
        "come": "viens viens vient venons venez viennent",
        "take": "prends prends prend prenons prenez prennent",
        "write": "écris écris écrit écrivons écrivez écrivent",
        "say": "dis dis dit disons dites disent",
        "go": "vais vas va allons allez vont",
        "lose": "perds perds perd perdons perdez perdent",
        "paint": "peins peins peint peignons peignez peignent",
        "drink": "bois bois boit buvons buvez boivent",
    }
    for verb, forms in present.items():
        assert [french_verbs.present(verb, p, n) for n in (False, True) for p in (1, 2, 3)] == forms.split()
    future = {
        "see": "verra",
        "send": "enverra",
        "buy": "achètera",
        "have": "aura",
        "run": "courra",
        "clean": "nettoiera",
        "hope": "espérera",
        "throw": "jettera",
        "come": "viendra",
        "être": "sera",
        "sell": "vendra",
        "go": "ira",
    }
    assert {verb: french_verbs.future(verb, 3, False) for verb in future} == future
    feminine = {
        "write": "écrite",
        "take": "prise",
        "open": "ouverte",
        "go": "allée",
        "read": "lue",
        "build": "construite",
    }
    assert {verb: french_verbs.participle(verb, "f") for verb in feminine} == feminine


def test_english_verbs() -> None:
    third = {
        "wash": "washes",
        "carry": "carries",
        "play": "plays",
        "go": "goes",
        "have": "has",
        "get_up": "gets up",
        "try_on": "tries on",
        "watch": "watches",
        "kiss": "kisses",
    }
    assert {verb: english.third_person(VERBS[verb].english[0]) for verb in third} == third
    progressive = {
        "write": "writing",
        "run": "running",
        "cut": "cutting",
        "smile": "smiling",
        "play": "playing",
        "dance": "dancing",
        "give_back": "giving back",
        "fall_asleep": "falling asleep",
    }
    assert {verb: VERBS[verb].english[2] for verb in progressive} == progressive


def test_numbers_and_dates() -> None:
    table = {
        1: ("one", "eins", "un"),
        16: ("sixteen", "sechzehn", "seize"),
        17: ("seventeen", "siebzehn", "dix-sept"),
        21: ("twenty-one", "einundzwanzig", "vingt et un"),
        30: ("thirty", "dreißig", "trente"),
        66: ("sixty-six", "sechsundsechzig", "soixante-six"),
        71: ("seventy-one", "einundsiebzig", "soixante et onze"),
        80: ("eighty", "achtzig", "quatre-vingts"),
        81: ("eighty-one", "einundachtzig", "quatre-vingt-un"),
        91: ("ninety-one", "einundneunzig", "quatre-vingt-onze"),
        99: ("ninety-nine", "neunundneunzig", "quatre-vingt-dix-neuf"),
        100: ("one hundred", "hundert", "cent"),
        200: ("two hundred", "zweihundert", "deux cents"),
        241: ("two hundred and forty-one", "zweihunderteinundvierzig", "deux cent quarante et un"),
        380: ("three hundred and eighty", "dreihundertachtzig", "trois cent quatre-vingts"),
    }
    assert {n: (english_number(n), german_number(n), french_number(n)) for n in table} == table
    assert (english_year(1985), german_year(1985), french_year(1985)) == (
        "nineteen eighty-five",
        "neunzehnhundertfünfundachtzig",
        "mille neuf cent quatre-vingt-cinq",
    )
    assert (english_year(2012), german_year(2012), french_year(2012)) == (
        "twenty twelve",
        "zweitausendzwölf",
        "deux mille douze",
    )
    assert [english_ordinal(n) for n in (1, 2, 3, 4, 12, 20, 22, 31)] == (
        "first second third fourth twelfth twentieth twenty-second thirty-first".split()
    )
    assert [german_ordinal(n) for n in (1, 3, 7, 8, 10, 20, 31)] == (
        "ersten dritten siebten achten zehnten zwanzigsten einunddreißigsten".split()
    )


def test_lexicon_has_four_hundred_content_words_in_each_language() -> None:
    shared = len(FREQUENCIES) + len(MANNERS) + len(TIMES)
    for index, language in enumerate(("english", "german", "french")):
        words = {getattr(noun, language)[0] for noun in NOUNS.values()}
        words |= {getattr(adjective, language)[0] for adjective in ADJECTIVES.values()}
        words |= {
            verb.english[0] if index == 0 else verb.german_prefix + verb.german if index == 1 else verb.french
            for verb in VERBS.values()
        }
        assert len(words) + shared >= 400


# Patterns that no correct sentence of the corpus matches.
FRENCH_ERRORS = [
    r"\b(?:[Ll][ea]|[Jj]e|[Nn]e|[Qq]ue|[Ss]e|me|te|de) (?!onze|huit|hériss)[aeiouéèêâîôûhœ]",
    r"\b(?:à|de) les? ",
    r"\b[Ss]i ils?\b",
    r"\b(?:[MmTtSs]a|[Cc]e) (?!hériss)[aeiouéèêâîôûœh]",
    r"\b(?:[Uu]n|[Ll]e|[Cc]e|[MmTtSs]on|[Nn]otre|[Ll]eur) (?:beau|vieux) (?!hériss)[aeiouéèêâîôûœh]",
    r"'(?:hériss|onze|huit)",
    r"[^\u00a0]\?",
    r"\b(?:ai|as|a|avons|avez|ont) (?:pas |jamais )?(?:all|ven|arriv|tomb|rest|retourn)[éu]",
]
GERMAN_ERRORS = [
    r"(?<!, )\b(?:in|an|zu|von) dem\b",
    r"(?<!, )\b(?:in|an) das\b",
    r"(?<!, )\bzu der\b",
    r"\bnicht (?:eine|einen|einem|einer)\b",
    r"\b[a-zäöüß]+ee[nrs]\b(?<!leer)",
    r"\bteuer(?:e|en|er|es|em)\b(?<!teuerer)",
    r"\b(?:kein|mein) (?!(?:die|diese|eine|keine|meine|seine|ihre|unsere) )[a-zäöüß]+e [A-ZÄÖÜ]",
    r"(?<!, )\b(?:der|das) (?!(?:der|des|dieser|dieses|jeder) )[a-zäöüß]+e[rs] [A-ZÄÖÜ]",
    r"[^,] (?:dass|weil|ob|während) ",
    r"\b(?:den|keinen|meinen) (?:Junge|Student|Soldat|Kunde|Prinz|Nachbar|Polizist|Tourist|Kollege|Bär|Löwe|Affe)\b",
]
ENGLISH_ERRORS = [
    r"\b[Aa] [aeio]",
    r"\b[Aa]n [^aeiouh]",
    r"^(?:he|she|it|He|She|It) (?:are|have|do)\b",
    r"^(?:I|You|We|They) (?:is|has|does)\b",
    r"\bcan not\b",
    r"\b(?:did|does|do|will|can) not \w+(?:ed|ing)\b(?<!need)(?<!feed)(?<!bring)(?<!sing)",
    r"\b(\w+) \1\b(?<!her her)(?<!that that)(?<!twenty twenty)",
]


@pytest.mark.parametrize(
    ("language", "pattern"),
    [("fr", p) for p in FRENCH_ERRORS] + [("de", p) for p in GERMAN_ERRORS] + [("en", p) for p in ENGLISH_ERRORS],
)
def test_no_sentence_breaks_a_law_of_spelling(corpus: EmbeddedCorpus, language: str, pattern: str) -> None:
    law = re.compile(pattern)
    broken = [text for text in (getattr(sentence, language) for sentence in corpus.train) if law.search(text)]
    assert broken == []


def test_french_negation_has_both_parts(corpus: EmbeddedCorpus) -> None:
    for sentence in corpus.train:
        second = len(re.findall(r"\b(?:pas|jamais)\b", sentence.fr))
        assert second == len(re.findall(r"\b[Nn](?:e |')", sentence.fr)), sentence.fr
