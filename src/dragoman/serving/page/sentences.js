// The positions of an answer's sentences and words in the text and in its translation.

/** A word as the server defines it: without Python's whitespace, which differs from JavaScript's. */
const WORD = /[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g;

/** Return the words of a text in order, as [begin, end]. */
export function words(text) {
  return Array.from(text.matchAll(WORD), (found) => [found.index, found.index + found[0].length]);
}

/**
 * Locate the sentences, in order: {source, target, from: [begin, end], to: [begin, end]}, with positions in `text` and
 * in `translation`. Without markup, everything between sentences is the same in both; with markup, the next occurrence
 * of a sentence is used. A sentence that contains markup is left out.
 */
export function locateSentences(text, translation, sentences) {
  const found = [];
  let read = 0;
  let written = 0;
  for (const { source, hypotheses } of sentences) {
    const target = hypotheses[0].text;
    const begin = text.indexOf(source, read);
    if (begin < 0 || !target) continue;
    const expected = written + begin - read;
    const start = translation.startsWith(target, expected) ? expected : translation.indexOf(target, written);
    if (start < 0) continue;
    read = begin + source.length;
    written = start + target.length;
    found.push({ source, target, from: [begin, read], to: [start, written] });
  }
  return found;
}

/** Return the number of characters of a string in code points, as the server counts them. */
export function characters(text) {
  let halves = 0;
  for (const _ of text.matchAll(/[\ud800-\udbff][\udc00-\udfff]/g)) halves += 1;
  return text.length - halves;
}
