"""PowerPoint presentations (.pptx, ECMA-376): the texts of slides, their notes, charts and diagrams are translated."""

from dragoman.addons.documents.formats.archive import Archive
from dragoman.addons.documents.formats.archive_document import ArchiveFormat, Member
from dragoman.addons.documents.formats.office.parts import drawn_members, part_types
from dragoman.addons.documents.languages import Languages

_KIND = "a PowerPoint presentation (.pptx)"
_OPEN = "application/vnd.openxmlformats-officedocument.presentationml."
_MAIN = (
    *(f"{_OPEN}{name}.main+xml" for name in ("presentation", "slideshow", "template")),
    *(
        f"application/vnd.ms-powerpoint.{name}.macroEnabled.main+xml"
        for name in ("presentation", "slideshow", "template")
    ),
)
_SLIDES = (f"{_OPEN}slide+xml", f"{_OPEN}notesSlide+xml")


def presentation_format() -> ArchiveFormat:
    """Return the format. Layouts, comments and embedded workbooks are kept."""
    return ArchiveFormat(_KIND, _members)


def _members(archive: Archive, languages: Languages) -> list[Member]:
    return drawn_members(archive, part_types(archive, _MAIN, _KIND), _SLIDES, languages)
