"""Marks of sentence boundaries that other toolkits write into texts, such as `<s>` and `</s>`.

IRSTLM and the CMU toolkit expect each sentence as `<s> The dog sleeps. </s>`, and corpora that were prepared for other
programs contain `<eos>`, `<pad>` or `[CLS]`. A vocabulary has symbols of its own for these boundaries, which no text
can spell, so that the marks would be learned as ordinary text or counted as unknown words.
"""

import re

START_MARKS = ("<s>", "<S>", "<bos>", "<BOS>", "<sos>", "<SOS>", "<pad>", "<PAD>", "<|endoftext|>", "[CLS]", "[PAD]")
"""Marks at the start of a sentence. Some toolkits repeat them, or fill lines up with `<pad>`."""

END_MARKS = ("</s>", "</S>", "<eos>", "<EOS>", "<pad>", "<PAD>", "<|endoftext|>", "[SEP]", "[PAD]")
"""Marks at the end of a sentence."""

_START, _END = (rf"(?:{'|'.join(map(re.escape, marks))})(?!\S)" for marks in (START_MARKS, END_MARKS))
_AT_START = re.compile(rf"[ \t]*+(?:{_START}[ \t]*+)++")
_AFTER_SENTENCE = re.compile(rf"(?<=\S)(?:[ \t]++{_END})++(?P<start>(?:[ \t]++{_START})++(?=[ \t]))?")
_CANDIDATE = re.compile("|".join(map(re.escape, {*START_MARKS, *END_MARKS})))


def remove_sentence_marks(text: str) -> str:
    """Return a text of one or more lines without the marks of sentence boundaries.

    Marks are words of their own at the start or the end of a line, or between two sentences of a line. Other
    occurrences, such as in `the tag <s> of HTML` or `<s>struck</s>`, are text.
    """
    if _CANDIDATE.search(text) is None:
        return text
    return "\n".join(map(_without_marks, text.split("\n")))


def _without_marks(line: str) -> str:
    start = 0 if (match := _AT_START.match(line)) is None else match.end()
    end = len(line)
    while (mark := _mark_at_end(line, start, end)) is not None:
        end = _text_end(line, start, mark)
    return _AFTER_SENTENCE.sub(lambda match: "" if match["start"] else match[0], line[start:end])


def _mark_at_end(line: str, start: int, end: int) -> int | None:
    """Return the position of the mark that is the last word of line[start:end], or None."""
    last = _text_end(line, start, end)
    for mark in END_MARKS:
        position = last - len(mark)
        if line.endswith(mark, start, last) and (position == start or line[position - 1] in " \t"):
            return position
    return None


def _text_end(line: str, start: int, end: int) -> int:
    """Return the end of line[start:end] without blanks at its end."""
    while end > start and line[end - 1] in " \t":
        end -= 1
    return end
