// The glossary box: lines `term = translation`, stored for each target language.

import { recall, remember } from "./storage.js";

/** Parse a glossary: its terms as the server expects them, and the problems of its lines. */
export function parseGlossary(text) {
  const terms = Object.create(null);
  const problems = [];
  text.split("\n").forEach((line, place) => {
    if (!line.trim() || line.trimStart().startsWith("#")) return;
    const wrong = (message) => problems.push(`Line ${place + 1}: ${message}`);
    const [, term, , given] = line.match(/^([^=]*)(=(.*))?$/s).map((part) => part?.trim());
    const forms = (given ?? "").split("|").map((form) => form.trim());
    if (!term) wrong("a term is missing before =");
    else if (term in terms) wrong(`“${term}” is listed twice`);
    else if (given === undefined) terms[term] = null;
    else if (forms.some((form) => !form)) wrong(`a translation of “${term}” is missing`);
    else terms[term] = forms.length === 1 ? forms[0] : forms;
  });
  return { terms, problems };
}

/** changed: called when the terms have changed. */
export class GlossaryBox {
  constructor(changed) {
    this.terms = {};
    this.changed = changed;
    this.text = document.getElementById("glossary");
    this.text.addEventListener("input", () => {
      this.kept = remember(this.name, this.text.value);
      this.read();
      this.changed();
    });
  }

  /** Show the glossary of a target language. */
  open(code, name) {
    this.name = `glossary.${code}`;
    this.kept = true;
    this.text.value = recall(this.name) ?? "";
    this.text.lang = code;
    document.getElementById("glossary-title").textContent = `Glossary for ${name}`;
    this.read();
  }

  /** The terms for a request; undefined if there are none. */
  get given() {
    return Object.keys(this.terms).length ? this.terms : undefined;
  }

  read() {
    const { terms, problems } = parseGlossary(this.text.value);
    this.terms = terms;
    const count = Object.keys(terms).length;
    document.getElementById("glossary-count").textContent = count ? `${count} ${count === 1 ? "term" : "terms"}` : "";
    this.text.setAttribute("aria-invalid", String(problems.length > 0));
    document.getElementById("glossary-problems").replaceChildren(...problems.slice(0, 5).map(item));
    document.getElementById("glossary-kept").textContent = this.kept
      ? "Stored in this browser, and sent with your texts."
      : "This browser stores nothing: the glossary is lost when you close the page.";
  }
}

function item(problem) {
  const element = document.createElement("li");
  element.textContent = problem;
  return element;
}
