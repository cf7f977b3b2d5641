// The positions of sentences and words in a text and in its translation.

/** Matches a word as the server defines it. Python's whitespace characters differ from those of JavaScript. */
const WORD = /[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g;

/** Return the positions of the words of a text in order, as [begin, end]. */
export function locateWords(text) {
  return Array.from(text.matchAll(WORD), (match) => [match.index, match.index + match[0].length]);
}

/**
 * Locate sentences in order. Returns {source, target, doubtful, sourceRange: [begin, end], targetRange: [begin, end]} for
 * each sentence, with ranges in `text` and in `translation`. Without markup, the text between two sentences is the same in
 * both. With markup, the next occurrence of a sentence is used, and sentences that contain markup are omitted.
 */
export function locateSentences(text, translation, sentences) {
  const located = [];
  let sourceEnd = 0;
  let targetEnd = 0;
  for (const { source, hypotheses, doubtful } of sentences) {
    const target = hypotheses[0].text;
    const begin = text.indexOf(source, sourceEnd);
    if (begin < 0 || !target) continue;
    const expected = targetEnd + begin - sourceEnd;
    const start = translation.startsWith(target, expected) ? expected : translation.indexOf(target, targetEnd);
    if (start < 0) continue;
    sourceEnd = begin + source.length;
    targetEnd = start + target.length;
    located.push({ source, target, doubtful, sourceRange: [begin, sourceEnd], targetRange: [start, targetEnd] });
  }
  return located;
}

/** Return the length of a string in code points, as the server counts characters. */
export function countCharacters(text) {
  let pairs = 0;
  for (const _ of text.matchAll(/[\ud800-\udbff][\udc00-\udfff]/g)) pairs += 1;
  return text.length - pairs;
}
