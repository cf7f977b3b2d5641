// The state of the page, which is the fragment of its address: a view and its settings, all as text.
//
// How a view is added:
// 1. In Python, a file in `addons/workbench/views/` has a subclass of `ViewState`: the described settings of the view, and the
//    method `content`, which returns its figures and facts. `VIEWS` in `addons/workbench/view_state.py` gets a line.
//    `dragoman workbench figures` then draws the view's figures, and the property tests cover its state.
// 2. In this folder, `views/NAME.js` exports a class with the interface below, and `views.js` gets a line, and a
//    second one if the view has no sentence. A view that is
//    not in both lists is not in the navigation.
//
//    constructor(root, context)   root: an empty element, of which the view owns everything. context: {store, workspace,
//                                 announce, refresh}: this store, the answer of GET /workspace, and functions that make
//                                 a screen reader say a message, and that request the content again. Look up no ids: two instances may be on one page.
//    static localSettings         a Set of settings that change only how the content is drawn. Any other change requests
//                                 new content.
//    static figures               the names of the figures to request; undefined for all of them
//    static exported              [name, title] of the figures that can be saved
//    static keys                  [keys, meaning] of the view's own keys, for the list that `?` opens
//    missing(state)               what the user has to enter before there is anything to request, or ""
//    show(content, state)         draw new content: {facts, figures}, see content.js
//    update(state)                draw the same content again after a change of local settings
//    figure(content, state)       the name of the figure that is explained (caption, slide, limits)
//    clear()                      remove the drawn content, because the current state has no content
//    close()                      release timers and streams
//
//    The frame (frame.js) requests the content, shows loading, empty, refused and unreachable states, explains the
//    figure, and exports it. Figures are drawn by a module of `drawings/` for each kind of figure. Texts go into the page
//    as text nodes only (dom.js), and tokens into a <bdi>, because of right-to-left scripts.
// 3. A browser test in tests/addons/workbench/page/test_workbench_NAME.py, and a line in docs/how-to/inspecting/workbench.md.

/** Settings that views of a sentence share. They are kept when the view changes. */
const SHARED = ["model", "source", "target", "to"];

export class Store {
  /**
   * address: a Location. onChange: called after each change with the new state, and whether it comes from the address,
   * which may be wrong, and not from a control of the page. hasSentence: whether a view, named by its argument, shows a
   * sentence.
   */
  constructor(address, history, onChange, hasSentence) {
    this.hasSentence = hasSentence;
    this.sentence = {}; // the shared settings of the last view of a sentence
    this.address = address;
    this.history = history;
    this.onChange = onChange;
    this.others = new Map(); // the last settings of the views that are not shown
    this.state = parse(address.hash);
    window.addEventListener("hashchange", () => {
      this.read();
      this.onChange(this.state, true);
    });
  }

  /** Read the state from the address. After a change of the address, the event may not have arrived yet. */
  read() {
    this.state = parse(this.address.hash);
  }

  /** A setting as text, or a default. */
  get(name, otherwise = "") {
    return this.state[name] ?? otherwise;
  }

  /** A setting as a number, or a default. */
  number(name, otherwise) {
    const value = Number(this.state[name] || Number.NaN);
    return Number.isFinite(value) ? value : otherwise;
  }

  /** Change settings. An empty value removes one. isStep: whether the browser's Back button undoes the change. */
  set(changes, isStep = false) {
    const next = { ...this.state };
    for (const [name, value] of Object.entries(changes)) {
      if (value === "" || value === null || value.length === 0) delete next[name];
      else next[name] = Array.isArray(value) ? value : String(value).toWellFormed();
    }
    this.replace(next, isStep);
  }

  /** Show another view, with the settings that it had before, and the sentence of the current one. */
  open(view) {
    this.others.set(this.state.view, this.state);
    if (this.hasSentence(this.state.view)) {
      this.sentence = Object.fromEntries(SHARED.filter((name) => name in this.state).map((name) => [name, this.state[name]]));
    }
    const shared = this.hasSentence(view) ? this.sentence : {};
    const own = Object.entries(this.others.get(view) ?? {}).filter(([name]) => !SHARED.includes(name));
    this.replace({ view, ...shared, ...Object.fromEntries(own) }, true);
  }

  replace(next, isStep) {
    const hash = `#${format(next)}`;
    this.state = next;
    if (hash !== this.address.hash) this.history[isStep ? "pushState" : "replaceState"](null, "", hash);
    this.onChange(next);
  }
}

/** Return the state in a fragment. A setting that occurs several times has a list of values. */
export function parse(hash) {
  const state = Object.create(null);
  for (const [name, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (name in state) state[name] = [state[name], value].flat();
    else state[name] = value;
  }
  return state;
}

/** Return the fragment of a state. leftOut: a set of settings to leave out. */
export function format(state, leftOut = new Set()) {
  const parameters = new URLSearchParams({ view: state.view ?? "" });
  for (const [name, value] of Object.entries(state)) {
    if (name === "view" || leftOut.has(name)) continue;
    for (const each of [value].flat()) parameters.append(name, each);
  }
  return String(parameters);
}
