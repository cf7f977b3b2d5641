// The texts of the page in the language of the browser. Each language is a file in texts/, all with the same keys.

const root = document.documentElement;
/** The languages of texts/; a page that does not list them is in English. */
const available = (root.dataset.languages ?? "en").split(" ");

/** The language of the page. */
export const language = navigator.languages.map(nameOfTexts).find((name) => available.includes(name)) ?? "en";
const response = await fetch(new URL(`texts/${language}.json`, import.meta.url));
const texts = await response.json();
const plurals = new Intl.PluralRules(language);
const isRightToLeft = language === "ar";

/** Return the name of the texts in a language. Taiwan, Hong Kong and Macau write Chinese in the traditional script. */
function nameOfTexts(code) {
  return /^zh(?!.*-hans).*-(hant|tw|hk|mo)\b/i.test(code) ? "zh-Hant" : code.split("-")[0];
}

/** Format a number as the language writes it. fractionDigits: the number of digits after the decimal separator. */
export function formatNumber(number, fractionDigits = 0) {
  return number.toLocaleString(language, { minimumFractionDigits: fractionDigits, maximumFractionDigits: fractionDigits });
}

/**
 * Return a text of the page. values: the values of its {placeholders}; numbers are formatted, and `count` selects the
 * plural form of a text that has several.
 */
export function say(key, values = {}) {
  const entry = texts[key];
  const text = typeof entry === "string" ? entry : (entry[plurals.select(values.count)] ?? entry.other);
  return text.replace(/\{(\w+)\}/g, (_, name) => format(values[name]));
}

function format(value) {
  if (typeof value === "number") return formatNumber(value);
  return isRightToLeft ? `\u2068${value}\u2069` : value; // isolated, so that an English name keeps its order
}

/** The attributes that contain texts, by the names of the data attributes with their keys. */
const ATTRIBUTES = { label: "aria-label", title: "title", placeholder: "placeholder", content: "content" };

/** Fill the elements with their texts: data-text is the key of the content, data-label that of aria-label, and so on. */
export function fillPage() {
  root.lang = language === "zh" ? "zh-Hans" : language; // the script decides which forms of characters fonts show
  root.dir = isRightToLeft ? "rtl" : "ltr";
  for (const element of document.querySelectorAll("[data-text]")) fill(element, say(element.dataset.text));
  for (const [name, attribute] of Object.entries(ATTRIBUTES)) {
    for (const element of document.querySelectorAll(`[data-${name}]`)) element.setAttribute(attribute, say(element.dataset[name]));
  }
}

/** Set the content of an element. Parts in backticks become keys of the keyboard in the help, and code elsewhere. */
function fill(element, text) {
  const kind = element.closest("dialog") ? "kbd" : "code";
  element.replaceChildren(
    ...text.split("`").map((part, index) => {
      if (index % 2 === 0) return part;
      const marked = document.createElement(kind);
      marked.textContent = part;
      return marked;
    }),
  );
}
