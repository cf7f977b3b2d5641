// Elements, whose texts are inserted as text only.

const SVG = "http://www.w3.org/2000/svg";

/** Return a new element. attributes: also event listeners, such as onclick. children: elements and texts. */
export function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Return a new SVG element. */
export function draw(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** Return a token as an element. Its direction does not affect the text around it, and spaces and controls are visible. */
export function token(text, attributes = {}) {
  return make("bdi", attributes, visible(text));
}

/** Return a text whose white space and control characters are visible. */
export function visible(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, (sign) => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`) || "␣";
}

let count = 0;

/** Return an id that no other element of the page has, for references such as aria-describedby. */
export function newId() {
  count += 1;
  return `e${count}`;
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
