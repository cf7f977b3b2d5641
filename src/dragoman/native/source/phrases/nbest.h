/* The best distinct translations of a finished search, by a best-first search from the end to the beginning. The score of
   the best path to a hypothesis is exact, so derivations are found in the order of their scores. */
#pragma once

#include "search.h"

enum { DERIVATIONS_PER_TRANSLATION = 50, MIN_DERIVATIONS = 1000 };

/* A derivation whose phrases after `node` are fixed. option: the phrase that follows `node`. */
typedef struct Path {
    const Hypothesis *node;
    const struct Path *later;
    const Option *option;
    double later_score, total;
    int64_t number;
} Path;

typedef struct {
    Search *search;
    Path **heap;
    int32_t size, capacity;
    int64_t created;
} Paths;

/* Returns whether path a is continued before path b. Of equal paths, the newest is continued, so that many equal paths
   do not delay each other. */
static int precedes(const Path *a, const Path *b) {
    return a->total != b->total ? a->total > b->total : a->number > b->number;
}

static void push_path(Paths *paths, const Hypothesis *node, const Path *later, const Option *option, double later_score) {
    Path *path = allocate(paths->search, sizeof(Path));
    if (path == NULL) return;
    if (!reserve((void **)&paths->heap, paths->size, &paths->capacity, sizeof(Path *))) {
        paths->search->has_failed = 1;
        return;
    }
    *path = (Path){node, later, option, later_score, node->score + later_score, paths->created++};
    int32_t child = paths->size++;
    for (; child > 0 && precedes(path, paths->heap[(child - 1) / 2]); child = (child - 1) / 2)
        paths->heap[child] = paths->heap[(child - 1) / 2];
    paths->heap[child] = path;
}

static Path *pop_path(Paths *paths) {
    Path *best = paths->heap[0], *last = paths->heap[--paths->size];
    int32_t parent = 0;
    for (;;) {
        int32_t child = 2 * parent + 1;
        if (child >= paths->size) break;
        if (child + 1 < paths->size && precedes(paths->heap[child + 1], paths->heap[child])) child++;
        if (!precedes(paths->heap[child], last)) break;
        paths->heap[parent] = paths->heap[child];
        parent = child;
    }
    paths->heap[parent] = last;
    return best;
}

/* Continues a path from its node to the node's predecessors. */
static void extend_path(Paths *paths, const Path *path) {
    const Hypothesis *node = path->node;
    push_path(paths, node->previous, path, node->option, path->later_score + node->score - node->previous->score);
    for (const Arc *arc = node->arcs; arc != NULL; arc = arc->next)
        push_path(paths, arc->previous, path, arc->option, path->later_score + arc->score - arc->previous->score);
}

/* Returns whether two complete paths have the same target words. */
static int is_same_text(const Path *a, const Path *b) {
    int32_t i = 0, j = 0;
    for (;;) {
        while (a->option != NULL && i == a->option->length) a = a->later, i = 0;
        while (b->option != NULL && j == b->option->length) b = b->later, j = 0;
        if (a->option == NULL || b->option == NULL) return a->option == b->option;
        if (a->option->words[i++] != b->option->words[j++]) return 0;
    }
}

static uint64_t hash_text(const Path *path) {
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (; path->option != NULL; path = path->later)
        for (int32_t j = 0; j < path->option->length; j++)
            hash = (hash ^ (uint32_t)path->option->words[j]) * UINT64_C(0x100000001B3);
    return hash;
}

/* Adds the features of a complete path to `features`. */
static void sum_features(const Sentence *sentence, const Path *path, double *features) {
    const PhraseTable *table = sentence->table;
    const LanguageModel *model = sentence->language_model;
    int32_t count = table->table_features, start = -1, end = 0;
    const Option *previous = NULL;
    uint8_t state[MAX_STATE] = {0}, last[MAX_STATE] = {0};
    if (model->score != NULL) memcpy(state, model->start, (size_t)model->state_size);
    for (;; path = path->later) {
        const Option *option = path->option;
        int kind = option ? find_orientation(start, end, option->start, option->end)
                          : find_orientation(start, end, sentence->length, sentence->length + 1);
        if (table->reordering != NULL && previous != NULL && previous->pair >= 0)
            features[count + 7 + kind] += table->reordering[previous->pair * REORDERINGS + 3 + kind];
        if (option == NULL) break;
        features[0] += score_words(model, option, state);
        features[count + 1] += option->length;
        features[count + 2] += 1;
        features[count + 3] -= abs(option->start - end);
        if (option->pair >= 0) {
            for (int32_t f = 0; f < count; f++) features[f + 1] += table->features[option->pair * count + f];
            if (table->reordering != NULL)
                features[count + 4 + kind] += table->reordering[option->pair * REORDERINGS + kind];
        }
        previous = option;
        start = option->start;
        end = option->end;
    }
    if (model->score != NULL) features[0] += model->score(model->model, state, model->end, last);
}

static void free_translations(Translations *translations) {
    free(translations->scores);
    free(translations->features);
    free(translations->words);
    free(translations->word_starts);
    free(translations->phrases);
    free(translations->phrase_starts);
    *translations = (Translations){0};
}

/* Copies complete paths into `translations`. Returns zero if memory is exhausted. */
static int store_paths(const Sentence *sentence, const Path *const *paths, int32_t count, Translations *translations) {
    int32_t words = 0, phrases = 0, features = sentence->feature_count;
    for (int32_t n = 0; n < count; n++)
        for (const Path *path = paths[n]; path->option != NULL; path = path->later)
            words += path->option->length, phrases++;
    *translations = (Translations){
        .scores = malloc(((size_t)count + 1) * sizeof(double)),
        .features = calloc((size_t)count * features + 1, sizeof(double)),
        .words = malloc(((size_t)words + 1) * sizeof(int32_t)),
        .word_starts = malloc(((size_t)count + 1) * sizeof(int32_t)),
        .phrases = malloc((3 * (size_t)phrases + 1) * sizeof(int32_t)),
        .phrase_starts = malloc(((size_t)count + 1) * sizeof(int32_t)),
        .count = count,
    };
    if (!translations->scores || !translations->features || !translations->words || !translations->word_starts
        || !translations->phrases || !translations->phrase_starts) {
        free_translations(translations);
        return 0;
    }
    int32_t word = 0, phrase = 0;
    for (int32_t n = 0; n < count; n++) {
        translations->scores[n] = paths[n]->total;
        translations->word_starts[n] = word;
        translations->phrase_starts[n] = phrase;
        for (const Path *path = paths[n]; path->option != NULL; path = path->later) {
            const Option *option = path->option;
            int32_t row[3] = {option->start, option->end, option->length};
            memcpy(translations->phrases + 3 * phrase++, row, sizeof(row));
            memcpy(translations->words + word, option->words, (size_t)option->length * sizeof(int32_t));
            word += option->length;
        }
        sum_features(sentence, paths[n], translations->features + (size_t)n * features);
    }
    translations->word_starts[count] = word;
    translations->phrase_starts[count] = phrase;
    return 1;
}

/* Stores the distinct best translations of a finished search. Returns zero if memory is exhausted. */
static int store_best(Search *search, Translations *translations) {
    const Sentence *sentence = search->sentence;
    const Stack *last = &search->stacks[sentence->length];
    const LanguageModel *model = sentence->language_model;
    int32_t nbest = sentence->settings->nbest, count = 0;
    int64_t limit = (int64_t)nbest * DERIVATIONS_PER_TRANSLATION;
    if (limit < MIN_DERIVATIONS) limit = MIN_DERIVATIONS;
    Paths paths = {.search = search};
    const Path **found = calloc((size_t)nbest + 1, sizeof(Path *));
    uint64_t *hashes = calloc((size_t)nbest + 1, sizeof(uint64_t));
    if (found == NULL || hashes == NULL) search->has_failed = 1;
    for (int32_t k = 0; k < last->count && !search->has_failed; k++) {
        uint8_t next[MAX_STATE] = {0};
        const Hypothesis *end = last->kept[k];
        double score = score_jump(sentence, end, NULL);
        if (model->score != NULL)
            score += weight(sentence->settings, 0) * model->score(model->model, end->state, model->end, next);
        push_path(&paths, end, NULL, NULL, score);
    }
    for (int64_t complete = 0; paths.size > 0 && count < nbest && complete < limit && !search->has_failed;) {
        const Path *path = pop_path(&paths);
        if (path->node->option != NULL) {
            extend_path(&paths, path);
            continue;
        }
        complete++;
        uint64_t hash = hash_text(path);
        int32_t same = 0;
        while (same < count && !(hashes[same] == hash && is_same_text(found[same], path))) same++;
        if (same < count) continue;
        hashes[count] = hash;
        found[count++] = path;
    }
    int stored = !search->has_failed && store_paths(sentence, found, count, translations);
    free(paths.heap);
    free(found);
    free(hashes);
    return stored;
}
