"""The adjectives of the embedded grammar, with their degrees and the noun classes that they modify."""

from dataclasses import dataclass

# English | comparison | German | French masculine,feminine[,masculine plural[,before a vowel]] | position | classes
# The position is "<" if the adjective precedes the French noun.
# English comparison: "+" adds -er, "*" doubles the consonant, "more" is analytic, otherwise the two forms are given.
_ROWS = """
big | * | groß größer größt | grand,grande | < | animal thing place vehicle part food plant
small | + | klein kleiner kleinst | petit,petite | < | animal thing place vehicle part food clothing plant
old | + | alt älter ältest | vieux,vieille,vieux,vieil | < | person animal thing place vehicle part clothing text plant
young | + | jung jünger jüngst | jeune,jeune | < | person animal
new | + | neu neuer neuest | neuf,neuve | > | thing vehicle clothing
good | better best | gut besser best | bon,bonne | < | person food text mass drink place
beautiful | more | schön schöner schönst | beau,belle,beaux,bel | < | person animal thing place clothing part plant
long | + | lang länger längst | long,longue | < | text
heavy | + | schwer schwerer schwerst | lourd,lourde | > | thing
strong | + | stark stärker stärkst | fort,forte | > | person animal
weak | + | schwach schwächer schwächst | faible,faible | > | person animal
happy | + | glücklich glücklicher glücklichst | heureux,heureuse,heureux | > | person
sad | * | traurig trauriger traurigst | triste,triste | > | person text
tired | more | müde müder müdest | fatigué,fatiguée | > | person animal
hungry | + | hungrig hungriger hungrigst | affamé,affamée | > | person animal
sick | + | krank kränker kränkst | malade,malade | > | person animal
rich | + | reich reicher reichst | riche,riche | > | person
famous | more | berühmt berühmter berühmtest | célèbre,célèbre | > | person place text
friendly | + | freundlich freundlicher freundlichst | aimable,aimable | > | person
clever | + | klug klüger klügst | intelligent,intelligente | > | person animal
brave | + | mutig mutiger mutigst | courageux,courageuse,courageux | > | person
lazy | + | faul fauler faulst | paresseux,paresseuse,paresseux | > | person animal
polite | more | höflich höflicher höflichst | poli,polie | > | person
patient | more | geduldig geduldiger geduldigst | patient,patiente | > | person
nervous | more | nervös nervöser nervösest | nerveux,nerveuse,nerveux | > | person animal
proud | + | stolz stolzer stolzest | fier,fière | > | person
serious | more | ernst ernster ernstest | sérieux,sérieuse,sérieux | > | person
curious | more | neugierig neugieriger neugierigst | curieux,curieuse,curieux | > | person animal
jealous | more | eifersüchtig eifersüchtiger eifersüchtigst | jaloux,jalouse,jaloux | > | person
honest | more | ehrlich ehrlicher ehrlichst | honnête,honnête | > | person
dangerous | more | gefährlich gefährlicher gefährlichst | dangereux,dangereuse,dangereux | > | animal place
wild | + | wild wilder wildest | sauvage,sauvage | > | animal
white | + | weiß weißer weißest | blanc,blanche | > | animal thing vehicle clothing
black | + | schwarz schwärzer schwärzest | noir,noire | > | animal thing vehicle clothing
red | * | rot röter rötest | rouge,rouge | > | thing vehicle clothing part
green | + | grün grüner grünst | vert,verte | > | thing vehicle clothing part
blue | + | blau blauer blauest | bleu,bleue | > | thing vehicle clothing part
yellow | + | gelb gelber gelbst | jaune,jaune | > | thing vehicle clothing
grey | + | grau grauer grauest | gris,grise | > | animal thing clothing
brown | + | braun brauner braunst | brun,brune | > | animal clothing
expensive | more | teuer teurer teuerst | cher,chère | > | thing vehicle clothing food place
cheap | + | billig billiger billigst | bon marché,bon marché,bon marché | > | thing vehicle clothing
fast | + | schnell schneller schnellst | rapide,rapide | > | vehicle animal
slow | + | langsam langsamer langsamst | lent,lente | > | vehicle animal
modern | more | modern moderner modernst | moderne,moderne | > | vehicle place
comfortable | more | bequem bequemer bequemst | confortable,confortable | > | vehicle clothing
dirty | + | schmutzig schmutziger schmutzigst | sale,sale | > | thing clothing vehicle place
clean | + | sauber sauberer sauberst | propre,propre | > | thing clothing vehicle place
fresh | + | frisch frischer frischest | frais,fraîche,frais | > | food mass drink
warm | + | warm wärmer wärmst | chaud,chaude | > | food drink clothing
cold | + | kalt kälter kältest | froid,froide | > | drink food
sweet | + | süß süßer süßest | sucré,sucrée | > | food drink
delicious | more | köstlich köstlicher köstlichst | délicieux,délicieuse,délicieux | > | food mass drink
bitter | more | bitter bitterer bitterst | amer,amère | > | drink
interesting | more | interessant interessanter interessantest | intéressant,intéressante | > | text place
boring | more | langweilig langweiliger langweiligst | ennuyeux,ennuyeuse,ennuyeux | > | text
funny | + | lustig lustiger lustigst | drôle,drôle | > | text person
short | + | kurz kürzer kürzest | court,courte | > | text clothing
important | more | wichtig wichtiger wichtigst | important,importante | > | text person
strange | + | seltsam seltsamer seltsamst | étrange,étrange | > | text animal person
quiet | + | ruhig ruhiger ruhigst | calme,calme | > | place person
empty | + | leer leerer leerst | vide,vide | > | place
elegant | more | elegant eleganter elegantest | élégant,élégante | > | clothing person
useful | more | nützlich nützlicher nützlichst | utile,utile | > | thing text
open | more | offen offener offenst | ouvert,ouverte | > | part
"""

_NO_DEGREE = frozenset("open new empty white black red green blue yellow grey brown wild hungry".split())


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective in three languages.

    english, german: positive, comparative and superlative. french: masculine, feminine, masculine plural, feminine
    plural, and masculine before a vowel. precedes: whether the French adjective precedes the noun.
    """

    name: str
    english: tuple[str, str, str]
    german: tuple[str, str, str]
    french: tuple[str, str, str, str, str]
    precedes: bool
    kinds: tuple[str, ...]

    @property
    def gradable(self) -> bool:
        """Whether the adjective has a natural comparative."""
        return self.name not in _NO_DEGREE


def _english_degrees(word: str, rule: str) -> tuple[str, str, str]:
    if rule == "more":
        return word, f"more {word}", f"most {word}"
    if rule not in ("+", "*"):
        comparative, superlative = rule.split()
        return word, comparative, superlative
    stem = word + word[-1] if rule == "*" else word
    if stem.endswith("y") and stem[-2] not in "aeiou":
        stem = stem[:-1] + "i"
    stem = stem.removesuffix("e")
    return word, stem + "er", stem + "est"


def _french_forms(cell: str) -> tuple[str, str, str, str, str]:
    masculine, feminine, *rest = cell.split(",")
    plural = rest[0] if rest else (masculine if masculine.endswith("s") else masculine + "s")
    feminine_plural = feminine if feminine == "bon marché" else feminine + "s"
    return masculine, feminine, plural, feminine_plural, rest[1] if len(rest) > 1 else masculine


def _parse(row: str) -> Adjective:
    name, rule, german, french, position, kinds = (cell.strip() for cell in row.split("|"))
    positive, comparative, superlative = german.split()
    return Adjective(
        name=name,
        english=_english_degrees(name, rule),
        german=(positive, comparative, superlative),
        french=_french_forms(french),
        precedes=position == "<",
        kinds=tuple(kinds.split()),
    )


ADJECTIVES: dict[str, Adjective] = {row.name: row for row in map(_parse, _ROWS.strip().splitlines())}
