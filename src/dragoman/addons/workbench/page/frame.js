// The frame around a view: it requests the view's content, shows why it is missing, explains the figure and exports it.

import { RequestScheduler } from "../shared/scheduler.js";
import { StateLine, describe } from "../shared/state.js";
import { fetchContent, fetchFile } from "./content.js";
import { make } from "./dom.js";
import { format } from "./store.js";
import { VIEWS, isView, loadView } from "./views.js";

/** The formats of exported figures. */
const FORMATS = ["svg", "png", "json", "csv"];

/** The settings that the user types: a request waits until the typing pauses. */
const TYPED = ["source", "target", "reference"];

export class Frame {
  /** root: the element of the view and its frame. view: the name of the view. context: see store.js. */
  constructor(root, view, context) {
    this.view = view;
    this.context = context;
    this.stateText = make("span", { class: "state-text" });
    this.retry = make("button", { type: "button", class: "plain", onclick: () => (this.drawing ? this.requests : this.loading).runNow() });
    this.line = make("p", { class: "state" }, make("span", { class: "sign", "aria-hidden": "true" }), this.stateText, this.retry);
    this.state = new StateLine({ line: this.line, text: this.stateText, retry: this.retry });
    this.state.show("idle");
    this.explanation = make("div", { class: "explanation", hidden: true });
    this.figureMenu = make("select", { class: "choice", "aria-label": "Figure to save" });
    this.exports = make("div", { class: "exports", role: "group", "aria-label": "Save a figure", hidden: true });
    this.exports.append(
      make("span", { class: "small muted" }, "Save"),
      this.figureMenu,
      ...FORMATS.map((suffix) => make("button", { type: "button", class: "plain", onclick: () => this.save(suffix) }, suffix.toUpperCase())),
    );
    this.body = make("div", { class: "view" });
    root.replaceChildren(this.body, this.line, make("div", { class: "below-view" }, this.explanation, this.exports));
    this.requests = new RequestScheduler(
      (signal) => this.request(signal),
      (kind, details) => this.onState(kind, details),
    );
    if (!isView(view)) {
      const known = Object.keys(context.workspace.views).join(", ");
      this.state.show("failed", `There is no view “${view}”. The views are: ${known}`);
      return;
    }
    this.loading = new RequestScheduler(
      () => loadView(view),
      (kind, details) => this.onState(kind, details),
    );
    if (view in VIEWS) this.start();
    else this.loading.runNow();
  }

  start() {
    this.drawing = new VIEWS[this.view](this.body, { ...this.context, refresh: () => this.refresh() });
  }

  /** Show a state of the store. isFromAddress: whether the server has to check all settings. */
  show(state, isFromAddress = false) {
    if (this.drawing === undefined) {
      this.wanted = state; // shown as soon as the view is loaded
      return;
    }
    const { localSettings, figures } = VIEWS[this.view];
    const missing = this.drawing.missing(state);
    const needed = missing ? null : format(state, localSettings);
    const isTyping = !isFromAddress && this.shown !== undefined && TYPED.some((name) => this.shown[name] !== state[name]);
    this.shown = state;
    if (needed !== this.fragment || isFromAddress) {
      this.fragment = needed;
      this.names = figures;
      if (missing) {
        this.requests.stop();
        this.content = undefined;
        this.hideFigure();
        this.state.show("idle", missing);
      } else if (isTyping) this.requests.schedule();
      else this.requests.runNow();
      return;
    }
    if (this.content === undefined) return;
    this.drawing.update(state);
    this.explain();
  }

  /** Request the content again, because the server has something new. */
  refresh() {
    if (this.fragment) this.requests.runNow();
  }

  close() {
    this.requests.stop();
    this.loading?.stop();
    this.drawing?.close();
  }

  request(signal) {
    return this.fragment ? fetchContent(format(this.shown), this.names, signal) : null;
  }

  /** Show a state of `RequestScheduler`. */
  onState(kind, { response, error, seconds }) {
    this.body.setAttribute("aria-busy", String(kind === "translating"));
    if (kind === "done" && this.drawing === undefined) {
      this.state.show("idle");
      this.start();
      this.show(this.wanted, true);
    } else if (kind === "done") {
      this.content = response;
      this.state.show("idle");
      this.drawing.show(response, this.shown);
      this.explain();
    } else if (kind === "translating") {
      this.state.show(kind, "Computing …");
    } else if (kind === "waiting") {
      if (this.state.kind !== "waiting") this.context.announce(describe(error));
      this.state.show(kind, `${describe(error)}: is dragoman workbench running? Trying again in ${seconds} s`, "Try now");
    } else if (kind === "failed") {
      this.content = undefined;
      this.hideFigure();
      if (error.status === undefined) console.error(error);
      this.state.show(kind, describe(error), error.status === 400 ? "" : "Try again");
      this.context.announce(describe(error));
    }
  }

  hideFigure() {
    this.drawing?.clear();
    this.explanation.hidden = true;
    this.exports.hidden = true;
  }

  /** Show what the figure is, where the lecture has it, and what it does not show. */
  explain() {
    const name = this.drawing.figure(this.content, this.shown);
    const { caption, slide, limits } = this.content.figures[name] ?? {};
    this.explanation.hidden = !caption;
    this.exports.hidden = !caption;
    this.listFigures(name);
    this.explanation.replaceChildren(
      make("h2", { class: "small" }, "What am I looking at?"),
      make("p", {}, [caption, limits].filter(Boolean).join(" ")),
      make("p", { class: "small muted", hidden: !slide }, `Lecture: ${slide}`),
    );
  }

  /**
   * List the figures that can be saved: all, or those of the content if the view has requested all. explained: the figure
   * that is chosen when the view changes to it.
   */
  listFigures(explained) {
    const { exported, figures } = VIEWS[this.view];
    const listed = exported.filter(([name]) => figures !== undefined || name in this.content.figures);
    const chosen = explained === this.explained ? this.figureMenu.value : explained;
    this.explained = explained;
    this.figureMenu.replaceChildren(...listed.map(([name, title]) => make("option", { value: name }, title)));
    this.figureMenu.value = listed.some(([name]) => name === chosen) ? chosen : listed[0][0];
    this.figureMenu.hidden = listed.length < 2;
  }

  async save(suffix) {
    const figure = this.figureMenu.value;
    this.state.show("translating", `Saving ${suffix.toUpperCase()} …`);
    try {
      const bytes = await fetchFile(format(this.shown), figure, suffix);
      const link = make("a", { href: URL.createObjectURL(new Blob([bytes])), download: `${this.view}-${figure}.${suffix}` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      this.state.show("idle");
    } catch (error) {
      this.state.show("failed", `Not saved: ${describe(error)}`);
    }
    this.context.announce(this.stateText.textContent || `Saved as ${suffix.toUpperCase()}`);
  }
}
