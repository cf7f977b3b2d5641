// Files that the user drops or opens. The content is loaded into the text field, or the server translates the file.

import { say } from "./texts.js";

const FORMATS = { md: "markdown", markdown: "markdown", html: "html", htm: "html" };
const TEXT_EXTENSIONS = new Set(["txt", "text", "tsv", "csv", "log", "rst", "tex"]);

/**
 * Read a file. Returns {text, format}, or {isDocument: true} if the server should translate the file, or {problem}, an
 * error message. limit: the maximum length of a text, in characters. documentExtensions: the extensions of the files
 * that the server translates, such as .docx.
 */
export async function read(file, limit, documentExtensions) {
  const extension = file.name.includes(".") ? file.name.split(".").at(-1).toLowerCase() : "";
  const format = FORMATS[extension] ?? "text";
  const isDocument = documentExtensions.includes(`.${extension}`);
  const isText = extension in FORMATS || TEXT_EXTENSIONS.has(extension) || (file.type.startsWith("text/") && !isDocument);
  if (!isText) {
    const formats = documentExtensions.map((name) => name.slice(1)).join(", ");
    return isDocument ? { isDocument: true } : { problem: say("fileUnsupported", { name: file.name, formats }) };
  }
  if (file.size > 4 * limit) {
    const size = Math.ceil(file.size / 1000);
    return isDocument ? { isDocument: true } : { problem: say("fileTooLong", { name: file.name, size, limit }) };
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    if (isDocument && text.length > limit) return { isDocument: true };
    return { text: text.replaceAll("\r\n", "\n"), format };
  } catch {
    return { problem: say("fileNotText", { name: file.name }) };
  }
}

/** Let the user drop files on a pane, and open them with a button and a file input. onOpen: called with each file. */
export function connect({ pane, chooser, button }, onOpen) {
  const hasFile = (event) => event.dataTransfer?.types.includes("Files");
  let depth = 0;
  const changeDepth = (change) => {
    depth = Math.max(0, depth + change);
    pane.classList.toggle("is-over", depth > 0);
  };
  pane.addEventListener("dragenter", (event) => hasFile(event) && changeDepth(1));
  pane.addEventListener("dragleave", (event) => hasFile(event) && changeDepth(-1));
  pane.addEventListener("drop", (event) => {
    changeDepth(-depth);
    const [file] = event.dataTransfer?.files ?? [];
    if (file) onOpen(file);
  });
  for (const type of ["dragover", "drop"]) {
    window.addEventListener(type, (event) => hasFile(event) && event.preventDefault());
  }
  button.addEventListener("click", () => chooser.click());
  chooser.addEventListener("change", () => {
    const [file] = chooser.files;
    chooser.value = "";
    if (file) onOpen(file);
  });
}
