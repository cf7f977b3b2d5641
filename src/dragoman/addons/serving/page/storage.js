// Storage of languages and glossaries in localStorage, and of the key in sessionStorage. Texts are never stored.

const PREFIX = "dragoman.";
const unsaved = new Map();

/**
 * Return a stored value, or null. area: localStorage, or sessionStorage for values of this tab. If the browser stores
 * nothing, values are held until the page is closed.
 */
export function load(name, area = "localStorage") {
  if (unsaved.has(name)) return unsaved.get(name);
  try {
    return window[area].getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Store a value, or delete it if it is empty. Returns whether the browser has stored the value. */
export function store(name, value, area = "localStorage") {
  try {
    if (value) window[area].setItem(PREFIX + name, value);
    else window[area].removeItem(PREFIX + name);
    unsaved.delete(name);
    return true;
  } catch {
    unsaved.set(name, value || null);
    return false;
  }
}
