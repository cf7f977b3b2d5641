// Results of the search show the lines that match, for which the browser reads the pages; a site opened from disk cannot.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
