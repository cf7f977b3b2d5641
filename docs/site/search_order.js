// The search of the site. Sphinx includes this file after its own search, whose functions it replaces.
//
// Visitors type questions in their own words, and a question is answered by a section, not by a page. So each section is
// ranked by its words (BM25, Robertson & Zaragoza 2009): rare words count most, words of a heading more than words of the
// text, and a section may lack some. Visitors also know other names than the pages use, so pages and sections have lists of
// queries (document expansion, Nogueira et al. 2019). The query of a section that is most similar to what was typed counts
// as much as the text, and so do all queries of its page together, compared by words and parts of words. The sections are in
// passages.js, which passages.py writes.

/** Factors of the score of pages: those that tell how to do something come first, the history of measurements last. */
const FOLDERS = [
  [/^(?!start\/tutorial).*index$/, 0.7], // lists of pages, which have the words of all of them
  [/^(start|questions)\//, 1.2],
  [/^(how-to|paths)\//, 1.15],
  [/^lecture\//, 0.9],
  [/^reference\/(api|cli|settings|http)\b/, 0.8],
  [/^(EXPERIMENTS|architecture|lecture\/decks|reference\/variants)$/, 0.6],
];

/** How often a word counts in the title of the page, the heading of the section, its text, commands and code, and queries. */
const FIELDS = { title: 1.6, heading: 2.5, text: 1, code: 0.2, queries: 2 };

/** Fields of which each occurrence of a word counts. */
const COUNTED = new Set(["text", "queries"]);

/** How much a section gains that has the very query that was typed, per point of its words. Usual words are compared, too,
 * because "does not start" is something else than "start"; but they count less. */
const QUERY = 0.6;
const USUAL = 0.5;

/** How much a page gains whose queries together resemble what was typed, per point of its words, and the power of their
 * cosines in the sum: a high one lets the most similar queries decide. */
const NEAR = 1;
const POWER = 3;

/** Words whose parts have a lower cosine have nothing in common. */
const SAME = 0.2;

/** The points of a word that is in no query. */
const UNKNOWN = 3;

/** Names of other programs say little about the question, and so do words with which people frame one, as in "problem when
 * running …". They count less, but one who types nothing else finds them. */
const PROGRAMS = `fairseq opennmt sockeye joeynmt joey marian libretranslate argos moses mosesdecoder nematus tensor2tensor
  transformers`;
const PROGRAM = 0.3;
const FRAMES = `problem error fail failed failure broken wrong weird strange argument behaviour example run tutorial result
  improve add enable implement integrate integration new unable cannot properly change occur happen find create version
  increase bug able function option`;
const FRAME = 0.6;

/** BM25: after how many occurrences further ones add little, and how much long sections are discounted. */
const SATURATION = 2.5;
const LENGTH = 0.6;

/** How much a section gains whose heading, or the page whose title, has nothing but words that were typed. A short
 * heading, such as Settings, gains less: its words count as if COMMON points of other words stood beside them. */
const COVERED = 1;
const COMMON = 4;

/** Power of the rarity of words; below 1, because a rare word in a question is often by the way. */
const RARE = 0.8;

/** The part that the page as a whole has in the score of its sections. */
const PAGE = 0.4;

/** What two words gain that stand together as they were typed, such as beam search. */
const TOGETHER = 0.4;

/** What a word is worth that only begins like the one that was typed. */
const SIMILAR = 0.45;

// Sphinx ignores most words that say nothing about the answer, but not these; the languages are those of the examples.
const SILENT = `can could get may use using would should must want need help please possible way one also practice question
  best option trying like kindly english german french en de fr issue issues bug feature request support suggestion suggest
  seem seems anyone know doing does gets got getting make makes made give gives ask asking tried work works working
  understand clarify clarification instead according etc hi hello thanks thank regarding via still even really let just
  something someone thing things wanted`;
for (const word of SILENT.split(/\s+/)) stopwords.add(word);

/** Returns a word without its ending, with one spelling for British and American English. Who has trained a model asks
 * other questions than who wants to train one. */
const stemOf = (() => {
  const stemmer = new Stemmer();
  const stems = new Map();
  return (word) => {
    if (word === "trained") return word;
    if (!stems.has(word)) {
      const british = word.replace(/(?<=..)iz(?=(e|ed|es|er|ers|ing|ation|ations)$)/, "is").replace(/(?<=[bilv])our/, "or");
      stems.set(word, stemmer.stemWord(british));
    }
    return stems.get(word);
  };
})();

/** Returns the words of a text as they are written, such as low-resource, max_length and 0.0.0.0. */
function writtenIn(text) {
  const lower = text.toLowerCase().replace(/(neural )?machine translation|\bnmt\b/g, "translation");
  return lower.match(/\d+(?:[.,]\d+)+|\p{L}+(?:[-_]\p{L}+)+|[\p{L}\p{N}]+/gu) ?? [];
}

// low-resource and lowresource are found as low resource, and multi-lingual as multilingual: a word of two parts is divided
// if the pages more often write it with a hyphen than without.
const [divided, joined] = (() => {
  const balance = new Map();
  const parts = new Map();
  for (const [, passages] of PASSAGES)
    for (const [, heading, prose, , queries] of passages)
      for (const word of writtenIn([heading, prose, ...queries].join(" "))) {
        const both = word.split(/[-_]/);
        if (both.length > 2 || both.some((part) => part.length < 2)) continue;
        const whole = stemOf(both.join(""));
        balance.set(whole, (balance.get(whole) ?? 0) + (both.length === 2 ? 1 : -1));
        if (both.length === 2) parts.set(whole, both);
      }
  const isDivided = (word) => balance.get(word) > 0;
  const words = [...parts.keys()];
  return [new Map(words.filter(isDivided).map((word) => [word, parts.get(word)])), new Set(words.filter((word) => !isDivided(word)))];
})();

/** Returns the words of a text without endings and, if it does not keep all, without those that say nothing. */
function wordsOf(text, keepsAll = false) {
  // Counts say little, but 429 and 0.0.0.0 are names; the figures of measurements, such as 0.429, are words of their own.
  const saysSomething = (word) => !stopwords.has(word) && (/^\d/.test(word) ? word.length > 2 : word.length > 1);
  const parts = writtenIn(text).flatMap((word) => {
    const whole = word.replace(/[-_]/g, "");
    const both = word.split(/[-_]/);
    if (joined.has(stemOf(whole)) || (both.length > 1 && both.some((part) => part.length === 1))) return [whole]; // n-best
    return divided.get(stemOf(whole)) ?? both;
  });
  return parts.filter((word) => keepsAll || saysSomething(word)).map(stemOf);
}

const usual = new Set([...stopwords].map(stemOf));
const programs = new Set(wordsOf(PROGRAMS));
const frames = new Set(wordsOf(FRAMES));

/** Returns the factor of a word by what it says about the topic. */
const factorOf = (word) => (programs.has(word) ? PROGRAM : frames.has(word) ? FRAME : 1);

/** Returns how many letters have to be inserted, deleted, replaced or swapped to make one word of another. */
function distance(one, other) {
  let [before, last] = [[], Array.from({ length: other.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= one.length; row++) {
    const next = [row];
    for (let column = 1; column <= other.length; column++) {
      const differs = one[row - 1] === other[column - 1] ? 0 : 1;
      next[column] = Math.min(last[column] + 1, next[column - 1] + 1, last[column - 1] + differs);
      if (row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1])
        next[column] = Math.min(next[column], before[column - 2] + 1);
    }
    [before, last] = [last, next];
  }
  return last[other.length];
}

/** Returns the parts of three to five characters of a word, whose beginning and end are characters, too. */
function partsOf(word) {
  const spaced = ` ${word} `;
  const starts = (length) => [...Array(Math.max(0, spaced.length - length + 1)).keys()];
  return [3, 4, 5].flatMap((length) => starts(length).map((start) => spaced.slice(start, start + length)));
}

/** Lists of features as vectors of length 1 whose features weigh as much as they are rare (tf–idf). */
class Vectors {
  constructor(lists) {
    this.size = lists.length;
    this.counts = new Map();
    for (const features of lists) for (const each of new Set(features)) this.counts.set(each, (this.counts.get(each) ?? 0) + 1);
    this.postings = new Map([...this.counts.keys()].map((feature) => [feature, []]));
    lists.forEach((features, number) => {
      for (const [feature, weight] of this.vector(features)) this.postings.get(feature).push([number, weight]);
    });
  }

  vector(features) {
    const rarity = (feature) => 1 + Math.log((1 + this.size) / (1 + (this.counts.get(feature) ?? 0)));
    const weights = [...new Set(features)].map((feature) => [feature, rarity(feature)]);
    const length = Math.hypot(...weights.map(([, weight]) => weight));
    return weights.map(([feature, weight]) => [feature, weight / length]);
  }

  /** Returns the products of the vectors with features that have the given weights. */
  products(weights) {
    const products = new Float64Array(this.size);
    for (const [feature, weight] of weights)
      for (const [number, other] of this.postings.get(feature) ?? []) products[number] += weight * other;
    return products;
  }
}

/** Queries and the numbers of their pages. Words are compared by their parts, so that a query also meets other forms of its
 * words, compounds and misspelt words (soft cosine, Sidorov et al. 2014), and all queries of a page speak for it together.
 * So the lists need not have every wording. */
class Queries {
  constructor(queries) {
    this.pages = queries.map(([, page]) => page);
    this.queries = new Vectors(queries.map(([text]) => writtenIn(text)));
    this.words = [...this.queries.postings.keys()];
    this.parts = new Vectors(this.words.map(partsOf));
  }

  /** Returns for each page how much its queries resemble a text: a norm of their soft cosines. */
  near(text) {
    const weights = new Map();
    for (const [typed, weight] of this.queries.vector(writtenIn(text)))
      this.parts.products(this.parts.vector(partsOf(typed))).forEach((cosine, number) => {
        const word = this.words[number];
        if (cosine > SAME) weights.set(word, (weights.get(word) ?? 0) + weight * cosine);
      });
    const sums = new Map();
    this.queries.products(weights).forEach((cosine, number) => {
      sums.set(this.pages[number], (sums.get(this.pages[number]) ?? 0) + cosine ** POWER);
    });
    return new Map([...sums].map(([page, sum]) => [page, sum ** (1 / POWER)]));
  }
}

/** Counts words: the sections and pages, and for each word how much of it each of them has. */
class Passages {
  constructor(pages) {
    this.sections = [];
    this.pages = pages.map(([name]) => name);
    const whole = [];
    pages.forEach(([, passages], page) => {
      const title = passages[0]?.[1] ?? "";
      const all = { title: wordsOf(title), heading: [], text: [], code: [], queries: [] };
      passages.forEach(([anchor, heading, prose, code, typed], index) => {
        const queries = typed.map((query) => [...new Set(wordsOf(query, true))]);
        const [text, commands] = [wordsOf(prose), wordsOf(code)];
        const own = index ? wordsOf(heading) : all.title;
        const fields = { title: all.title, heading: own, text, code: commands, queries: [] };
        fields.queries = typed.flatMap((query) => [...new Set(wordsOf(query))]);
        this.sections.push({ page, anchor, title, heading, text: prose || code, fields, queries, typed });
        if (index) all.heading.push(...own);
        for (const field of ["text", "code", "queries"]) for (const word of fields[field]) all[field].push(word);
      });
      whole.push(all);
    });
    this.queries = new Queries(this.sections.flatMap(({ page, typed }) => typed.map((query) => [query, page])));
    const asked = this.sections.filter(({ queries }) => queries.length);
    const counts = new Map();
    for (const { queries } of asked) for (const word of new Set(queries.flat())) counts.set(word, (counts.get(word) ?? 0) + 1);
    this.points = new Map([...counts].map(([word, count]) => [word, Math.log(1 + asked.length / count)]));
    this.ofSections = Passages.postings(this.sections.map((section) => section.fields));
    this.ofPages = Passages.postings(whole);
  }

  /** Returns for each word a map from the number of a document to the points of the word there, before its rarity. */
  static postings(documents) {
    const lengths = documents.map(({ text }) => text.length + 20);
    const mean = lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, lengths.length);
    const words = new Map();
    documents.forEach((fields, number) => {
      const counts = new Map();
      for (const [field, factor] of Object.entries(FIELDS))
        for (const word of COUNTED.has(field) ? fields[field] : new Set(fields[field])) {
          const norm = field === "text" ? 1 - LENGTH + (LENGTH * lengths[number]) / mean : 1;
          counts.set(word, (counts.get(word) ?? 0) + factor / norm);
        }
      for (const [word, count] of counts) {
        if (!words.has(word)) words.set(word, new Map());
        words.get(word).set(number, count / (count + SATURATION));
      }
    });
    for (const points of words.values()) {
      const rarity = Math.log(1 + documents.length / points.size) ** RARE;
      for (const [number, value] of points) points.set(number, value * rarity);
    }
    return words;
  }

  /** Returns the points of each document for a word that was typed or, if there are none, of words that begin like it. */
  static points(postings, word) {
    if (postings.has(word) || word.length < 4) return postings.get(word) ?? new Map();
    const points = new Map();
    const similar = [...postings.keys()].filter((each) => each.startsWith(word) || (each.length > 3 && word.startsWith(each)));
    for (const other of similar)
      for (const [number, value] of postings.get(other) ?? [])
        points.set(number, Math.max(points.get(number) ?? 0, SIMILAR * value));
    return points;
  }

  static scores(postings, words) {
    const scores = new Map();
    for (const word of words)
      for (const [number, value] of Passages.points(postings, word))
        scores.set(number, (scores.get(number) ?? 0) + value * factorOf(word));
    return scores;
  }

  rarity(word) {
    return Math.log(1 + this.sections.length / (this.ofSections.get(word)?.size ?? 1));
  }

  /** Returns the points for words that stand together in a section, or in its headings, as they were typed. */
  together({ title, heading, text }, words) {
    const pairs = words.slice(1).map((word, index) => [words[index], word]);
    const isIn = (field, [one, other]) => field.some((word, index) => word === one && field[index + 1] === other);
    const found = pairs.filter((pair) => [title, heading, text].some((field) => isIn(field, pair)));
    return found.reduce((sum, [one, other]) => sum + (TOGETHER * (this.rarity(one) + this.rarity(other))) / 2, 0);
  }

  /** Returns the fraction of the words of a heading that were typed, weighted by their rarity. */
  covered(heading, typed) {
    const sum = (words) => words.reduce((total, word) => total + this.rarity(word), 0);
    const words = [...new Set(heading)];
    return sum(words.filter((word) => typed.has(word))) / (sum(words) + COMMON);
  }

  /** Returns the points of a word of a query: its rarity among all queries, less if it says little. */
  pointsOf(word) {
    return (usual.has(word) ? USUAL : factorOf(word)) * (this.points.get(word) ?? UNKNOWN);
  }

  /** Returns the largest cosine of a section's queries and the set of words that were typed. */
  similarity(queries, typed) {
    const sum = (words) => words.reduce((total, word) => total + this.pointsOf(word), 0);
    const length = Math.sqrt(sum([...typed]));
    const cosines = queries.map((query) => {
      return sum(query.filter((word) => typed.has(word))) / length / Math.sqrt(sum(query) + 1);
    });
    return Math.max(0, ...cosines);
  }

  /** Returns the word that the pages have in the place of a misspelt one: of those that differ least, the commonest. */
  corrected(word) {
    if (word.length < 5 || this.ofSections.has(word) || this.points.has(word) || programs.has(word)) return word;
    const most = word.length < 8 ? 1 : 2;
    let best = [most + 1, 0, word];
    for (const [other, { size }] of this.ofSections)
      if (other[0] === word[0] && Math.abs(other.length - word.length) <= most) {
        const different = distance(word, other);
        if (different < best[0] || (different === best[0] && size > best[1])) best = [different, size, other];
      }
    return best[2];
  }

  /** Returns the best section of each page, the best page first. */
  find(text) {
    const all = new Set(wordsOf(text, true).map((word) => this.corrected(word)));
    const typed = wordsOf(text).map((word) => this.corrected(word));
    const words = [...new Set(typed)];
    const total = words.reduce((sum, word) => sum + this.rarity(word) * factorOf(word), 0);
    const pages = Passages.scores(this.ofPages, words);
    const near = this.queries.near(text);
    const best = new Map();
    for (const [number, points] of Passages.scores(this.ofSections, words)) {
      const section = this.sections[number];
      const name = this.pages[section.page];
      const factor = FOLDERS.reduce((product, [folder, each]) => (folder.test(name) ? product * each : product), 1);
      const covered = Math.max(this.covered(section.fields.heading, all), this.covered(section.fields.title, all));
      const whole = PAGE * (pages.get(section.page) ?? 0);
      const text = (1 + COVERED * covered) * (points + this.together(section.fields, typed) + whole);
      const queries = QUERY * this.similarity(section.queries, all) + NEAR * (near.get(section.page) ?? 0);
      const score = factor * (text + total * queries);
      if (score > (best.get(section.page)?.score ?? 0)) best.set(section.page, { ...section, name, score });
    }
    return [...best.values()].sort((one, other) => other.score - one.score);
  }
}

/** Pages shown at most, and characters of each. */
const SHOWN = 20;
const QUOTE = 260;

/** Returns the part of a text with the most of the words; the beginning, if another part does not have more. */
function quoteOf(text, words) {
  const sentences = text.match(/.+?(?:[.:?!](?=\s)|$)\s*/gs) ?? [];
  let best = [0, -1];
  let start = 0;
  for (const sentence of sentences) {
    const found = new Set(wordsOf(text.slice(start, start + QUOTE)));
    const count = words.filter((word) => found.has(word)).length;
    if (count > best[1]) best = [start, count];
    start += sentence.length;
  }
  const end = best[0] + QUOTE;
  const cut = end < text.length ? `${text.slice(best[0], end).replace(/\s+\S*$/, "")} …` : text.slice(best[0]);
  return (best[0] > 0 ? "… " : "") + cut;
}

/** Adds text to an element. Words that were typed are marked. */
function appendMarked(element, text, words) {
  for (const part of text.split(/([\p{L}\p{N}-]+)/u)) {
    if (wordsOf(part).some((word) => words.includes(word))) {
      const mark = element.appendChild(document.createElement("span"));
      mark.classList.add("highlighted");
      mark.textContent = part;
    } else element.append(part);
  }
}

let passages = null; // counted when something is searched

/** Returns the sections that answer a query, the best first. */
function searchPassages(query) {
  passages ??= new Passages(PASSAGES);
  return passages.find(query);
}

// In place of Sphinx's functions
Search.query = (query) => {
  Search._parseQuery(query); // remembers the words that the page marks
  const words = wordsOf(query);
  const results = searchPassages(query).slice(0, SHOWN);
  for (const { name, anchor, title, heading, text, score } of results) {
    const item = Search.output.appendChild(document.createElement("li"));
    const link = item.appendChild(document.createElement("a"));
    link.href = name + DOCUMENTATION_OPTIONS.LINK_SUFFIX + anchor;
    link.dataset.score = score.toFixed(2);
    link.textContent = anchor ? `${title} › ${heading}` : title;
    const context = item.appendChild(document.createElement("p"));
    context.classList.add("context");
    appendMarked(context, quoteOf(text, words), words);
  }
  _finishSearch(results.length);
};
