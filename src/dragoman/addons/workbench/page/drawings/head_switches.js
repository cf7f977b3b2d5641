// Switches of all attention heads, by kind and layer. One tab stop; arrow keys move between them.

import { make } from "../dom.js";
import { connectArrows, setTabStop } from "../roving.js";

const KINDS = {
  "encoder.self_attention": "Encoder, self-attention",
  "decoder.self_attention": "Decoder, self-attention",
  "decoder.cross_attention": "Decoder, attention over the source",
};

export class HeadSwitches {
  /** root: the element to fill. onChange: called with the names of the heads that are off. */
  constructor(root, onChange) {
    this.onChange = onChange;
    this.element = make("div", { class: "head-switches", role: "group", "aria-label": "Attention heads" });
    root.append(this.element);
    this.rows = [];
    connectArrows(this.element, () => this.rows);
  }

  /** Show the heads of layers, {kind, layer, heads}. off: the names of those that are off. */
  show(layers, off) {
    this.off = new Set(off);
    const names = layers.map(({ kind, layer, heads }) => `${kind}:${layer}:${heads}`).join();
    if (names !== this.names) this.build(layers);
    this.names = names;
    for (const button of this.rows.flat()) button.setAttribute("aria-checked", String(!this.off.has(button.dataset.head)));
  }

  build(layers) {
    this.rows = [];
    const groups = Map.groupBy(layers, ({ kind }) => kind);
    const sections = [...groups].map(([kind, group]) => {
      const rows = group.map(({ layer, heads }) => {
        const buttons = Array.from({ length: heads }, (_, index) => this.button(kind, layer, index + 1));
        this.rows.push(buttons);
        return make("div", { class: "switch-row" }, make("span", { class: "small muted switch-label", "aria-hidden": "true" }, `Layer ${layer}`), ...buttons);
      });
      return make("div", { class: "switch-kind", role: "group", "aria-label": KINDS[kind] ?? kind }, make("p", { class: "small" }, KINDS[kind] ?? kind), ...rows);
    });
    this.element.replaceChildren(...sections);
    setTabStop(this.rows, this.rows[0]?.[0]);
  }

  button(kind, layer, number) {
    const name = `${kind}:${layer}:${number}`;
    const button = make("button", { type: "button", role: "switch", class: "head-switch", "aria-label": `layer ${layer}, head ${number}`, "data-head": name }, String(number));
    button.addEventListener("click", () => {
      if (this.off.has(name)) this.off.delete(name);
      else this.off.add(name);
      setTabStop(this.rows, button);
      this.onChange([...this.off].sort());
    });
    return button;
  }
}
