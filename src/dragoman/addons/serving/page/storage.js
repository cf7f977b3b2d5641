// Storage of languages and glossaries in localStorage. Texts are never stored.

const PREFIX = "dragoman.";
const unsaved = new Map();

/** Return a stored value, or null. If the browser stores nothing, values are held until the page is closed. */
export function load(name) {
  if (unsaved.has(name)) return unsaved.get(name);
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Store a value, or delete it if it is empty. Returns whether the browser has stored the value. */
export function store(name, value) {
  try {
    if (value) localStorage.setItem(PREFIX + name, value);
    else localStorage.removeItem(PREFIX + name);
    unsaved.delete(name);
    return true;
  } catch {
    unsaved.set(name, value || null);
    return false;
  }
}
