// The translations of a sentence by two models or checkpoints, and a file of sentence pairs to step through.

import { direction, tag } from "../../shared/languages.js";
import { make } from "../dom.js";
import { ComparedWords } from "../drawings/compared_words.js";
import { ModelChoice } from "../model_choice.js";
import { SentenceForm, modelOf, runOf } from "../sentence_form.js";
import { SentencePairs } from "../sentence_pairs.js";

const signed = (value) => value.toFixed(3).replace("-", "−");

export class CompareView {
  static localSettings = new Set();
  static figures = undefined;
  static exported = [["comparison", "translations"], ["differences", "differences in the file"]];
  static keys = [["← →", "in a slider: to another checkpoint; in the words: to a linked word of the next column"], ["↑ ↓", "in the words: to the next word; in the sentences: to another one, Enter shows it"], ["Home End", "first and last checkpoint, or word of the column"]];

  constructor(root, context) {
    const { store, workspace } = context;
    this.context = context;
    this.form = new SentenceForm(root, context, { name: "reference", label: "Reference", placeholder: "optional: a right translation" });
    this.sides = ["model", "other"].map((name, index) => new ModelChoice(["First model", "Second model"][index], workspace, (model, isDragged) => store.set({ [name]: model, ...(isDragged ? { order: "" } : {}) }, !isDragged)));
    const swap = make("button", { type: "button", class: "plain", onclick: () => this.swap() }, "Swap");
    root.append(make("div", { class: "controls" }, this.sides[0].element, swap, this.sides[1].element));
    this.pairs = new SentencePairs(root, context);
    this.texts = this.sides.map(() => make("bdi", { class: "output" }));
    this.names = this.sides.map(() => make("span", { class: "output-name small muted" }));
    this.summary = make("p", { class: "change", role: "status" });
    this.differences = make("table");
    this.scores = make("table");
    this.absent = make("ul", { class: "absent small muted" });
    const words = make("section", { class: "single", "aria-label": "Words and links" }, make("h2", { class: "head-title" }, "Words and links"), this.absent);
    this.differencesBox = make("div", {}, make("h2", { class: "head-title" }, "Differences"), make("div", { class: "table-scroll", role: "region", tabindex: "0", "aria-label": "Differences" }, this.differences));
    const numbers = make(
      "section",
      { class: "single compared-tables", "aria-label": "Scores" },
      make("h2", { class: "head-title" }, "Scores"),
      make("div", { class: "table-scroll", role: "region", tabindex: "0", "aria-label": "Scores of both models" }, this.scores),
      this.differencesBox,
    );
    this.content = make(
      "div",
      { hidden: true },
      make("section", { class: "single outputs", "aria-label": "Translations" }, ...this.texts.map((text, index) => make("p", {}, this.names[index], text)), this.summary),
      make("div", { class: "columns" }, words, numbers),
    );
    root.append(this.content);
    this.words = new ComparedWords(words, context.announce);
    this.missing(store.state);
  }

  missing(state) {
    this.form.show(state);
    this.pairs.update(state);
    const { models, checkpoints } = this.context.workspace;
    const started = Object.keys(checkpoints).find((name) => checkpoints[name].length);
    if (!models.length && !started) return "No model is open. Start the workbench with the folders of models or runs";
    const first = state.model || models[0]?.name || this.sides[0].latest(started);
    const other = state.other || (models.find(({ name }) => name !== runOf(first))?.name ?? first);
    this.sides[0].show(first);
    this.sides[1].show(other);
    for (const model of [first, other].map((name) => modelOf(this.context.workspace, { model: name }))) {
      if (model && !model.abilities.includes("translate")) return `${model.name} is a ${model.kind}, which does not translate`;
    }
    return state.source?.trim() ? "" : "Enter a sentence to compare its translations by two models or checkpoints";
  }

  show({ facts, figures }, state) {
    this.facts = facts;
    this.content.hidden = false;
    const figure = figures.comparison;
    const [, target] = modelOf(this.context.workspace, { model: facts.sides[0].name })?.languages ?? [null, null];
    const places = figure.arrays.differences.data;
    const differences = Array.from({ length: places.length / 4 }, (_, row) => [...places.subarray(4 * row, 4 * row + 4)]);
    for (const [index, side] of facts.sides.entries()) {
      this.sides[index].show(side.name, side.steps);
      this.names[index].replaceChildren(make("bdi", {}, figure.names[index]), side.finished ? "" : " (unfinished)");
      this.texts[index].lang = target ? tag(target) : "";
      this.texts[index].dir = target ? direction(target) : "auto";
      this.texts[index].replaceChildren(...marked(figure.translations[index], differences.map((each) => each.slice(2 * index, 2 * index + 2))));
    }
    this.summarise(facts.sides, differences.length);
    this.showScores(figure);
    this.showDifferences(figure, differences);
    this.absent.replaceChildren(...facts.absent.map((line) => make("li", {}, `No links: ${line}`)));
    this.words.show(figure);
    this.pairs.rank(facts.order, figures.differences, state);
  }

  summarise([first, second], count) {
    if (first.name === second.name) this.summary.textContent = "Both sides are the same model. Choose another model or checkpoint; dragoman workbench opens several folders.";
    else if (!count) this.summary.textContent = "Both translations are the same.";
    else this.summary.textContent = `The translations differ in ${count} ${count === 1 ? "place" : "places"}.`;
  }

  showScores({ names, metrics, arrays }) {
    const values = arrays.scores.data;
    const rows = metrics.map((metric, row) => make("tr", {}, make("th", { scope: "row" }, metric), ...[0, 1].map((side) => make("td", {}, signed(values[2 * row + side])))));
    this.scores.replaceChildren(heads(["", ...names]), make("tbody", {}, ...rows));
  }

  showDifferences({ names, translations }, differences) {
    this.differencesBox.hidden = !differences.length;
    const text = (side, start, end) => translations[side].slice(start, end).join(" ") || "–";
    const rows = differences.map(([start, end, otherStart, otherEnd]) => make("tr", {}, ...[text(0, start, end), text(1, otherStart, otherEnd)].map((words) => make("td", {}, make("bdi", {}, words)))));
    this.differences.replaceChildren(heads(names), make("tbody", {}, ...rows));
  }

  swap() {
    const [first, second] = this.sides.map(({ name }) => name);
    this.context.store.set({ model: second, other: first }, true);
    this.context.announce(`First model: ${second}`);
  }

  update() {}

  clear() {
    this.content.hidden = true;
    this.pairs.clear();
  }

  figure() {
    return "comparison";
  }

  close() {}
}

function heads(names) {
  return make("thead", {}, make("tr", {}, ...names.map((name) => (name ? make("th", { scope: "col" }, make("bdi", {}, name)) : make("td")))));
}

/** Return words as nodes, with marks around ranges [start, end] of them. */
function marked(words, ranges) {
  const nodes = [];
  let place = 0;
  for (const [start, end] of ranges.filter(([from, to]) => from < to)) {
    if (place < start) nodes.push(`${words.slice(place, start).join(" ")} `);
    nodes.push(make("mark", { class: "difference" }, words.slice(start, end).join(" ")), " ");
    place = end;
  }
  nodes.push(words.slice(place).join(" "));
  return words.length ? nodes : ["(empty)"];
}
