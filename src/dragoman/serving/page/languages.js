// The server's languages: their names, their writing direction, and the two menus.

import { recall, remember } from "./storage.js";

export const AUTO = "auto";
const RIGHT_TO_LEFT = new Set(["Adlm", "Arab", "Hebr", "Mand", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"]);

/** Return a language code as a value of the attribute `lang`. */
export function tag(code) {
  return code.replaceAll("_", "-");
}

/** Return rtl or ltr, by the script of a language. */
export function direction(code) {
  try {
    return RIGHT_TO_LEFT.has(new Intl.Locale(tag(code)).maximize().script) ? "rtl" : "ltr";
  } catch {
    return "ltr";
  }
}

/** The directions and their menus. changed: called when the user has chosen a language. */
export class Languages {
  constructor(changed) {
    this.changed = changed;
    this.sources = new Map();
    this.detected = null;
    this.sourceMenu = document.getElementById("source-language");
    this.targetMenu = document.getElementById("target-language");
    this.shown = document.getElementById("detected");
    this.sourceMenu.addEventListener("change", () => this.chosen());
    this.targetMenu.addEventListener("change", () => this.chosen());
  }

  /** Fill the menus. served: the answer of the route /languages. */
  open(served) {
    this.sources = new Map(served.map(({ code, name, targets }) => [code, { name, targets }]));
    const menu = [option(AUTO, "Detect language"), ...served.map(({ code, name }) => option(code, name))];
    this.sourceMenu.replaceChildren(...menu);
    this.select(recall("source") ?? AUTO, recall("target") ?? "");
  }

  get source() {
    return this.sourceMenu.value;
  }

  get target() {
    return this.targetMenu.value;
  }

  /** The source language, chosen or detected; null if it is unknown. */
  get known() {
    return this.source === AUTO ? this.detected : this.source;
  }

  get canSwap() {
    return this.known !== null && this.targets(this.target).includes(this.known);
  }

  targets(source) {
    if (source !== AUTO) return this.sources.get(source)?.targets ?? [];
    return [...new Set([...this.sources.values()].flatMap(({ targets }) => targets))];
  }

  name(code) {
    try {
      return this.sources.get(code)?.name ?? new Intl.DisplayNames("en", { type: "language" }).of(tag(code));
    } catch {
      return code;
    }
  }

  /** Select these languages if the server has them. */
  select(source, target) {
    this.sourceMenu.value = this.sources.has(source) ? source : AUTO;
    const targets = this.targets(this.source);
    this.targetMenu.replaceChildren(...targets.map((code) => option(code, this.name(code))));
    this.targetMenu.value = targets.includes(target) ? target : this.usual(targets);
    this.showDetected(null);
    remember("source", this.source);
    remember("target", this.target);
  }

  swap() {
    this.select(this.target, this.known);
  }

  /** Show the detected language, {language, confidence from 0 to 100}, or null. */
  showDetected(found) {
    const sure = found !== null && found.confidence > 0;
    this.detected = sure ? found.language : null;
    this.shown.hidden = found === null || this.source !== AUTO;
    if (found === null) return;
    const name = this.name(found.language);
    const percent = Math.round(found.confidence);
    const howSure = percent < 100 ? `${percent}% sure` : "over 99% sure"; // detection is never certain
    this.shown.textContent = sure ? `${name}, ${howSure}` : `unknown, assumed to be ${name}`;
  }

  chosen() {
    this.select(this.source, this.target);
    this.changed();
  }

  /** Return the default target: the browser's language, unless that is the source language. */
  usual(targets) {
    const own = navigator.language.split("-")[0];
    return targets.find((code) => code.split("-")[0] === own && code !== this.source) ?? targets[0] ?? "";
  }
}

function option(value, text) {
  const element = document.createElement("option");
  element.value = value;
  element.textContent = text;
  return element;
}
