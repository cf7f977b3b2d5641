// A file that is dropped or opened: its content becomes the text, or it is translated as a whole.

const FORMATS = { md: "markdown", markdown: "markdown", html: "html", htm: "html" };
const TEXTS = new Set(["txt", "text", "tsv", "csv", "log", "rst", "tex"]);

/**
 * Returns {text, format}, or {whole: true} if the server should translate the file, or {problem} if neither is possible.
 * limit: the longest text, in characters. whole: extensions of files that the server translates, such as .docx.
 */
export async function read(file, limit, whole) {
  const ending = file.name.includes(".") ? file.name.split(".").at(-1).toLowerCase() : "";
  const format = FORMATS[ending] ?? "text";
  const goesWhole = whole.includes(`.${ending}`);
  const isText = ending in FORMATS || TEXTS.has(ending) || (file.type.startsWith("text/") && !goesWhole);
  if (!isText) {
    const supported = whole.map((each) => each.slice(1)).join(", ");
    return goesWhole ? { whole: true } : { problem: `${file.name} is not supported; this server supports ${supported}. Copy its text instead.` };
  }
  if (file.size > 4 * limit) {
    const size = `${Math.ceil(file.size / 1000).toLocaleString("en")} kB`;
    return goesWhole ? { whole: true } : { problem: `${file.name} is too long: ${size}, but this server translates at most ${limit.toLocaleString("en")} characters at once.` };
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    if (goesWhole && text.length > limit) return { whole: true };
    return { text: text.replaceAll("\r\n", "\n"), format };
  } catch {
    return { problem: `${file.name} cannot be read: it is not UTF-8 text.` };
  }
}

/** Let the user drop and open files. opened: called with a file. */
export function watch(opened) {
  const pane = document.getElementById("source-pane");
  const chooser = document.getElementById("file");
  const hasFile = (event) => event.dataTransfer?.types.includes("Files");
  let within = 0;
  const over = (change) => {
    within = Math.max(0, within + change);
    pane.classList.toggle("is-over", within > 0);
  };
  pane.addEventListener("dragenter", (event) => hasFile(event) && over(1));
  pane.addEventListener("dragleave", (event) => hasFile(event) && over(-1));
  pane.addEventListener("drop", (event) => {
    over(-within);
    const [file] = event.dataTransfer?.files ?? [];
    if (file) opened(file);
  });
  for (const kind of ["dragover", "drop"]) {
    window.addEventListener(kind, (event) => hasFile(event) && event.preventDefault());
  }
  document.getElementById("open").addEventListener("click", () => chooser.click());
  chooser.addEventListener("change", () => {
    const [file] = chooser.files;
    chooser.value = "";
    if (file) opened(file);
  });
}
