"""The verbs of the embedded grammar. Each row contains a verb in three languages with its subjects and objects."""

from dataclasses import dataclass

# Frames: none (intransitive), object, give (object and receiver), about (prepositional object), go (destination),
# live (place), clause (that), ask (whether).
# English: lemma ("*" for a state), past, -ing form | German: "dat" if its object is a dative, infinitive (prefix+verb),
# du-form/er-form if irregular, participle, "s" if perfect with sein, "r" if reflexive, preposition:case |
# French: infinitive:model, "e" if perfect with être, "r" if reflexive, preposition | subjects | objects.
_ROWS: dict[str, str] = {
    "none": """
sleep slept | schlafen schläfst/schläft geschlafen | dormir:partir | person animal |
laugh laughed | lachen gelacht | rire:rire | person |
cry cried | weinen geweint | pleurer:er | person |
work worked | arbeiten gearbeitet | travailler:er | person |
sing sang | singen gesungen | chanter:er | person |
dance danced dancing | tanzen getanzt | danser:er | person |
smile smiled smiling | lächeln gelächelt | sourire:rire | person |
swim swam swimming | schwimmen geschwommen s | nager:er | person animal |
run ran running | laufen läufst/läuft gelaufen s | courir:courir | person animal |
arrive arrived arriving | an+kommen angekommen s | arriver:er e | person vehicle |
wait waited | warten gewartet | attendre:re | person |
play played | spielen gespielt | jouer:er | person animal |
get_up got_up getting_up | auf+stehen aufgestanden s | lever:er r | person |
rest rested | aus+ruhen ausgeruht r | reposer:er r | person animal |
hurry hurried | beeilen beeilt r | dépêcher:er r | person |
fall_asleep fell_asleep | ein+schlafen schläfst/schläft eingeschlafen s | endormir:partir r | person animal |
wake_up woke_up waking_up | auf+wachen aufgewacht s | réveiller:er r | person animal |
disappear disappeared | verschwinden verschwunden s | disparaître:aître | person animal |
shout shouted | schreien geschrien | crier:er | person |
fall fell | fallen fällst/fällt gefallen s | tomber:er e | person |
jump jumped | springen gesprungen s | sauter:er | person animal |
come_back came_back coming_back | zurück+kommen zurückgekommen s | revenir:venir e | person |
go_out went_out going_out | aus+gehen ausgegangen s | sortir:partir e | person |
leave left leaving | ab+fahren fährst/fährt abgefahren s | partir:partir e | leaving |
travel travelled travelling | reisen gereist s | voyager:er | person |
cook cooked | kochen gekocht | cuisiner:er | person |
""",
    "object": """
eat ate | essen isst/isst gegessen | manger:er | person | food mass
drink drank | trinken getrunken | boire:boire | person | drink
buy bought | kaufen gekauft | acheter:er | person | food mass drink thing printed clothing private
order ordered | bestellen bestellt | commander:er | person | food drink
cut cut cutting | schneiden geschnitten | couper:er | person | food mass
taste tasted tasting | probieren probiert | goûter:er | person | food mass drink
read read | lesen liest/liest gelesen | lire:lire | person | text
write wrote writing | schreiben geschrieben | écrire:écrire | person | written
see* saw | sehen siehst/sieht gesehen | voir:voir | person animal | person animal thing vehicle
find found | finden gefunden | trouver:er | person | thing text clothing animal
look_for looked_for looking_for | suchen gesucht | chercher:er | person | person animal thing text clothing
love* loved | lieben geliebt | aimer:er | person | person animal
hate* hated | hassen gehasst | détester:er | person | person
know* knew | kennen gekannt | connaître:aître | person | person
visit visited | besuchen besucht | visiter:er | person | place
open opened | öffnen geöffnet | ouvrir:vrir | person | part boxes
close closed closing | schließen geschlossen | fermer:er | person | part boxes
carry carried | tragen trägst/trägt getragen | porter:er | person | thing
repair repaired | reparieren repariert | réparer:er | person | vehicle part repairable =bed
clean cleaned | putzen geputzt | nettoyer:er | person | vehicle =window =mirror =table =lamp
wash washed | waschen wäschst/wäscht gewaschen | laver:er | person | private clothing washable =dog
break broke breaking | zerbrechen zerbrichst/zerbricht zerbrochen | casser:er | person | breakable
lose lost losing | verlieren verloren | perdre:re | person | portable clothing text
forget forgot forgetting | vergessen vergisst/vergisst vergessen | oublier:er | person | portable clothing text
take took taking | nehmen nimmst/nimmt genommen | prendre:prendre | person | thing taken
bring brought | mit+bringen mitgebracht | apporter:er | person | food mass drink thing text
drive drove driving | fahren fährst/fährt gefahren | conduire:uire | person | driven
paint painted | malen gemalt | peindre:indre | person | person animal plant =castle =bridge =lake
draw drew | zeichnen gezeichnet | dessiner:er | person | person animal plant place
hear* heard hearing | hören gehört | entendre:re | person animal | person animal vehicle
meet met meeting | treffen triffst/trifft getroffen | rencontrer:er | person | person
invite invited inviting | ein+laden lädst/lädt eingeladen | inviter:er | person | person
call called | an+rufen angerufen | appeler:er | person | person
kiss kissed | küssen geküsst | embrasser:er | person | person
push pushed | schieben geschoben | pousser:er | person | pushed
pull pulled | ziehen gezogen | tirer:er | person | pulled
hide hid hiding | verstecken versteckt | cacher:er | person | thing text
steal stole | stehlen stiehlst/stiehlt gestohlen | voler:er | person | thing private printed
throw threw | werfen wirfst/wirft geworfen | jeter:er | person | thrown
build built | bauen gebaut | construire:uire | person | built
look_at looked_at looking_at | an+sehen siehst/sieht angesehen | regarder:er | person animal | person animal thing text
watch watched | beobachten beobachtet | observer:er | person animal | person animal
admire* admired | bewundern bewundert | admirer:er | person | person thing
choose chose choosing | aus+wählen ausgewählt | choisir:ir | person | thing printed clothing food
feed fed | füttern gefüttert | nourrir:ir | person | animal
catch caught | fangen fängst/fängt gefangen | attraper:er | person animal | animal
use used using | benutzen benutzt | utiliser:er | person | thing
rent rented | mieten gemietet | louer:er | person | private =house =room =ship
thank thanked | dat danken gedankt | remercier:er | person | person
help helped | dat helfen hilfst/hilft geholfen | aider:er | person | person
follow followed | dat folgen gefolgt s | suivre:suivre | person animal | person animal
listen_to listened_to listening_to | dat zu+hören zugehört | écouter:er | person | person
wear wore | tragen trägst/trägt getragen | porter:er | person | clothing
try_on tried_on trying_on | an+probieren anprobiert | essayer:er | person | clothing
congratulate congratulated congratulating | dat gratulieren gratuliert | féliciter:er | person | person
understand* understood | verstehen verstanden | comprendre:prendre | person | person
recognize* recognized | erkennen erkannt | reconnaître:aître | person | person
have* had | haben hast/hat gehabt | avoir:avoir | person | animal thing clothing private
""",
    "give": """
give gave giving | geben gibst/gibt gegeben | donner:er | person | food drink thing text clothing
show showed | zeigen gezeigt | montrer:er | person | animal thing text clothing vehicle
sell sold | verkaufen verkauft | vendre:re | person | animal thing private clothing
send sent | schicken geschickt | envoyer:er | person | =present text
lend lent | leihen geliehen | prêter:er | person | thing private printed clothing
offer offered | an+bieten angeboten | offrir:vrir | person | food drink =present
promise promised | versprechen versprichst/verspricht versprochen | promettre:mettre | person | =present animal
tell told | erzählen erzählt | raconter:er | person | =story =poem
give_back gave_back giving_back | zurück+geben gibst/gibt zurückgegeben | rendre:re | person | thing private text
describe described describing | beschreiben beschrieben | décrire:écrire | person | animal thing vehicle place
""",
    "about": """
wait_for waited_for waiting_for | warten gewartet auf:acc | attendre:re : | person | person vehicle
dream_of dreamed_of dreaming_of | träumen geträumt von:dat | rêver:er de | person | person animal place
think_of thought_of thinking_of | denken gedacht an:acc | penser:er à | person | person
talk_to talked_to talking_to | sprechen sprichst/spricht gesprochen mit:dat | parler:er avec | person | person
talk_about talked_about talking_about | reden geredet über:acc | parler:er de | person | person animal text place
play_with played_with playing_with | spielen gespielt mit:dat | jouer:er avec | person animal | person animal
dance_with danced_with dancing_with | tanzen getanzt mit:dat | danser:er avec | person | person
work_for worked_for working_for | arbeiten gearbeitet für:acc | travailler:er pour | person | person
cook_for cooked_for cooking_for | kochen gekocht für:acc | cuisiner:er pour | person | person
laugh_at laughed_at laughing_at | lachen gelacht über:acc | rire:rire de | person | person text
""",
    "go": """
go went | gehen gegangen s | aller:aller e | person |
come came coming | kommen gekommen s | venir:venir e | person |
return returned | zurück+kehren zurückgekehrt s | retourner:er e | person |
""",
    "live": """
live* lived | wohnen gewohnt | habiter:er | person |
stay stayed | bleiben geblieben s | rester:er e | person animal |
""",
    "clause": """
think* thought | denken gedacht | penser:er | person |
believe* believed | glauben geglaubt | croire:croire | person |
know_that* knew_that | wissen weißt/weiß gewusst | savoir:savoir | person |
say* said | sagen gesagt | dire:dire | person |
hope* hoped | hoffen gehofft | espérer:er | person |
""",
    "ask": """
ask asked | fragen gefragt | demander:er | person |
wonder wondered | fragen gefragt r | demander:er r | person |
""",
}


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb in three languages, with its frame and its possible subjects and objects (see `nouns_for`).

    english: lemma, past and -ing form, each with an optional particle after a space. stative: whether the verb has no
    progressive form. german_present: the forms with du and er, or two empty strings if they are regular.
    """

    name: str
    frame: str
    stative: bool
    english: tuple[str, str, str]
    german_prefix: str
    german: str
    german_present: tuple[str, str]
    german_participle: str
    german_sein: bool
    german_reflexive: bool
    german_dative: bool
    german_preposition: str
    german_case: str
    french: str
    french_model: tuple[str, ...]
    french_etre: bool
    french_reflexive: bool
    french_preposition: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...]


def _parse(row: str, frame: str) -> Verb:
    cells = [cell.strip() for cell in row.split("|")]
    english, german, french, subjects = (cell.split() for cell in cells[:4])
    objects = cells[4].split() if len(cells) > 4 else []
    stative = english[0].endswith("*")
    lemma = english[0].rstrip("*")
    ing = english[2] if len(english) > 2 else _ing(lemma)
    dative = german[0] == "dat"
    german = german[1:] if dative else german
    sein, reflexive = german[-1] == "s", german[-1] == "r"
    german = german[:-1] if sein or reflexive else german
    preposition, _, case = german.pop().partition(":") if ":" in german[-1] else ("", "", "")
    prefix, _, infinitive = german[0].rpartition("+")
    second, third = german[1].split("/") if len(german) == 3 else ("", "")
    infinitive_french, _, model = french[0].partition(":")
    rest = french[1:]
    french_reflexive, etre = rest[-1:] == ["r"], rest[-1:] in (["e"], ["r"])
    rest = rest[:-1] if etre else rest
    french_preposition = ""
    if frame == "about":
        french_preposition = rest.pop().replace(":", "")
    return Verb(
        name=lemma,
        frame=frame,
        stative=stative,
        english=(_words(lemma), _words(english[1]), _words(ing)),
        german_prefix=prefix,
        german=infinitive,
        german_present=(second, third),
        german_participle=german[-1],
        german_sein=sein,
        german_reflexive=reflexive,
        german_dative=dative,
        german_preposition=preposition,
        german_case=case,
        french=infinitive_french,
        french_model=(model, *rest),
        french_etre=etre,
        french_reflexive=french_reflexive,
        french_preposition=french_preposition,
        subjects=tuple(subjects),
        objects=tuple(objects),
    )


def _ing(lemma: str) -> str:
    verb, _, particle = lemma.partition("_")
    return f"{verb.removesuffix('e')}ing_{particle}".removesuffix("_")


def _words(name: str) -> str:
    return name.removesuffix("_that").replace("_", " ")


VERBS: dict[str, Verb] = {
    verb.name: verb
    for frame, rows in _ROWS.items()
    for verb in (_parse(row, frame) for row in rows.strip().splitlines())
}
