// The glossary box: lines `term = translation`, kept for each language that is translated into.

import { recall, remember } from "./storage.js";

/** Its terms as the server takes them, and what is wrong, line by line. */
export function parsed(text) {
  const terms = Object.create(null);
  const problems = [];
  text.split("\n").forEach((line, place) => {
    if (!line.trim() || line.trimStart().startsWith("#")) return;
    const wrong = (message) => problems.push(`Line ${place + 1}: ${message}`);
    const [, term, , given] = line.match(/^([^=]*)(=(.*))?$/s).map((part) => part?.trim());
    const forms = (given ?? "").split("|").map((form) => form.trim());
    if (!term) wrong("a term is missing before =");
    else if (term in terms) wrong(`“${term}” is there twice`);
    else if (given === undefined) terms[term] = null;
    else if (forms.some((form) => !form)) wrong(`a translation of “${term}” is missing`);
    else terms[term] = forms.length === 1 ? forms[0] : forms;
  });
  return { terms, problems };
}

/** The box. changed: is called when the terms are others than before. */
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

  /** Show the one for a language. */
  turnTo(code, name) {
    this.name = `glossary.${code}`;
    this.kept = true;
    this.text.value = recall(this.name) ?? "";
    this.text.lang = code;
    document.getElementById("glossary-title").textContent = `Glossary for ${name}`;
    this.read();
  }

  /** For a request; undefined where it is empty. */
  get given() {
    return Object.keys(this.terms).length ? this.terms : undefined;
  }

  read() {
    const { terms, problems } = parsed(this.text.value);
    this.terms = terms;
    const count = Object.keys(terms).length;
    document.getElementById("glossary-count").textContent = count ? `${count} ${count === 1 ? "term" : "terms"}` : "";
    this.text.setAttribute("aria-invalid", String(problems.length > 0));
    document.getElementById("glossary-problems").replaceChildren(...problems.slice(0, 5).map(item));
    document.getElementById("glossary-kept").textContent = this.kept
      ? "Kept in this browser, and sent along with your texts."
      : "This browser keeps nothing: the glossary is gone when you leave the page.";
  }
}

function item(problem) {
  const element = document.createElement("li");
  element.textContent = problem;
  return element;
}
