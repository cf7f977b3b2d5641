// The positions of an answer's sentences and words in the text and in its translation.

/** What separates words for the server: Python's whitespace, which differs from JavaScript's. */
const WORD = /[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g;

/** The words of a text in order, as [begin, end]. */
export function words(text) {
  return Array.from(text.matchAll(WORD), (found) => [found.index, found.index + found[0].length]);
}

/**
 * Locate the sentences, in order: {source, target, from: [begin, end], to: [begin, end]}, with positions in `text` and
 * in `translation`. Without markup, everything between sentences is the same in both; with markup, the next occurrence
 * of a sentence is used. A sentence that contains markup is left out.
 */
export function located(text, translation, sentences) {
  const found = [];
  let read = 0;
  let written = 0;
  for (const { source, hypotheses } of sentences) {
    const target = hypotheses[0].text;
    const begin = text.indexOf(source, read);
    if (begin < 0 || !target) continue;
    const beside = written + begin - read;
    const place = translation.startsWith(target, beside) ? beside : translation.indexOf(target, written);
    if (place < 0) continue;
    read = begin + source.length;
    written = place + target.length;
    found.push({ source, target, from: [begin, read], to: [place, written] });
  }
  return found;
}

/** The number of characters of a string, counted as the server does: in code points. */
export function characters(text) {
  let halves = 0;
  for (const _ of text.matchAll(/[\ud800-\udbff][\udc00-\udfff]/g)) halves += 1;
  return text.length - halves;
}
