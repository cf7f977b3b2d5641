// The server's languages, with their names and writing directions, and the two language menus.

import { load, store } from "./storage.js";
import { language as pageLanguage, say } from "./texts.js";

export const AUTO = "auto";
const names = new Intl.DisplayNames(pageLanguage, { type: "language", fallback: "none" });
const RIGHT_TO_LEFT = new Set(["Adlm", "Arab", "Hebr", "Mand", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"]);

/** Convert a language code to a value of the `lang` attribute. */
export function tag(code) {
  return code.replaceAll("_", "-");
}

/** Return the writing direction of a language, rtl or ltr. */
export function direction(code) {
  try {
    return RIGHT_TO_LEFT.has(new Intl.Locale(tag(code)).maximize().script) ? "rtl" : "ltr";
  } catch {
    return "ltr";
  }
}

export class Languages {
  /** parts: the elements sourceMenu, targetMenu and detectedLabel. onChange: called when the user selects a language. */
  constructor({ sourceMenu, targetMenu, detectedLabel }, onChange) {
    Object.assign(this, { sourceMenu, targetMenu, detectedLabel });
    this.onChange = onChange;
    this.sources = new Map();
    this.detected = null;
    this.sourceMenu.addEventListener("change", () => this.onSelect());
    this.targetMenu.addEventListener("change", () => this.onSelect());
  }

  /** Fill the menus. languages: the response of the /languages route. */
  open(languages) {
    this.sources = new Map(languages.map(({ code, name, targets }) => [code, { name, targets }]));
    const menu = [option(AUTO, say("detectLanguage")), ...languages.map(({ code }) => option(code, this.name(code)))];
    this.sourceMenu.replaceChildren(...menu);
    this.select(load("source") ?? AUTO, load("target") ?? "");
  }

  get source() {
    return this.sourceMenu.value;
  }

  get target() {
    return this.targetMenu.value;
  }

  /** The selected or detected source language, or null if it is unknown. */
  get knownSource() {
    return this.source === AUTO ? this.detected : this.source;
  }

  get canSwap() {
    return this.knownSource !== null && this.targets(this.target).includes(this.knownSource);
  }

  targets(source) {
    if (source !== AUTO) return this.sources.get(source)?.targets ?? [];
    return [...new Set([...this.sources.values()].flatMap(({ targets }) => targets))];
  }

  /** Return the name of a language in the language of the page, or, if the browser knows none, the server's name. */
  name(code) {
    const serverName = this.sources.get(code)?.name ?? code;
    try {
      return names.of(tag(code)) ?? serverName;
    } catch {
      return serverName;
    }
  }

  /** Select two languages. Falls back to language detection and to the default target if they are not available. */
  select(source, target) {
    this.sourceMenu.value = this.sources.has(source) ? source : AUTO;
    const targets = this.targets(this.source);
    this.targetMenu.replaceChildren(...targets.map((code) => option(code, this.name(code))));
    this.targetMenu.value = targets.includes(target) ? target : this.defaultTarget(targets);
    this.showDetected(null);
    store("source", this.source);
    store("target", this.target);
  }

  swap() {
    this.select(this.target, this.knownSource);
  }

  /** Show a detected language, {language, confidence}, with a confidence from 0 to 100. null hides it. */
  showDetected(detection) {
    const isKnown = detection !== null && detection.confidence > 0;
    this.detected = isKnown ? detection.language : null;
    this.detectedLabel.hidden = detection === null || this.source !== AUTO;
    if (detection === null) return;
    const name = this.name(detection.language);
    const percent = Math.round(detection.confidence);
    const key = percent < 100 ? "detected" : "detectedCertain"; // detection is never certain
    this.detectedLabel.textContent = isKnown ? say(key, { language: name, percent }) : say("languageUnknown");
  }

  onSelect() {
    this.select(this.source, this.target);
    this.onChange();
  }

  /** Return the default target: the browser's language, unless that is the source language. */
  defaultTarget(targets) {
    const preferred = navigator.language.split("-")[0];
    return targets.find((code) => code.split("-")[0] === preferred && code !== this.source) ?? targets[0] ?? "";
  }
}

function option(value, text) {
  const element = document.createElement("option");
  element.value = value;
  element.textContent = text.charAt(0).toLocaleUpperCase(pageLanguage) + text.slice(1);
  return element;
}
