// Requests to the server, and their errors.

import { load, store } from "./storage.js";
import { say } from "./texts.js";

/** The server responded with an error. retryAfter: the value of Retry-After in seconds, or null without this header. */
export class HttpError extends Error {
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

/** The server did not respond. */
export class UnreachableError extends Error {}

const TAB = "sessionStorage";
let key = load("key", TAB) ?? "";

/** Set the user's access key, which the browser remembers until the tab is closed. An empty string forgets it. */
export function setKey(value) {
  key = value;
  store("key", value, TAB);
}

/** Return whether requests are sent with a key. */
export function hasKey() {
  return key !== "";
}

export function languages() {
  return request("languages");
}

export function settings() {
  return request("frontend/settings");
}

/** Translate a text. fields: the fields of a /v1/translate request. */
export function translate(fields, signal) {
  return request("v1/translate", fields, signal);
}

/** Translate a file, whose extension determines the format. Returns the {address, name} of the translation. */
export async function translateFile(file, { source, target }, signal) {
  const form = new FormData();
  form.append("file", file);
  form.append("source", source);
  form.append("target", target);
  const { translatedFileUrl } = await request("translate_file", form, signal);
  // behind a proxy, the URL in the response may be wrong, so a URL relative to this page is used
  const address = translatedFileUrl.slice(translatedFileUrl.lastIndexOf("/download_file/") + 1);
  return { address, name: decodeURIComponent(address.split("/").at(-1)) };
}

/** Send a request, and return the JSON of the response. fields: the fields of a POST request; undefined for GET. */
export async function request(route, fields, signal) {
  const { response, content } = await send(route, fields, signal, (answer) => answer.text());
  const body = parseJson(content);
  if (response.ok && body !== undefined) return body;
  throw failure(response, body);
}

/** Send a text, and return the bytes of the response as an ArrayBuffer. */
export async function requestBytes(route, text, signal) {
  const { response, content } = await send(route, text, signal, (answer) => answer.arrayBuffer());
  if (response.ok) return content;
  throw failure(response, parseJson(new TextDecoder().decode(content)));
}

/** Send a request. body: a form, a text or fields, or undefined for GET. read: returns a promise of the content. */
async function send(route, body, signal, read) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const options = { headers, signal, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    if (body instanceof FormData || typeof body === "string") {
      options.body = body;
    } else {
      headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(key ? { ...body, api_key: key } : body);
    }
  }
  try {
    const response = await fetch(route, options);
    return { response, content: await read(response) };
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new UnreachableError(error.message);
  }
}

function failure(response, body) {
  const message = typeof body?.error === "string" ? body.error : say("status", { status: String(response.status) });
  return new HttpError(response.ok ? 502 : response.status, message, parseRetryAfter(response.headers.get("Retry-After")));
}

function parseJson(content) {
  try {
    return JSON.parse(content);
  } catch {
    return undefined;
  }
}

/** Convert a Retry-After header, which contains a number of seconds or a date, to seconds. */
function parseRetryAfter(header) {
  if (header === null) return null;
  const seconds = /^\s*\d+\s*$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? Math.max(1, Math.ceil(seconds)) : null;
}
