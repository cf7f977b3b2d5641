/* The search of one sentence: its live hypotheses, those that have ended, and the rules between them.

   What is found is what `dragoman.decode.search.search` finds, up to rounding. */
#pragma once

#include "model.h"

/* Of a translation of texts. */
enum Outcome { FINE = 0, NO_MEMORY = 1, NOT_A_NUMBER = 2, GIVEN_UP = 3 };

enum Penalty { NO_PENALTY = 0, GNMT_PENALTY = 1, MEAN_PENALTY = 2 };

/* A text to translate, what is wanted, and room for what is found. The layout is that of library.py. */
typedef struct Text {
    const int32_t *source;    /* ids, the end of sentence among them */
    const int32_t *prefix;    /* ids that outputs begin with */
    const int32_t *forbidden; /* ids that never follow */
    int32_t length, prefix_length, forbidden_count;
    int32_t beam, wanted, limit, minimum; /* limit: tokens of an output, its end counted, more than the prefix has */
    int32_t penalty;
    double alpha;
    int32_t *tokens;  /* (wanted, limit) */
    int32_t *lengths; /* (wanted): tokens without the end */
    float *log_probabilities;
    double *scores;
    uint8_t *finished;
    struct Text *next; /* in whatever list it is */
    int32_t found;     /* how many; −1 until the text is done */
} Text;

typedef struct {
    float value;
    int32_t token;
} Candidate;

typedef struct {
    float total;
    int32_t parent, token;
} Continuation;

/* tokens, places: (beam, limit) of each hypothesis what it has written, and at which place of the beam it stood when a
   token was read, which is where that token's keys and values are held. The second of each is for the next step. */
typedef struct {
    Text *text;
    int read; /* tokens that the decoder has read */
    int live;
    int ended; /* ended hypotheses that are kept */
    float *totals;
    int32_t *tokens[2], *places[2];
    Candidate *candidates; /* (beam, looked at) */
    int32_t *candidate_counts;
    Continuation *ranked;
    size_t room; /* of the arrays, in hypotheses times tokens */
    int beam_room;
} Hypotheses;

INLINE int looked_at(int beam) { return beam > 1 ? 2 * beam : 1; }

static double divisor(const Text *text, int length) {
    if (text->penalty == GNMT_PENALTY) return pow((5 + length) / 6.0, text->alpha);
    if (text->penalty == MEAN_PENALTY) return length > 1 ? length : 1;
    return 1.0;
}

static void hypotheses_free(Hypotheses *all) {
    free(all->totals), free(all->candidates), free(all->candidate_counts), free(all->ranked);
    for (int half = 0; half < 2; half++) free(all->tokens[half]), free(all->places[half]);
    memset(all, 0, sizeof *all);
}

/* One hypothesis, which has written nothing; 0 without memory. */
static int hypotheses_begin(Hypotheses *all, Text *text) {
    size_t room = (size_t)text->beam * text->limit;
    if (room > all->room || text->beam > all->beam_room) {
        hypotheses_free(all);
        size_t beam = (size_t)text->beam, each = (size_t)looked_at(text->beam);
        all->totals = calloc(beam, sizeof *all->totals);
        all->candidates = calloc(beam * each, sizeof *all->candidates);
        all->candidate_counts = calloc(beam, sizeof *all->candidate_counts);
        all->ranked = calloc(each + 1, sizeof *all->ranked);
        int there = all->totals && all->candidates && all->candidate_counts && all->ranked;
        for (int half = 0; half < 2; half++) {
            all->tokens[half] = calloc(room, sizeof(int32_t));
            all->places[half] = calloc(room, sizeof(int32_t));
            there = there && all->tokens[half] && all->places[half];
        }
        if (!there) {
            hypotheses_free(all);
            return 0;
        }
        all->room = room;
        all->beam_room = text->beam;
    }
    all->text = text;
    all->read = all->ended = 0;
    all->live = 1;
    all->totals[0] = 0;
    return 1;
}

/* Keeps an ended hypothesis where it is among the best; those that are equal stay in the order in which they came. */
static void keep(Hypotheses *all, const int32_t *tokens, int length, float total, double score, int finished, int behind) {
    Text *text = all->text;
    int rank = all->ended;
    while (rank > behind && text->scores[rank - 1] < score) rank--;
    if (rank >= text->wanted) return;
    if (all->ended == text->wanted) all->ended--;
    size_t limit = (size_t)text->limit, moved = (size_t)(all->ended - rank);
    memmove(text->tokens + (rank + 1) * limit, text->tokens + rank * limit, moved * limit * sizeof(int32_t));
    memmove(text->lengths + rank + 1, text->lengths + rank, moved * sizeof *text->lengths);
    memmove(text->log_probabilities + rank + 1, text->log_probabilities + rank, moved * sizeof *text->log_probabilities);
    memmove(text->scores + rank + 1, text->scores + rank, moved * sizeof *text->scores);
    memmove(text->finished + rank + 1, text->finished + rank, moved);
    memcpy(text->tokens + rank * limit, tokens, (size_t)length * sizeof(int32_t));
    text->lengths[rank] = length;
    text->log_probabilities[rank] = total;
    text->scores[rank] = score;
    text->finished[rank] = (uint8_t)finished;
    all->ended++;
}

/* Whether a candidate for the best list comes before another: the greater first, among equals the lower id. */
INLINE int better(float value, int32_t token, Candidate than) {
    return value > than.value || (value == than.value && token < than.token);
}

/* One step: from the candidates of each live hypothesis to the next live ones. 1 while the search goes on. */
static int advance(Hypotheses *all, int end) {
    Text *text = all->text;
    int each = looked_at(text->beam), count = 0, length = all->read; /* tokens with the one that is chosen now */
    Continuation *ranked = all->ranked;
    for (int parent = 0; parent < all->live; parent++) {
        /* the candidates of a hypothesis come by value; those that add up to the same sum are ordered by token */
        for (int rank = 0; rank < all->candidate_counts[parent]; rank++) {
            Candidate candidate = all->candidates[parent * each + rank];
            float total = all->totals[parent] + candidate.value;
            if (!(total > -INFINITY)) continue;
            int place = count;
            while (place > 0 && (ranked[place - 1].total < total ||
                                 (ranked[place - 1].total == total && ranked[place - 1].parent == parent &&
                                  ranked[place - 1].token > candidate.token)))
                place--;
            if (place >= each) continue;
            count = count < each ? count + 1 : each;
            memmove(ranked + place + 1, ranked + place, (size_t)(count - 1 - place) * sizeof *ranked);
            ranked[place] = (Continuation){total, parent, candidate.token};
        }
    }
    int32_t *tokens = all->tokens[0];
    size_t limit = (size_t)text->limit;
    int chosen = 0;
    for (int rank = 0; rank < count; rank++) {
        Continuation *one = ranked + rank;
        if (one->token == end) {
            if (rank < text->beam)
                keep(all, tokens + one->parent * limit, length - 1, one->total, one->total / divisor(text, length), 1, 0);
        } else if (chosen < text->beam) {
            int32_t *to = all->tokens[1] + chosen * limit, *places = all->places[1] + chosen * limit;
            memcpy(to, tokens + one->parent * limit, (size_t)(length - 1) * sizeof(int32_t));
            memcpy(places, all->places[0] + one->parent * limit, (size_t)length * sizeof(int32_t));
            to[length - 1] = one->token;
            ranked[chosen++] = *one; /* never behind the place that is read */
        }
    }
    if (!chosen) {
        if (!all->ended) /* no token may follow any of them */
            for (int row = 0, ended = all->ended; row < all->live; row++)
                keep(all, tokens + row * limit, length - 1, all->totals[row], all->totals[row] / divisor(text, length - 1), 0, ended);
        text->found = all->ended;
        return 0;
    }
    int32_t *swapped = all->tokens[0];
    all->tokens[0] = all->tokens[1], all->tokens[1] = swapped;
    swapped = all->places[0], all->places[0] = all->places[1], all->places[1] = swapped;
    all->live = chosen;
    for (int row = 0; row < chosen; row++) all->totals[row] = ranked[row].total;
    if (length == text->limit) {
        for (int row = 0, ended = all->ended; row < chosen; row++)
            keep(all, all->tokens[0] + row * limit, length, all->totals[row], all->totals[row] / divisor(text, length), 0, ended);
        text->found = all->ended;
        return 0;
    }
    if (all->ended == text->wanted && all->totals[0] / divisor(text, text->limit) <= text->scores[all->ended - 1]) {
        text->found = all->ended;
        return 0;
    }
    return 1;
}
