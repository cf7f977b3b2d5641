// The glossary box, with one line `term = translation` per term and one stored glossary per target language.

import { load, store } from "./storage.js";
import { say } from "./texts.js";

/** Parse a glossary. Returns the terms in the server's format, and an error message for each invalid line. */
export function parseGlossary(text) {
  const terms = Object.create(null);
  const problems = [];
  text.split("\n").forEach((line, index) => {
    if (!line.trim() || line.trimStart().startsWith("#")) return;
    const report = (problem, values) => problems.push(say("glossaryLine", { line: index + 1, problem: say(problem, values) }));
    const [, term, , translation] = line.match(/^([^=]*)(=(.*))?$/s).map((part) => part?.trim());
    const forms = (translation ?? "").split("|").map((form) => form.trim());
    if (!term) report("glossaryNoTerm");
    else if (term in terms) report("glossaryTwice", { term });
    else if (translation === undefined) terms[term] = null;
    else if (forms.some((form) => !form)) report("glossaryNoTranslation", { term });
    else terms[term] = forms.length === 1 ? forms[0] : forms;
  });
  return { terms, problems };
}

export class GlossaryBox {
  /** parts: the elements text, title, count, problems and storage. onChange: called when the user changes the glossary. */
  constructor({ text, title, count, problems, storage }, onChange) {
    Object.assign(this, { text, title, count, problems, storage });
    this.terms = {};
    this.onChange = onChange;
    this.text.addEventListener("input", () => {
      this.isStored = store(this.name, this.text.value);
      this.parse();
      this.onChange();
    });
  }

  /** Show the glossary of a target language. */
  open(code, name) {
    this.name = `glossary.${code}`;
    this.isStored = true;
    this.text.value = load(this.name) ?? "";
    this.text.lang = code;
    this.title.textContent = say("glossaryFor", { language: name });
    this.parse();
  }

  /** The `glossary` field of a request, or undefined if there are no terms. */
  get field() {
    return Object.keys(this.terms).length ? this.terms : undefined;
  }

  parse() {
    const { terms, problems } = parseGlossary(this.text.value);
    this.terms = terms;
    const count = Object.keys(terms).length;
    this.count.textContent = count ? say("glossaryTerms", { count }) : "";
    this.text.setAttribute("aria-invalid", String(problems.length > 0));
    this.problems.replaceChildren(...problems.slice(0, 5).map(item));
    this.storage.textContent = say(this.isStored ? "glossaryStored" : "glossaryNotStored");
  }
}

function item(problem) {
  const element = document.createElement("li");
  element.textContent = problem;
  return element;
}
