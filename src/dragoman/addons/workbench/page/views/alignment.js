// The words that a model links by attention and by gradients, beside word aligners and annotated links.

import { make, newId } from "../dom.js";
import { Confusion } from "../drawings/confusion.js";
import { LinkGrid, pairs } from "../drawings/link_grid.js";
import { LinkLayers } from "../drawings/link_layers.js";
import { SentenceForm, modelOf } from "../sentence_form.js";

/** The value of the annotated links that stands for those of the corpus of `dragoman demo`. */
const DEMO = "demo";
/** The annotations of a cell, in the order in which Enter changes them. */
const ANNOTATIONS = [["none", "Not linked"], ["sure", "Sure"], ["possible", "Possible"]];

export class AlignmentView {
  static localSettings = new Set(["off"]);
  static figures = undefined;
  static exported = [["links", "links"], ["confusion", "agreement with the annotation"]];
  static keys = [["← → ↑ ↓", "in the links: move to another cell"], ["Home End", "first and last word of the translation"], ["Enter", "in the links: annotate the cell as sure, possible, or not linked"]];

  constructor(root, context) {
    const { store, workspace } = context;
    this.context = context;
    this.form = new SentenceForm(root, context);
    const id = newId();
    this.gold = make("textarea", { id, rows: 1, class: "line", autocomplete: "off", spellcheck: "false", placeholder: "such as 0-0 1-2 2?3; ? is a possible link", onchange: () => this.annotate(this.gold.value.trim()) });
    this.gold.addEventListener("keydown", (event) => event.key === "Enter" && this.enterGold(event));
    this.remove = make("button", { type: "button", class: "plain", onclick: () => store.set({ gold: "" }, true) }, "Remove");
    const demo = make("button", { type: "button", class: "plain", onclick: () => store.set({ gold: DEMO, target: "" }, true) }, "Use the links of the demo");
    this.others = make("fieldset", { class: "runs" });
    root.append(
      make(
        "div",
        { class: "controls" },
        make("div", { class: "labelled gold-links" }, make("label", { for: id, class: "small muted" }, "Annotated links (optional), words numbered from 0"), this.gold, make("div", { class: "buttons" }, demo, this.remove)),
        this.others,
      ),
    );
    const grid = make("section", { class: "single", "aria-label": "Links" });
    const layers = make("section", { class: "single", "aria-label": "Layers" }, make("h2", { class: "head-title" }, "Layers"));
    this.agreement = make("section", { class: "single", "aria-label": "Agreement", hidden: true }, make("h2", { class: "head-title" }, "Agreement with the annotated links"));
    this.absent = make("ul", { class: "absent small muted" });
    this.content = make("div", { class: "attention", hidden: true }, make("div", { class: "columns" }, grid, make("div", { class: "stack" }, layers, this.agreement)), this.absent);
    root.append(this.content);
    this.links = new LinkGrid(grid, context.announce, (cell) => this.showAnnotation(cell), (cell) => this.cycle(cell));
    this.buttons = ANNOTATIONS.map(([name, title]) => make("button", { type: "button", class: "segment", onclick: () => this.annotateCell(this.links.position, name) }, title));
    this.annotation = make("div", { class: "annotation", role: "group", "aria-label": "Annotation of the selected cell", hidden: true }, make("span", { class: "small muted" }, "Annotate"), make("div", { class: "segments" }, ...this.buttons));
    grid.append(this.annotation, this.links.table.element);
    this.layers = new LinkLayers(layers, (off) => store.set({ off }, true));
    this.confusion = new Confusion(this.agreement, "Links by their agreement with the annotated links");
    this.form.show(store.state);
  }

  missing(state) {
    this.form.show(state);
    const { workspace } = this.context;
    const model = modelOf(workspace, state);
    this.showOthers(model, [state.others ?? []].flat());
    if (document.activeElement !== this.gold) this.gold.value = state.gold ?? "";
    this.remove.hidden = !state.gold;
    if (model && !model.abilities.includes("translate")) return `${model.name} is a ${model.kind}, which has no translations to align`;
    if (!state.source?.trim()) return "Enter a sentence to see which of its words the model links to those of the translation";
    if (state.gold && state.gold.trim() !== DEMO && !state.target) return "The annotated links belong to a translation: enter it, or remove the links";
    return "";
  }

  show({ facts, figures }, state) {
    this.facts = facts;
    this.drawn = figures.links;
    this.content.hidden = false;
    this.form.target.field.placeholder = state.target ? "empty: the model's own translation" : facts.target;
    this.absent.replaceChildren(...facts.absent.map((line) => make("li", {}, `No links: ${line}`)));
    this.layers.show(figures.links, layersOff(state));
    this.agreement.hidden = figures.confusion === undefined;
    if (figures.confusion) this.confusion.show(figures.confusion);
    this.links.show(figures.links, layersOff(state));
  }

  update(state) {
    this.form.show(state);
    this.layers.update(layersOff(state));
    this.links.update(layersOff(state));
  }

  /** List the word aligners, and the other translation models, whose links can be shown, too. */
  showOthers(model, chosen) {
    const { models, aligners } = this.context.workspace;
    const listed = [
      ...aligners.map((name) => [name, name]),
      ...models.filter((each) => each !== model && each.abilities.includes("translate")).map(({ name }) => [name, `attention of ${name}`]),
    ];
    this.others.hidden = !listed.length;
    const names = JSON.stringify(listed);
    if (names !== this.listed) {
      this.listed = names;
      this.boxes = listed.map(([name]) => make("input", { type: "checkbox", value: name, onchange: () => this.context.store.set({ others: this.boxes.filter(({ checked }) => checked).map(({ value }) => value) }, true) }));
      this.others.replaceChildren(make("legend", { class: "small muted" }, "Also show"), ...listed.map(([, title], index) => make("label", { class: "check" }, this.boxes[index], make("bdi", {}, title))));
    }
    for (const box of this.boxes) box.checked = chosen.includes(box.value);
  }

  /** Enter completes the annotated links, which have one line. */
  enterGold(event) {
    event.preventDefault();
    this.annotate(this.gold.value.trim());
  }

  /** Replace the annotated links, which belong to the translation that is shown. */
  annotate(gold) {
    const { store } = this.context;
    const target = gold && gold !== DEMO ? store.get("target") || this.facts?.target || "" : store.get("target");
    store.set({ gold, target }, true);
  }

  showAnnotation(cell) {
    this.annotation.hidden = !cell;
    if (!cell) return;
    const current = this.links.annotation(cell.row, cell.column);
    ANNOTATIONS.forEach(([name], index) => this.buttons[index].setAttribute("aria-pressed", String(name === current)));
  }

  /** Annotate a cell as sure, possible or none. The other annotated links stay as they are. */
  annotateCell({ row, column }, annotation) {
    const { arrays } = this.drawn;
    const links = new Map((arrays.sure ? pairs(arrays.possible) : []).map(([i, j]) => [`${i},${j}`, this.links.annotation(i, j)]));
    links.set(`${row},${column}`, annotation);
    const marked = [...links].filter(([, each]) => each !== "none").map(([link, each]) => [...link.split(",").map(Number), each]);
    marked.sort(([i, j], [k, l]) => i - k || j - l);
    this.annotate(marked.map(([i, j, each]) => `${i}${each === "sure" ? "-" : "?"}${j}`).join(" "));
    this.context.announce(ANNOTATIONS.find(([name]) => name === annotation)[1]);
  }

  cycle(cell) {
    const current = ANNOTATIONS.findIndex(([name]) => name === this.links.annotation(cell.row, cell.column));
    this.annotateCell(cell, ANNOTATIONS[(current + 1) % ANNOTATIONS.length][0]);
  }

  clear() {
    this.content.hidden = true;
  }

  figure() {
    return "links";
  }

  close() {
    this.links.close();
  }
}

/** Return the names of the layers that a state does not show. */
function layersOff(state) {
  return [state.off ?? []].flat();
}
