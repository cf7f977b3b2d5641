/* The structures that Python shares with the library. `statistical/phrases/library.py` declares the same fields.

   All pointers refer to memory of the caller, except those of `Translations`. Arrays are C-ordered and contiguous. */
#pragma once

#include <stdint.h>

enum { MAX_STATE = 64, REORDERINGS = 6, MAX_WINDOW = 62 };

/* Word-aligned sentence pairs. Sentence s consists of the tokens starts[s] … starts[s + 1] − 1 of its side, and of the
   links link_starts[s] … link_starts[s + 1] − 1. */
typedef struct {
    const int64_t *source_starts, *target_starts, *link_starts; /* (sentences + 1) */
    const int32_t *links;              /* (links, 2): source and target position within the sentence, from 0 */
    const float *source_given_target;  /* (links): w(source word | target word) */
    const float *target_given_source;  /* (links): w(target word | source word) */
    const float *source_given_null;    /* (source tokens) */
    const float *target_given_null;    /* (target tokens) */
    int32_t sentences, max_length;     /* max_length: maximum number of words on each side of a phrase pair */
} AlignedCorpus;

/* Arrays for the extracted phrase pairs. */
typedef struct {
    int64_t *source, *target;                       /* first token of each side, over all sentences */
    int8_t *source_length, *target_length;
    int8_t *previous, *next;                        /* orientation of the neighbour, see `Orientation` */
    float *source_given_target, *target_given_source; /* logarithms of the lexical weights */
} PhraseOccurrences;

enum Orientation { MONOTONE = 0, SWAP = 1, DISCONTINUOUS = 2 };

/* A phrase table. The source phrases form a trie whose node 0 is the empty phrase; the children of node n are the nodes
   child_starts[n] … child_starts[n + 1] − 1, sorted by word. The phrase pairs of node n are pair_starts[n] …
   pair_starts[n + 1] − 1. */
typedef struct {
    const int32_t *words;         /* (nodes): last word of the phrase */
    const int32_t *child_starts;    /* (nodes + 1) */
    const int32_t *pair_starts;      /* (nodes + 1) */
    const int32_t *targets;       /* (pairs): target phrase of the pair */
    const int32_t *target_starts; /* (target phrases + 1) */
    const int32_t *target_words;
    const float *features;        /* (pairs, table_features), logarithms */
    const float *reordering;      /* (pairs, REORDERINGS): log p of the previous and the next orientation; NULL: none */
    int32_t table_features, max_length;
} PhraseTable;

/* Returns the natural logarithm of p(word | state), and writes the following state. */
typedef double (*ScoreWord)(const void *model, const void *state, int32_t word, void *next);

typedef struct {
    ScoreWord score;              /* NULL: no language model */
    const void *model;
    const uint8_t *start, *empty; /* (state_size): the states after the beginning of a sentence and without context */
    int32_t state_size, end;      /* end: id of the end of sentence */
    int32_t unknown;              /* id of the unknown word */
} LanguageModel;

/* Weights and limits of a search. The features are, in this order: language model, table features, words, phrases,
   distortion, reorderings (if the table has them). */
typedef struct {
    const double *weights;
    int32_t stack;       /* hypotheses per number of covered words; 0: no limit */
    int32_t pops;        /* hypotheses generated per number of covered words; 0: no limit */
    int32_t options;     /* translations per source phrase; 0: no limit */
    int32_t distortion;  /* maximum distance between consecutive phrases, at most MAX_WINDOW − max_length */
    int32_t nbest;
} SearchSettings;

/* The distinct translations of a sentence, best first. The words of translation n are word_starts[n] … word_starts[n + 1]
   − 1; a word −1 − i is a copy of source word i. Its phrases are phrase_starts[n] … phrase_starts[n + 1] − 1. */
typedef struct {
    double *scores;    /* (count) */
    double *features;  /* (count, number of features) */
    int32_t *words, *word_starts;
    int32_t *phrases;  /* (phrases, 3): first source word, end of the source words, number of target words */
    int32_t *phrase_starts;
    int32_t count;
} Translations;

enum Outcome { SUCCESS = 0, NO_MEMORY = 1, TOO_WIDE = 2 };
