"""The union of conversions. To add one, write a `Conversion` and add it here."""

from typing import Annotated

from pydantic import Field

from dragoman.data.downloads.conversions.articles import ArticlesConversion
from dragoman.data.downloads.conversions.books import BooksConversion
from dragoman.data.downloads.conversions.declaration import DeclarationConversion
from dragoman.data.downloads.conversions.lines import (
    FirstPairsConversion,
    JoiningConversion,
    SgmlConversion,
    TranscodingConversion,
)
from dragoman.data.downloads.conversions.planetoid import PlanetoidConversion
from dragoman.data.downloads.conversions.reviews import ReviewsConversion

AnyConversion = Annotated[
    SgmlConversion
    | TranscodingConversion
    | FirstPairsConversion
    | JoiningConversion
    | BooksConversion
    | ReviewsConversion
    | ArticlesConversion
    | DeclarationConversion
    | PlanetoidConversion,
    Field(discriminator="kind"),
]
