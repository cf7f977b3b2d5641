"""`TextStream`: the text of tokens that come one by one, in whole characters, up to a stop string."""

import codecs
from collections.abc import Sequence

from dragoman.text.tokenizer import Tokenizer


class TextStream:
    """The text that tokens add to a prompt; all pieces one after another are what decoding them at once gives.

    Text is held back while it may be the beginning of a stop string, and bytes while they are no whole character.
    stopped: whether a stop string has come; it and what follows belong to no piece. Of several, the first to be
    complete counts, and of two that end together the longer: how the text is divided into tokens makes no difference.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int], stop: Sequence[str] = ()) -> None:
        """prompt: its ids, by which blanks between it and what follows are set as in one text."""
        self._tokenizer, self._stop = tokenizer, tuple(stop)
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._strips = tokenizer.added_space == "first" and not prompt
        self._ends_in_blank = tokenizer.added_space == "last"
        self._held = " " if self._ends_in_blank and prompt else ""
        self.stopped = False

    def push(self, token: int) -> str:
        """The piece that may be shown once this token is known; often empty."""
        return self._released(self._bytes.decode(self._tokenizer.surface(token)), last=False)

    def finish(self) -> str:
        """What is still held back. Half a character at the end becomes U+FFFD."""
        return self._released(self._bytes.decode(b"", True), last=True)

    def _released(self, text: str, last: bool) -> str:
        if self.stopped:
            return ""
        if self._strips and text:
            text, self._strips = text.removeprefix(" "), False
        text = self._held + text
        found = [(start + len(stop), start) for stop in self._stop if (start := text.find(stop)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            return text[: min(found)[1]]
        if last:
            self._held = ""
            return text.removesuffix(" ") if self._ends_in_blank else text
        place = len(text) - self._kept(text)
        self._held = text[place:]
        return text[:place]

    def _kept(self, text: str) -> int:
        """Characters at the end of a text that may begin a stop string, or are a blank that may turn out too many."""
        longest = max(map(len, self._stop), default=1) - 1
        beginning = next(
            (size for size in range(min(longest, len(text)), 0, -1) if self._begins_a_stop(text[-size:])), 0
        )
        return max(beginning, int(self._ends_in_blank and text.endswith(" ")))

    def _begins_a_stop(self, text: str) -> bool:
        return any(stop.startswith(text) for stop in self._stop)
