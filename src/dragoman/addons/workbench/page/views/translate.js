// The translations of a sentence while it is typed, with their scores, and the links between the words.

import { Alignment } from "../../shared/alignment.js";
import { EXAMPLES } from "../../shared/examples.js";
import { direction, tag } from "../../shared/languages.js";
import { SourcePane } from "../../shared/source.js";
import { TranslationPane } from "../../shared/translation.js";
import { number } from "../controls.js";
import { make, newId } from "../dom.js";
import { modelOf } from "../sentence_form.js";

const signed = (value) => value.toFixed(3).replace("-", "−");

export class TranslateView {
  static localSettings = new Set();
  static figures = undefined;
  static exported = [["scores", "scores of the translations"]];
  static keys = [["← →", "in the translation: move by word and highlight the aligned words"], ["↑ ↓", "in the list: choose another translation"]];

  constructor(root, context) {
    this.context = context;
    const { store } = context;
    const [counter, problem] = [newId(), newId()];
    const source = {
      field: make("textarea", { class: "field", rows: 1, autocomplete: "off", placeholder: "Type a sentence", "aria-label": "Sentence to translate", "aria-describedby": `${counter} ${problem}` }),
      mirror: make("div", { class: "words mirror", "aria-hidden": "true" }),
      counter: make("span", { class: "small", id: counter }),
      problem: make("p", { class: "problem", id: problem, hidden: true }),
    };
    this.example = make("button", { type: "button", class: "plain", onclick: () => this.useExample() }, "Try an example");
    source.pane = make(
      "section",
      { class: "pane source", "aria-label": "Sentence" },
      make("div", { class: "scroll" }, make("div", { class: "sheet" }, source.mirror, source.field)),
      make("div", { class: "below" }, source.problem, make("div", { class: "foot" }, make("p", { class: "counter" }, source.counter), this.example)),
    );
    const text = make("div", { class: "words translation", role: "group", "aria-label": "Translation" });
    const targetPane = make("section", { class: "pane target", "aria-label": "Translation" }, make("div", { class: "scroll" }, text));
    root.append(make("div", { class: "desk" }, make("div", { class: "panes" }, source.pane, targetPane)));
    this.source = new SourcePane(
      source,
      () => store.set({ source: this.source.value, target: "", choice: "" }),
      (position) => this.alignment.selectWord(position, "source"),
    );
    this.source.limit = context.workspace.limits.characters;
    this.target = new TranslationPane(
      text,
      (position, isKeyboard) => this.alignment.selectWord(position, "target", isKeyboard),
      () => this.list.querySelector("[aria-pressed=true]")?.focus(),
    );
    this.alignment = new Alignment(this.source, this.target, async () => this.links, context.announce);
    this.beam = number(store, "beam", "Beam size", { min: 1, max: 64, otherwise: 5 });
    this.nbest = number(store, "nbest", "Translations", { min: 1, max: 64, otherwise: 5 });
    this.list = make("ol", { class: "translations" });
    this.list.addEventListener("keydown", (event) => this.onKeydown(event));
    this.results = make(
      "section",
      { class: "results", "aria-label": "Best translations", hidden: true },
      make("h2", { class: "small" }, "Best translations"),
      make("p", { class: "small muted" }, "Choose one: the other views then show it."),
      this.list,
    );
    root.append(make("div", { class: "controls" }, this.beam, this.nbest), this.results);
  }

  missing(state) {
    if (this.source.value !== (state.source ?? "") && document.activeElement !== this.source.field) this.source.value = state.source ?? "";
    const model = modelOf(this.context.workspace, state);
    const [source, target] = model?.languages ?? [null, null];
    this.source.setLanguage(source);
    this.target.element.lang = target ? tag(target) : "";
    this.target.element.dir = target ? direction(target) : "auto";
    this.beam.show(state.beam ?? 5);
    this.nbest.show(state.nbest ?? 5);
    this.example.hidden = Boolean(state.source) || !(source in EXAMPLES);
    this.target.isStale = true;
    if (model && !model.abilities.includes("translate")) return `${model.name} is a ${model.kind}, which does not translate`;
    if (this.source.isTooLong) return "The text is too long";
    return state.source?.trim() ? "" : "Enter a sentence to see its translations";
  }

  show({ facts, figures }, state) {
    const { translations, links } = facts;
    const index = Math.min(Number(state.choice ?? 1), translations.length) - 1;
    const { text } = translations[index];
    const source = this.source.value;
    const sentence = { source, target: text, sourceRange: [0, source.length], targetRange: [0, text.length] };
    this.links = { translations: [{ sentences: [{ source, hypotheses: [{ text }], alignment: links }] }] };
    this.source.show([sentence]);
    this.target.show(text, text ? [sentence] : []);
    this.alignment.open([sentence]);
    const scores = figures.scores.arrays.values.data;
    const [best, worst] = [Math.max(...scores), Math.min(...scores)];
    const focused = this.list.contains(document.activeElement);
    this.list.replaceChildren(...translations.map((each, rank) => this.item(each, rank, rank === index, (scores[rank] - worst) / (best - worst || 1))));
    this.results.hidden = false;
    if (focused) this.list.querySelector("[aria-pressed=true]").focus();
  }

  item({ text, score, log_probability: logProbability, finished }, rank, isChosen, share) {
    const bar = make("span", { class: "score-bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", share.toFixed(3));
    const button = make(
      "button",
      { type: "button", "aria-pressed": String(isChosen), onclick: () => this.choose(rank, text) },
      make("bdi", { class: "hypothesis", lang: this.target.element.lang, dir: this.target.element.dir }, text || "(empty)"),
      make("span", { class: "score small muted" }, `score ${signed(score)} · log-probability ${signed(logProbability)}${finished ? "" : " · unfinished"}`),
      bar,
    );
    return make("li", {}, button);
  }

  choose(rank, text) {
    this.context.store.set({ choice: rank ? rank + 1 : "", target: rank ? text : "" }, true);
    this.context.announce(`Chosen: ${text}`);
  }

  update() {}

  clear() {
    this.results.hidden = true;
    this.target.show("", []);
  }

  figure() {
    return "scores";
  }

  close() {
    this.alignment.close();
  }

  useExample() {
    const model = modelOf(this.context.workspace, this.context.store.state);
    this.source.value = EXAMPLES[model.languages[0]];
    this.context.store.set({ source: this.source.value, target: "", choice: "" }, true);
    this.source.field.focus();
  }

  onKeydown(event) {
    const buttons = [...this.list.querySelectorAll("button")];
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step) return;
    buttons[Math.max(0, Math.min(buttons.length - 1, buttons.indexOf(document.activeElement) + step))]?.focus();
    event.preventDefault();
  }
}
