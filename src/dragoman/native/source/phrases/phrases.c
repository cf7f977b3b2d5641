/* Phrase extraction and phrase-based translation. The file is compiled alone and includes all others. */
#include "extraction.h"
#include "nbest.h"

#define EXPORT __attribute__((visibility("default")))

/* Extracts the phrase pairs of the sentences first … last − 1. out: NULL to count them only. Returns their number, or −1
   if memory is exhausted. */
EXPORT int64_t phrases_extract(const AlignedCorpus *corpus, int32_t first, int32_t last, const PhraseOccurrences *out) {
    int64_t count = 0;
    for (int32_t s = first; s < last; s++) {
        AlignedPair pair;
        if (!prepare_pair(&pair, corpus, s)) return -1;
        count += extract_pair(&pair, out, count);
        free_pair(&pair);
    }
    return count;
}

/* Translates a sentence. The caller frees the result with `phrases_free`. */
EXPORT int32_t phrases_translate(const PhraseTable *table, const LanguageModel *model, const SearchSettings *settings,
                                 const int32_t *source, int32_t length, Translations *translations) {
    *translations = (Translations){0};
    if (settings->distortion + table->max_length > MAX_WINDOW || model->state_size > MAX_STATE) return TOO_WIDE;
    Sentence sentence;
    if (!open_sentence(&sentence, table, model, settings, source, length)) return NO_MEMORY;
    Search search;
    int done = run_search(&search, &sentence) && store_best(&search, translations);
    close_search(&search);
    close_sentence(&sentence);
    return done ? SUCCESS : NO_MEMORY;
}

EXPORT void phrases_free(Translations *translations) { free_translations(translations); }
