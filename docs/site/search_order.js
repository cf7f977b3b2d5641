// The order of search results: pages that tell how to do something come first, and the history of measurements last.
// The variables are declared with var, because the search declares Scorer once more.
var FOLDERS = [
  [/^(start|how-to)\//, 6],
  [/^(paths|reference|explanation)\//, 3],
  [/^EXPERIMENTS$/, -6],
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
