/* Beam search with one stack per number of covered source words, recombination, and cube pruning.

   Sources: Koehn et al. 2003, section 3; Chiang 2007, "Hierarchical phrase-based translation", section 5.3; Huang and
   Chiang 2007. */
#pragma once

#include "options.h"

struct Hypothesis;

/* An alternative to the best last step of a hypothesis, which recombination has removed. */
typedef struct Arc {
    struct Hypothesis *previous;
    const Option *option;
    double score;
    struct Arc *next;
} Arc;

/* A partial translation. All words before `gap` are covered; bit k of mask: whether word gap + k is covered. */
typedef struct Hypothesis {
    struct Hypothesis *previous, *chain; /* chain: next hypothesis in the same bucket of the stack's hash table */
    const Option *option;
    Arc *arcs;
    double score, total;                 /* total: with the estimated score of the uncovered words */
    uint64_t mask;
    int64_t number;                      /* order of creation, which breaks ties */
    int32_t gap, start, end, covered;    /* start, end: source span of the last phrase */
    uint8_t state[MAX_STATE];
} Hypothesis;

/* Memory that is released as a whole. */
typedef struct Block {
    struct Block *next;
    size_t used, size;
} Block;

enum { BLOCK_BYTES = 1 << 20, BUCKETS = 1 << 12 };

/* A set of hypotheses with equal coverage and a span that each of them can translate next. The hypotheses and the
   options are sorted, so the sums fall along both axes, except for the scores that depend on both. */
typedef struct Edge {
    Hypothesis **hypotheses;
    const Option *options;
    double future;              /* estimate of the words that remain uncovered */
    struct Edge *next;
    int32_t hypothesis_count, option_count;
} Edge;

/* A generated hypothesis of an edge, from its row-th hypothesis and its column-th option. */
typedef struct {
    Hypothesis *hypothesis;
    const Edge *edge;
    int32_t row, column;
} Cell;

typedef struct {
    Hypothesis **kept;
    int32_t count;
    Edge *edges;
} Stack;

typedef struct {
    const Sentence *sentence;
    Block *blocks;
    Stack *stacks;              /* (length + 1) */
    Cell *heap;
    Hypothesis **buckets;       /* (BUCKETS) */
    Hypothesis **generated;
    int64_t created;
    int32_t heap_size, heap_capacity, generated_count, generated_capacity, has_failed;
} Search;

static void *allocate(Search *search, size_t bytes) {
    bytes = (bytes + 15) & ~(size_t)15;
    Block *block = search->blocks;
    if (block == NULL || block->used + bytes > block->size) {
        size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block = malloc(sizeof(Block) + size + 16);
        if (block == NULL) {
            search->has_failed = 1;
            return NULL;
        }
        *block = (Block){search->blocks, 0, size};
        search->blocks = block;
    }
    uint8_t *memory = (uint8_t *)(((uintptr_t)(block + 1) + 15) & ~(uintptr_t)15) + block->used;
    block->used += bytes;
    return memory;
}

/* Doubles the capacity of an array if it is full. Returns zero if memory is exhausted. */
static int reserve(void **array, int32_t count, int32_t *capacity, size_t size) {
    if (count < *capacity) return 1;
    int32_t larger = *capacity ? 2 * *capacity : 1024;
    void *grown = realloc(*array, (size_t)larger * size);
    if (grown == NULL) return 0;
    *array = grown;
    *capacity = larger;
    return 1;
}

static double remaining(const Sentence *sentence, int32_t gap, uint64_t mask) {
    double sum = 0;
    int32_t position = gap;
    for (; mask; ) {
        int32_t size = __builtin_ctzll(mask);
        if (size) sum += sentence->future[(size_t)position * sentence->window + size - 1];
        mask >>= size;
        int32_t covered = __builtin_ctzll(~mask);
        mask >>= covered;
        position += size + covered;
    }
    return sum + sentence->suffix[position];
}

static void cover(int32_t *gap, uint64_t *mask, int32_t start, int32_t end) {
    *mask |= ((UINT64_C(1) << (end - start)) - 1) << (start - *gap);
    int32_t shift = __builtin_ctzll(~*mask);
    *mask >>= shift;
    *gap += shift;
}

static int find_orientation(int32_t previous_start, int32_t previous_end, int32_t start, int32_t end) {
    return start == previous_end ? MONOTONE : end == previous_start ? SWAP : DISCONTINUOUS;
}

/* Returns the weighted scores of the positions of two consecutive phrases. option: NULL for the end of the sentence. */
static double score_jump(const Sentence *sentence, const Hypothesis *previous, const Option *option) {
    int32_t start = option ? option->start : sentence->length, end = option ? option->end : sentence->length + 1;
    int kind = find_orientation(previous->start, previous->end, start, end);
    double sum = previous->option ? previous->option->reordering[3 + kind] : 0;
    if (option) {
        sum += option->reordering[kind];
        sum -= weight(sentence->settings, sentence->table->table_features + 3) * abs(start - previous->end);
    }
    return sum;
}

/* Creates the hypothesis of a cell, or NULL if memory is exhausted. */
static Hypothesis *extend(Search *search, Hypothesis *previous, const Option *option, double future) {
    const Sentence *sentence = search->sentence;
    Hypothesis *created = allocate(search, sizeof(Hypothesis));
    if (created == NULL) return NULL;
    memset(created, 0, sizeof(Hypothesis));
    memcpy(created->state, previous->state, MAX_STATE);
    created->previous = previous;
    created->option = option;
    created->number = search->created++;
    created->gap = previous->gap;
    created->mask = previous->mask;
    created->start = option->start;
    created->end = option->end;
    created->covered = previous->covered + option->end - option->start;
    cover(&created->gap, &created->mask, option->start, option->end);
    double fluency = score_words(sentence->language_model, option, created->state);
    created->score = previous->score + option->score + weight(sentence->settings, 0) * fluency
        + score_jump(sentence, previous, option);
    created->total = created->score + future;
    return created;
}

/* Returns whether cell a comes before cell b. */
static int is_before(const Cell *a, const Cell *b) {
    if (a->hypothesis->total != b->hypothesis->total) return a->hypothesis->total > b->hypothesis->total;
    return a->hypothesis->number < b->hypothesis->number;
}

static void push_cell(Search *search, const Edge *edge, int32_t row, int32_t column) {
    if (row >= edge->hypothesis_count || column >= edge->option_count || search->has_failed) return;
    Hypothesis *created = extend(search, edge->hypotheses[row], &edge->options[column], edge->future);
    if (created == NULL || !reserve((void **)&search->heap, search->heap_size, &search->heap_capacity, sizeof(Cell))) {
        search->has_failed = 1;
        return;
    }
    int32_t child = search->heap_size++;
    Cell cell = {created, edge, row, column};
    for (; child > 0 && is_before(&cell, &search->heap[(child - 1) / 2]); child = (child - 1) / 2)
        search->heap[child] = search->heap[(child - 1) / 2];
    search->heap[child] = cell;
}

static Cell pop_cell(Search *search) {
    Cell best = search->heap[0], last = search->heap[--search->heap_size];
    int32_t parent = 0;
    for (;;) {
        int32_t child = 2 * parent + 1;
        if (child >= search->heap_size) break;
        if (child + 1 < search->heap_size && is_before(&search->heap[child + 1], &search->heap[child])) child++;
        if (!is_before(&search->heap[child], &last)) break;
        search->heap[parent] = search->heap[child];
        parent = child;
    }
    search->heap[parent] = last;
    return best;
}

static uint64_t hash_hypothesis(const Hypothesis *hypothesis, int32_t state_size) {
    uint64_t hash = (uint64_t)hypothesis->gap * UINT64_C(0x9E3779B97F4A7C15) ^ hypothesis->mask;
    hash = (hash ^ (uint64_t)hypothesis->end) * UINT64_C(0xD6E8FEB86659FD93);
    for (int32_t k = 0; k < state_size; k += 8) {
        uint64_t part;
        memcpy(&part, hypothesis->state + k, 8); /* the bytes after the state are zeros */
        hash = (hash ^ part ^ (hash >> 31)) * UINT64_C(0x9FB21C651E98DF25);
    }
    return (hash ^ (hash >> 29)) % BUCKETS;
}

/* Returns whether every continuation has the same score after both hypotheses. */
static int is_equivalent(const Search *search, const Hypothesis *a, const Hypothesis *b) {
    if (a->gap != b->gap || a->mask != b->mask || a->end != b->end) return 0;
    if (memcmp(a->state, b->state, (size_t)search->sentence->language_model->state_size) != 0) return 0;
    if (search->sentence->table->reordering == NULL) return 1;
    return a->start == b->start
        && memcmp(a->option->reordering + 3, b->option->reordering + 3, 3 * sizeof(double)) == 0;
}

/* Adds a hypothesis to the current stack, or recombines it with an equivalent one. */
static void add_hypothesis(Search *search, Hypothesis *hypothesis) {
    uint64_t bucket = hash_hypothesis(hypothesis, search->sentence->language_model->state_size);
    for (Hypothesis *other = search->buckets[bucket]; other != NULL; other = other->chain) {
        if (!is_equivalent(search, other, hypothesis)) continue;
        Arc *arc = allocate(search, sizeof(Arc));
        if (arc == NULL) return;
        Hypothesis *worse = hypothesis->score > other->score ? other : hypothesis;
        *arc = (Arc){worse->previous, worse->option, worse->score, other->arcs};
        other->arcs = arc;
        if (worse == other) {
            other->previous = hypothesis->previous;
            other->option = hypothesis->option;
            other->score = hypothesis->score;
            other->total = hypothesis->total;
        }
        return;
    }
    hypothesis->chain = search->buckets[bucket];
    search->buckets[bucket] = hypothesis;
    if (!reserve((void **)&search->generated, search->generated_count, &search->generated_capacity,
                 sizeof(Hypothesis *))) {
        search->has_failed = 1;
        return;
    }
    search->generated[search->generated_count++] = hypothesis;
}

static int compare_totals(const void *left, const void *right) {
    const Hypothesis *a = *(Hypothesis *const *)left, *b = *(Hypothesis *const *)right;
    if (a->total != b->total) return a->total < b->total ? 1 : -1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Groups hypotheses by coverage; within a group, better hypotheses come first. */
static int compare_coverage(const void *left, const void *right) {
    const Hypothesis *a = *(Hypothesis *const *)left, *b = *(Hypothesis *const *)right;
    if (a->gap != b->gap) return a->gap < b->gap ? -1 : 1;
    if (a->mask != b->mask) return a->mask < b->mask ? -1 : 1;
    return compare_totals(left, right);
}

/* Returns whether a phrase may follow a hypothesis: after it, the first uncovered word must still be reachable. */
static int is_reachable(const Search *search, const Hypothesis *hypothesis, int32_t start, int32_t end) {
    int32_t limit = search->sentence->settings->distortion;
    if (start == hypothesis->gap) return 1;
    return abs(start - hypothesis->end) <= limit && end - hypothesis->gap <= limit;
}

/* Adds the edges of a group of hypotheses with equal coverage to the stacks of their results. */
static void add_edges(Search *search, Hypothesis **group, int32_t count) {
    const Sentence *sentence = search->sentence;
    int32_t gap = group[0]->gap, limit = sentence->settings->distortion;
    for (int32_t start = gap; start < sentence->length && start <= gap + limit; start++) {
        if (group[0]->mask >> (start - gap) & 1) continue;
        for (int32_t end = start + 1; end <= sentence->length && end - start <= sentence->max_length; end++) {
            if (group[0]->mask >> (end - 1 - gap) & 1) break;
            const Span *span = &sentence->spans[(size_t)start * sentence->max_length + end - start - 1];
            if (span->count == 0) continue;
            Hypothesis **members = allocate(search, (size_t)count * sizeof(Hypothesis *));
            if (members == NULL) return;
            int32_t size = 0;
            for (int32_t k = 0; k < count; k++)
                if (is_reachable(search, group[k], start, end)) members[size++] = group[k];
            if (size == 0) continue;
            Edge *edge = allocate(search, sizeof(Edge));
            if (edge == NULL) return;
            int32_t next_gap = gap;
            uint64_t mask = group[0]->mask;
            cover(&next_gap, &mask, start, end);
            Stack *stack = &search->stacks[group[0]->covered + end - start];
            *edge = (Edge){members, span->options, remaining(sentence, next_gap, mask), stack->edges, size, span->count};
            stack->edges = edge;
        }
    }
}

/* Keeps the best generated hypotheses in a stack, and adds the edges that start from them. */
static void finish_stack(Search *search, Stack *stack) {
    int32_t limit = search->sentence->settings->stack;
    qsort(search->generated, (size_t)search->generated_count, sizeof(Hypothesis *), compare_totals);
    stack->count = limit > 0 && search->generated_count > limit ? limit : search->generated_count;
    stack->kept = allocate(search, (size_t)stack->count * sizeof(Hypothesis *));
    if (stack->kept == NULL) return;
    memcpy(stack->kept, search->generated, (size_t)stack->count * sizeof(Hypothesis *));
    Hypothesis **sorted = search->generated;
    qsort(sorted, (size_t)stack->count, sizeof(Hypothesis *), compare_coverage);
    for (int32_t first = 0, next; first < stack->count; first = next) {
        next = first + 1;
        while (next < stack->count && sorted[next]->gap == sorted[first]->gap
               && sorted[next]->mask == sorted[first]->mask) next++;
        add_edges(search, sorted + first, next - first);
    }
    search->generated_count = 0;
}

/* Generates the hypotheses of a stack, best first, up to the limit of pops. */
static void fill_stack(Search *search, Stack *stack) {
    int32_t pops = search->sentence->settings->pops;
    memset(search->buckets, 0, BUCKETS * sizeof(Hypothesis *));
    search->heap_size = 0;
    for (const Edge *edge = stack->edges; edge != NULL; edge = edge->next) push_cell(search, edge, 0, 0);
    for (int32_t popped = 0; search->heap_size > 0 && (pops <= 0 || popped < pops) && !search->has_failed; popped++) {
        Cell cell = pop_cell(search);
        add_hypothesis(search, cell.hypothesis);
        if (cell.column == 0) push_cell(search, cell.edge, cell.row + 1, 0);
        push_cell(search, cell.edge, cell.row, cell.column + 1);
    }
}

static void close_search(Search *search) {
    for (Block *block = search->blocks, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    free(search->stacks);
    free(search->heap);
    free(search->buckets);
    free(search->generated);
}

/* Fills all stacks. Returns zero if memory is exhausted. */
static int run_search(Search *search, const Sentence *sentence) {
    *search = (Search){.sentence = sentence};
    search->stacks = calloc((size_t)sentence->length + 1, sizeof(Stack));
    search->buckets = malloc(BUCKETS * sizeof(Hypothesis *));
    if (search->stacks == NULL || search->buckets == NULL) return 0;
    memset(search->buckets, 0, BUCKETS * sizeof(Hypothesis *));
    Hypothesis *root = allocate(search, sizeof(Hypothesis));
    if (root == NULL) return 0;
    memset(root, 0, sizeof(Hypothesis));
    root->start = -1;
    const LanguageModel *model = sentence->language_model;
    if (model->score != NULL) memcpy(root->state, model->start, (size_t)model->state_size);
    root->total = sentence->suffix[0];
    add_hypothesis(search, root);
    for (int32_t covered = 0; covered <= sentence->length && !search->has_failed; covered++) {
        if (covered > 0) fill_stack(search, &search->stacks[covered]);
        finish_stack(search, &search->stacks[covered]);
    }
    return !search->has_failed;
}
