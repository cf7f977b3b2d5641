// Local storage of languages and glossaries; texts are never stored.

const PREFIX = "dragoman.";
const unkept = new Map();

/** Return a value, or null. If the browser stores nothing, values last until the page is closed. */
export function recall(name) {
  if (unkept.has(name)) return unkept.get(name);
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Store a value; an empty one is deleted. Returns whether the browser stores it. */
export function remember(name, value) {
  try {
    if (value) localStorage.setItem(PREFIX + name, value);
    else localStorage.removeItem(PREFIX + name);
    unkept.delete(name);
    return true;
  } catch {
    unkept.set(name, value || null);
    return false;
  }
}
