// Controls that are bound to settings of the store.

import { make, newId } from "./dom.js";

/** Return a labelled menu. options: [value, text] pairs; an empty value removes the setting. also: settings that a choice changes, too. */
export function menu(store, name, label, options, also = {}) {
  const id = newId();
  const select = make("select", { id, class: "choice", onchange: () => store.set({ [name]: select.value, ...also }, true) });
  const box = make("div", { class: "control" }, make("label", { for: id, class: "small muted" }, label), select);
  box.setOptions = (entries) => select.replaceChildren(...entries.map(([value, text]) => make("option", { value }, text)));
  box.show = (value) => {
    select.value = value;
  };
  box.setOptions(options);
  return box;
}

/** Return a group of buttons, of which one is pressed. options: [value, text] pairs; the first one is the default. */
export function choice(store, name, label, options) {
  const buttons = options.map(([value, text], index) =>
    make("button", { type: "button", class: "segment", onclick: () => store.set({ [name]: index ? value : "" }, true) }, text),
  );
  const box = make("div", { class: "control segments", role: "group", "aria-label": label }, ...buttons);
  box.show = (value) => {
    for (const [index, [each]] of options.entries()) buttons[index].setAttribute("aria-pressed", String(each === value));
  };
  return box;
}

/** Return a labelled number field. */
export function number(store, name, label, { min, max, step = 1, otherwise }) {
  const id = newId();
  const field = make("input", { id, type: "number", class: "choice number", min, max, step });
  field.addEventListener("change", () => {
    if (field.validity.valid) store.set({ [name]: field.value === String(otherwise) ? "" : field.value }, true);
  });
  const box = make("div", { class: "control" }, make("label", { for: id, class: "small muted" }, label), field);
  box.show = (value) => {
    if (document.activeElement !== field) field.value = value;
  };
  return box;
}

/** Return a labelled slider over rising numbers. otherwise: the default. The state may have a value between those of the slider. */
export function slider(store, name, label, values, otherwise) {
  const id = newId();
  const field = make("input", { id, type: "range", min: 0, max: values.length - 1, step: 1 });
  const output = make("output", { for: id, class: "small" });
  field.addEventListener("input", () => {
    const value = values[Number(field.value)];
    store.set({ [name]: value === otherwise ? "" : value });
  });
  const box = make("div", { class: "control slider" }, make("label", { for: id, class: "small muted" }, label), make("div", {}, field, output));
  box.show = (value) => {
    const after = values.findIndex((each) => each >= value);
    const index = after < 0 ? values.length - 1 : after;
    field.value = index > 0 && value - values[index - 1] < values[index] - value ? index - 1 : index;
    output.textContent = value.toLocaleString("en");
    field.setAttribute("aria-valuetext", output.textContent);
  };
  return box;
}
