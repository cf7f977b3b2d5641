// What this browser remembers for its owner: languages and glossaries, never a text.

const PREFIX = "dragoman.";
const unkept = new Map();

/** The value, or null. Where the browser keeps nothing, what was said since the page was opened holds. */
export function recall(name) {
  if (unkept.has(name)) return unkept.get(name);
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Whether the browser keeps it. An empty value is forgotten. */
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
