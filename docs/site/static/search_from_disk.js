// Results of the search show the text around the words. The browser reads it from the pages, but not from pages on disk:
// there, it comes from a script with the texts of all pages (page_texts.py).
if (location.protocol === "file:" && location.pathname.endsWith("/search.html")) {
  const script = document.createElement("script");
  const loaded = new Promise((resolve) => (script.onload = resolve));
  script.src = "_static/page_texts.js";
  document.head.append(script);
  window.fetch = async (address) => {
    await loaded;
    const main = document.createElement("main");
    main.setAttribute("role", "main");
    main.textContent = PAGE_TEXTS[address.replace(/^\.\//, "").replace(/\.html$/, "")] ?? "";
    return { text: () => main.outerHTML };
  };
}
