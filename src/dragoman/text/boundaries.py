"""Where words end: no entry of a learned vocabulary crosses these boundaries."""

from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

WORDS = (
    r" ?[\p{L}\p{M}\x{200C}\x{200D}]+"  # letters with their combining marks and joiners, one blank before them included
    r"| ?\p{N}+"
    r"| ?[^\s\p{L}\p{M}\p{N}\x{200C}\x{200D}]+"  # punctuation, symbols, emoji
    r"|\s+(?!\S)"  # blanks up to the last one, which belongs to the word after it
    r"|\s+"
)
"""No merge crosses these words. Letters and punctuation never share one, so no learned symbol can spell `</s>`."""


def words_splitter() -> Split:
    """The library's pre-tokeniser that cuts a text into `WORDS`, nothing lost."""
    return Split(Regex(WORDS), "isolated")
