// The order of search results. Sphinx includes this file after its search, whose functions it may therefore replace.
//
// Sphinx scores a page by its best word and drops pages that lack a word. Here, every word counts, rare ones most, and
// a page may lack some: visitors type questions in their own words. Pages that tell how to do something come first, and
// the history of measurements last.

// The variables are declared with var, because the search declares Scorer once more.
var FOLDERS = [
  [/^(start|how-to)\//, 6],
  [/^(paths|reference|explanation|results)\//, 3],
  [/^EXPERIMENTS$/, -6],
  [/^how-to(\/\w+)?\/index$/, -6], // lists of pages, which have the words of all of them
];

var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    score + FOLDERS.reduce((sum, [folder, points]) => sum + (folder.test(page) ? points : 0), 0),
  // as Sphinx
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// Sphinx ignores most words that say nothing about the answer, but not these.
for (const word of ["can", "get", "may", "use"]) stopwords.add(word);

// Sphinx drops numbers from queries. The index has those of three or more digits (searched_numbers.py).
var parseWithoutNumbers = Search._parseQuery;
Search._parseQuery = (query) => {
  const [whole, searchTerms, excludedTerms, highlightTerms, objectTerms] = parseWithoutNumbers(query);
  for (const number of splitQuery(query).filter((word) => /^\d{3,}$/.test(word))) {
    searchTerms.add(number);
    highlightTerms.add(number);
  }
  return [whole, searchTerms, excludedTerms, highlightTerms, objectTerms];
};

/** A page is found if it has words with this fraction of the weight of all words. */
var LEAST_SHARE = 0.4;

/** Points of a word in the title of a page; `Scorer.title` is for all headings. */
var TITLE = 18;

/** Spellings, after the search has removed endings. */
var SPELLINGS = [
  [/^finetun$/, "tune"], // finetune: the pages have fine-tune
  [/iz$/, "is"], // quantize: the pages are in British English
];

/** Returns the points of each page for a word: more if a heading has it, fewer if it only begins a word. */
function pointsOfWord(typed) {
  const word = SPELLINGS.reduce((spelled, [other, ours]) => spelled.replace(other, ours), typed);
  const points = new Map();
  const add = (found, score) =>
    [found ?? []].flat().forEach((page) => points.set(page, Math.max(score, points.get(page) ?? 0)));
  const { terms, titles, titleterms } = Search._index;
  for (const [index, whole, part] of [
    [terms, Scorer.term, Scorer.partialTerm],
    [titleterms, Scorer.title, Scorer.partialTitle],
  ]) {
    if (Object.hasOwn(index, word)) add(index[word], whole);
    else if (word.length > 2)
      for (const term of Object.keys(index)) if (term.startsWith(word)) add(index[term], part);
  }
  const stemmer = new Stemmer();
  for (const page of points.keys())
    if (splitQuery(titles[page].toLowerCase()).some((each) => stemmer.stemWord(each) === word)) points.set(page, TITLE);
  return points;
}

// In place of Sphinx's function: the score is the mean of the points, weighted by the rarity of the words.
Search.performTermsSearch = (searchTerms, excludedTerms) => {
  const { docnames, titles, filenames } = Search._index;
  const excluded = new Set([...excludedTerms].flatMap((word) => [...pointsOfWord(word).keys()]));
  const pages = new Map();
  let total = 0;
  for (const word of searchTerms) {
    const points = pointsOfWord(word);
    if (points.size === 0) continue; // no page has it
    const weight = Math.log(1 + docnames.length / points.size);
    total += weight;
    for (const [page, score] of points) {
      const [sum, share] = pages.get(page) ?? [0, 0];
      pages.set(page, [sum + weight * score, share + weight]);
    }
  }
  return [...pages]
    .filter(([page, [, share]]) => share >= LEAST_SHARE * total && !excluded.has(page))
    .map(([page, [sum]]) => [docnames[page], titles[page], "", null, sum / total, filenames[page], SearchResultKind.text]);
};
