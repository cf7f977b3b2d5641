"""The nouns of the embedded grammar. Each row contains a noun in three languages with genders and plurals."""

from dataclasses import dataclass
from functools import cache

# English (/plural if irregular) | German gender:singular:plural[:genitive] | French gender:singular[:plural]
# German gender "w" is a masculine noun of the weak declension, whose singular takes -(e)n outside the nominative;
# French "h" after the gender is an aspirated h, before which nothing is elided.
_ROWS: dict[str, str] = {
    "person": """
man/men | m:Mann:Männer | m:homme
woman/women | f:Frau:Frauen | f:femme
boy | w:Junge:Jungen | m:garçon
girl | n:Mädchen:Mädchen | f:fille
child/children | n:Kind:Kinder | m:enfant
teacher | m:Lehrer:Lehrer | m:professeur
doctor | m:Arzt:Ärzte | m:médecin
student | w:Student:Studenten | m:étudiant
pupil | m:Schüler:Schüler | m:élève
farmer | m:Bauer:Bauern:Bauern | m:agriculteur
baker | m:Bäcker:Bäcker | m:boulanger
cook | m:Koch:Köche | m:cuisinier
friend | m:Freund:Freunde | m:ami
neighbour | w:Nachbar:Nachbarn | m:voisin
king | m:König:Könige | m:roi
queen | f:Königin:Königinnen | f:reine
prince | w:Prinz:Prinzen | m:prince
princess | f:Prinzessin:Prinzessinnen | f:princesse
policeman/policemen | w:Polizist:Polizisten | m:policier
thief/thieves | m:Dieb:Diebe | m:voleur
soldier | w:Soldat:Soldaten | m:soldat
singer | m:Sänger:Sänger | m:chanteur
painter | m:Maler:Maler | m:peintre
writer | m:Schriftsteller:Schriftsteller | m:écrivain
driver | m:Fahrer:Fahrer | m:chauffeur
waiter | m:Kellner:Kellner | m:serveur
waitress | f:Kellnerin:Kellnerinnen | f:serveuse
nurse | f:Krankenschwester:Krankenschwestern | f:infirmière
judge | m:Richter:Richter | m:juge
lawyer | m:Anwalt:Anwälte | m:avocat
mother | f:Mutter:Mütter | f:mère
father | m:Vater:Väter | m:père
brother | m:Bruder:Brüder | m:frère
sister | f:Schwester:Schwestern | f:sœur
son | m:Sohn:Söhne | m:fils
daughter | f:Tochter:Töchter | f:fille
uncle | m:Onkel:Onkel | m:oncle
aunt | f:Tante:Tanten | f:tante
grandfather | m:Großvater:Großväter | m:grand-père:grands-pères
grandmother | f:Großmutter:Großmütter | f:grand-mère:grands-mères
guest | m:Gast:Gäste | m:invité
tourist | w:Tourist:Touristen | m:touriste
musician | m:Musiker:Musiker | m:musicien
engineer | m:Ingenieur:Ingenieure | m:ingénieur
hunter | m:Jäger:Jäger | m:chasseur
gardener | m:Gärtner:Gärtner | m:jardinier
mayor | m:Bürgermeister:Bürgermeister | m:maire
actor | m:Schauspieler:Schauspieler | m:acteur
actress | f:Schauspielerin:Schauspielerinnen | f:actrice
customer | w:Kunde:Kunden | m:client
boss | m:Chef:Chefs:Chefs | m:patron
colleague | w:Kollege:Kollegen | m:collègue
butcher | m:Metzger:Metzger | m:boucher
""",
    "animal": """
dog | m:Hund:Hunde | m:chien
cat | f:Katze:Katzen | m:chat
horse | n:Pferd:Pferde | m:cheval
cow | f:Kuh:Kühe | f:vache
bird | m:Vogel:Vögel | m:oiseau
mouse/mice | f:Maus:Mäuse | f:souris
wolf/wolves | m:Wolf:Wölfe | m:loup
bear | w:Bär:Bären | m:ours
fox | m:Fuchs:Füchse | m:renard
lion | w:Löwe:Löwen | m:lion
sheep/sheep | n:Schaf:Schafe | m:mouton
pig | n:Schwein:Schweine | m:cochon
duck | f:Ente:Enten | m:canard
rabbit | n:Kaninchen:Kaninchen | m:lapin
goat | f:Ziege:Ziegen | f:chèvre
hedgehog | m:Igel:Igel | mh:hérisson
elephant | w:Elefant:Elefanten | m:éléphant
monkey | w:Affe:Affen | m:singe
donkey | m:Esel:Esel | m:âne
""",
    "food": """
apple | m:Apfel:Äpfel | f:pomme
egg | n:Ei:Eier | m:œuf
cake | m:Kuchen:Kuchen | m:gâteau
potato/potatoes | f:Kartoffel:Kartoffeln | f:pomme de terre:pommes de terre
tomato/tomatoes | f:Tomate:Tomaten | f:tomate
orange | f:Orange:Orangen | f:orange
carrot | f:Karotte:Karotten | f:carotte
pear | f:Birne:Birnen | f:poire
banana | f:Banane:Bananen | f:banane
biscuit | m:Keks:Kekse | m:biscuit
sausage | f:Wurst:Würste | f:saucisse
onion | f:Zwiebel:Zwiebeln | m:oignon
strawberry | f:Erdbeere:Erdbeeren | f:fraise
pizza | f:Pizza:Pizzas | f:pizza
soup | f:Suppe:Suppen | f:soupe
salad | m:Salat:Salate | f:salade
""",
    "mass": """
bread | n:Brot:Brote | m:pain
cheese | m:Käse:Käse:Käses | m:fromage
meat | n:Fleisch:Fleische | f:viande
rice | m:Reis:Reise | m:riz
chocolate | f:Schokolade:Schokoladen | m:chocolat
butter | f:Butter:Butter | m:beurre
""",
    "drink": """
water | n:Wasser:Wasser | f:eau
milk | f:Milch:Milch | m:lait
coffee | m:Kaffee:Kaffees | m:café
tea | m:Tee:Tees:Tees | m:thé
wine | m:Wein:Weine | m:vin
beer | n:Bier:Biere | f:bière
juice | m:Saft:Säfte | m:jus
""",
    "thing": """
table | m:Tisch:Tische | f:table
bed | n:Bett:Betten | m:lit
chair | m:Stuhl:Stühle | f:chaise
lamp | f:Lampe:Lampen | f:lampe
key | m:Schlüssel:Schlüssel | f:clé
bag | f:Tasche:Taschen | m:sac
box | f:Kiste:Kisten | f:boîte
bottle | f:Flasche:Flaschen | f:bouteille
cup | f:Tasse:Tassen | f:tasse
plate | m:Teller:Teller | f:assiette
knife/knives | n:Messer:Messer | m:couteau
spoon | m:Löffel:Löffel | f:cuillère
fork | f:Gabel:Gabeln | f:fourchette
clock | f:Uhr:Uhren | f:horloge
phone | n:Telefon:Telefone | m:téléphone
computer | m:Computer:Computer | m:ordinateur
camera | f:Kamera:Kameras | m:appareil photo:appareils photo
picture | n:Bild:Bilder | m:tableau
flower | f:Blume:Blumen | f:fleur
ball | m:Ball:Bälle | m:ballon
umbrella | m:Regenschirm:Regenschirme | m:parapluie
mirror | m:Spiegel:Spiegel | m:miroir
ring | m:Ring:Ringe | f:bague
present | n:Geschenk:Geschenke | m:cadeau
guitar | f:Gitarre:Gitarren | f:guitare
candle | f:Kerze:Kerzen | f:bougie
suitcase | m:Koffer:Koffer | f:valise
toy | n:Spielzeug:Spielzeuge | m:jouet
map | f:Karte:Karten | f:carte
hammer | m:Hammer:Hämmer | m:marteau
glass | n:Glas:Gläser | m:verre
basket | m:Korb:Körbe | m:panier
""",
    "text": """
book | n:Buch:Bücher | m:livre
letter | m:Brief:Briefe | f:lettre
newspaper | f:Zeitung:Zeitungen | m:journal
story | f:Geschichte:Geschichten | f:histoire
poem | n:Gedicht:Gedichte | m:poème
message | f:Nachricht:Nachrichten | m:message
novel | m:Roman:Romane | m:roman
magazine | f:Zeitschrift:Zeitschriften | m:magazine
""",
    "clothing": """
shirt | n:Hemd:Hemden | f:chemise
dress | n:Kleid:Kleider | f:robe
hat | m:Hut:Hüte | m:chapeau
coat | m:Mantel:Mäntel | m:manteau
sweater | m:Pullover:Pullover | m:pull
jacket | f:Jacke:Jacken | f:veste
skirt | m:Rock:Röcke | f:jupe
scarf/scarves | m:Schal:Schals:Schals | f:écharpe
""",
    "vehicle": """
car | n:Auto:Autos | f:voiture
bus | m:Bus:Busse:Busses | m:bus
train | m:Zug:Züge | m:train
bicycle | n:Fahrrad:Fahrräder | m:vélo
ship | n:Schiff:Schiffe | m:bateau
plane | n:Flugzeug:Flugzeuge | m:avion
lorry | m:Lastwagen:Lastwagen | m:camion
taxi | n:Taxi:Taxis | m:taxi
motorcycle | n:Motorrad:Motorräder | f:moto
""",
    "place": """
house | n:Haus:Häuser | f:maison
school | f:Schule:Schulen | f:école
garden | m:Garten:Gärten | m:jardin
kitchen | f:Küche:Küchen | f:cuisine
room | n:Zimmer:Zimmer | f:chambre
park | m:Park:Parks:Parks | m:parc
country | n:Land:Länder:Landes | m:pays
city | f:Stadt:Städte | f:ville
village | n:Dorf:Dörfer | m:village
forest | m:Wald:Wälder | f:forêt
market | m:Markt:Märkte | m:marché
shop | n:Geschäft:Geschäfte | m:magasin
restaurant | n:Restaurant:Restaurants | m:restaurant
hotel | n:Hotel:Hotels | m:hôtel
hospital | n:Krankenhaus:Krankenhäuser | m:hôpital
church | f:Kirche:Kirchen | f:église
station | m:Bahnhof:Bahnhöfe | f:gare
museum | n:Museum:Museen | m:musée
library | f:Bibliothek:Bibliotheken | f:bibliothèque
office | n:Büro:Büros | m:bureau
factory | f:Fabrik:Fabriken | f:usine
street | f:Straße:Straßen | f:rue
bridge | f:Brücke:Brücken | m:pont
lake | m:See:Seen:Sees | m:lac
beach | m:Strand:Strände | f:plage
mountain | m:Berg:Berge | f:montagne
island | f:Insel:Inseln | f:île
castle | n:Schloss:Schlösser | m:château
theatre | n:Theater:Theater | m:théâtre
cinema | n:Kino:Kinos | m:cinéma
bank | f:Bank:Banken | f:banque
farm | m:Bauernhof:Bauernhöfe | f:ferme
airport | m:Flughafen:Flughäfen | m:aéroport
harbour | m:Hafen:Häfen | m:port
bakery | f:Bäckerei:Bäckereien | f:boulangerie
university | f:Universität:Universitäten | f:université
cellar | m:Keller:Keller | f:cave
square | m:Platz:Plätze | f:place
""",
    "money": """
euro | m:Euro:Euro:Euros | m:euro
""",
    "part": """
door | f:Tür:Türen | f:porte
window | n:Fenster:Fenster | f:fenêtre
""",
    "plant": """
tree | m:Baum:Bäume | m:arbre
rose | f:Rose:Rosen | f:rose
bush | m:Busch:Büsche | m:buisson
""",
}


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun in three languages.

    kind: semantic class. weak: whether the German noun has the n-declension. aspirated: whether the French noun starts
    with an aspirated h, which blocks elision.
    """

    name: str
    kind: str
    english: tuple[str, str]
    german: tuple[str, str]
    german_gender: str
    german_genitive: str
    weak: bool
    french: tuple[str, str]
    french_gender: str
    aspirated: bool

    @property
    def mass(self) -> bool:
        """Whether the noun is uncountable: bread, water."""
        return self.kind in ("mass", "drink")


def _english_plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")


def _german_genitive(word: str, gender: str) -> str:
    if gender == "f":
        return word
    if word.endswith(("s", "ß", "z", "x")):
        return word + "es"
    vowels = [letter in "aeiouäöüyAEIOUÄÖÜ" for letter in word]
    groups = sum(now and not before for before, now in zip([False, *vowels], vowels, strict=False))
    return word + ("es" if groups == 1 and not vowels[-1] else "s")


def _french_plural(word: str) -> str:
    if word.endswith(("s", "x", "z")):
        return word
    if word.endswith(("eau", "eu")):
        return word + "x"
    return word[:-2] + "aux" if word.endswith("al") else word + "s"


def _parse(row: str, kind: str) -> Noun:
    english, german, french = (cell.strip() for cell in row.split("|"))
    singular, _, plural = english.partition("/")
    gender, german_singular, german_plural, *genitive = german.split(":")
    weak = gender == "w"
    if genitive:
        german_genitive = genitive[0]
    elif weak:
        german_genitive = german_singular + ("n" if german_singular.endswith(("e", "ar")) else "en")
    else:
        german_genitive = _german_genitive(german_singular, gender)
    french_gender, french_singular, *french_plural = french.split(":")
    return Noun(
        name=singular,
        kind=kind,
        english=(singular, plural or _english_plural(singular)),
        german=(german_singular, german_plural),
        german_gender="m" if weak else gender,
        german_genitive=german_genitive,
        weak=weak or german_singular == "Bauer",
        french=(french_singular, french_plural[0] if french_plural else _french_plural(french_singular)),
        french_gender=french_gender[0],
        aspirated=french_gender.endswith("h"),
    )


NOUNS: dict[str, Noun] = {
    noun.name: noun for kind, rows in _ROWS.items() for noun in (_parse(row, kind) for row in rows.strip().splitlines())
}
ASPIRATED = tuple(form for noun in NOUNS.values() if noun.aspirated for form in noun.french)
# Groups of nouns that are objects of the same verbs.
_GROUPS = {
    "private": "car bicycle motorcycle",
    "boxes": "box bottle suitcase basket",
    "breakable": "cup plate glass bottle mirror",
    "washable": "cup plate spoon fork knife glass",
    "portable": "key bag umbrella ring map phone camera",
    "driven": "car bus lorry taxi",
    "taken": "bus train taxi",
    "pushed": "car bicycle motorcycle table box chair",
    "pulled": "box chair table basket suitcase",
    "repairable": "clock lamp camera phone chair table guitar",
    "leaving": "car bus train ship taxi lorry",
    "built": "house bridge church castle table ship theatre",
    "printed": "book newspaper novel magazine",
    "written": "letter story poem message novel book",
    "thrown": "ball box hat bag",
}


@cache
def nouns_for(classes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the possible arguments of a verb. classes: semantic classes, groups, or single nouns (`=noun`)."""
    nouns: list[str] = []
    for entry in classes:
        if entry.startswith("="):
            nouns.append(entry[1:])
        else:
            nouns += _GROUPS[entry].split() if entry in _GROUPS else nouns_of(entry)
    return tuple(dict.fromkeys(nouns))


@cache
def nouns_of(kinds: str) -> tuple[str, ...]:
    """Return the nouns of some semantic classes in table order. kinds: names of the classes, separated by spaces."""
    classes = kinds.split()
    return tuple(noun.name for noun in NOUNS.values() if noun.kind in classes)
