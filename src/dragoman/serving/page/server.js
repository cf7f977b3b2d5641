// The page's requests to the server, and their errors.

/** The server refused a request. retryAfter: in seconds, or null if it should not be repeated. */
export class RefusedError extends Error {
  constructor(status, message, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }

  /** Whether the same request may succeed later. */
  get isTemporary() {
    return (this.status === 429 && this.retryAfter !== null) || (this.status >= 502 && this.status <= 504);
  }
}

/** The server did not answer. */
export class UnreachableError extends Error {}

let key = "";

/** The user's API key, which is held in this module only, until the page is closed. */
export function useKey(given) {
  key = given;
}

export function languages() {
  return ask("languages");
}

export function settings() {
  return ask("frontend/settings");
}

/** Translate. fields: those of the route /v1/translate. */
export function translate(fields, signal) {
  return ask("v1/translate", fields, signal);
}

/** Detect the most probable languages of a text, as {language, confidence}. */
export function detect(text, signal) {
  return ask("detect", { q: text }, signal);
}

/** Translate a file, whose extension indicates its format; returns {address, name} of its translation. */
export async function translateFile(file, { source, target }, signal) {
  const form = new FormData();
  form.append("file", file);
  form.append("source", source);
  form.append("target", target);
  const { translatedFileUrl } = await ask("translate_file", form, signal);
  // behind a proxy the server may not know its own address: use that of this page
  const address = translatedFileUrl.slice(translatedFileUrl.lastIndexOf("/download_file/") + 1);
  return { address, name: decodeURIComponent(address.split("/").at(-1)) };
}

async function ask(route, fields, signal) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const options = { headers, signal, credentials: "same-origin", cache: "no-store" };
  if (fields !== undefined) {
    options.method = "POST";
    if (fields instanceof FormData) {
      options.body = fields;
    } else {
      headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(key ? { ...fields, api_key: key } : fields);
    }
  }
  let answer, content;
  try {
    answer = await fetch(route, options);
    content = await answer.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new UnreachableError(error.message);
  }
  const found = parseJson(content);
  if (answer.ok && found !== undefined) return found;
  const message = typeof found?.error === "string" ? found.error : `the server answered with status ${answer.status}`;
  throw new RefusedError(answer.ok ? 502 : answer.status, message, seconds(answer.headers.get("Retry-After")));
}

function parseJson(content) {
  try {
    return JSON.parse(content);
  } catch {
    return undefined;
  }
}

/** Parse a Retry-After header, which is a number of seconds or a date. */
function seconds(header) {
  if (header === null) return null;
  const number = /^\s*\d+\s*$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  return Number.isFinite(number) ? Math.max(1, Math.ceil(number)) : null;
}
