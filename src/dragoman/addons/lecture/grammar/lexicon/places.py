"""The places of the embedded grammar, with their prepositions in each language."""

from dataclasses import dataclass

# Location and destination: name | English location, destination | German (dative, accusative) | French.
_PLACES = """
school | at to | in in | à à
garden | in to | in in | dans dans
kitchen | in to | in in | dans dans
park | in to | in in | dans à
country | in to | in in | dans dans
city | in to | in in | dans dans
village | in to | in in | dans à
forest | in to | in in | dans dans
market | at to | auf auf | à à
shop | in to | in in | dans à
restaurant | in to | in in | dans à
hotel | in to | in in | dans à
hospital | in to | in in | dans à
church | in to | in in | dans à
station | at to | an zu | à à
museum | in to | in in | dans à
library | in to | in in | dans à
office | in to | in in | dans à
factory | in to | in in | dans à
bridge | on to | auf zu | sur à
lake | at to | an an | à à
beach | on to | an an | sur à
castle | in to | in zu | dans à
theatre | in to | in in | dans à
cinema | in to | in in | dans à
bank | in to | in zu | dans à
farm | on to | auf auf | à à
airport | at to | an zu | à à
harbour | at to | an zu | à à
bakery | in to | in zu | dans à
university | at to | an zu | à à
square | on to | auf auf | sur sur
street | in to | auf auf | dans dans
mountain | on to | auf zu | sur à
island | on to | auf zu | sur à
house | in to | in zu | dans à
room | in to | in in | dans dans
cellar | in to | in in | dans dans
"""


@dataclass(frozen=True, slots=True)
class Place:
    """The prepositions of a place in each language: (location, destination)."""

    english: tuple[str, str]
    german: tuple[str, str]
    french: tuple[str, str]


def _pair(cell: str) -> tuple[str, str]:
    place, goal = cell.split()
    return place, goal


PLACES: dict[str, Place] = {
    name.strip(): Place(_pair(english), _pair(german), _pair(french))
    for name, english, german, french in (row.split("|") for row in _PLACES.strip().splitlines())
}
