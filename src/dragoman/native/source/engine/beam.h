/* The beam search of one request: its live hypotheses, its finished hypotheses, and the search rules.

   The results are those of `dragoman.decode.search.search`, up to rounding. A `Beam` owns its arrays, which never
   shrink. The `capacity` of `tokens` and `cache_rows` is beam · limit; the sizes of all other arrays depend on the beam
   size alone. Finished hypotheses are written to the arrays of the `Request`, sorted by score.

   `tokens` (beam, limit) contains the output tokens of every live hypothesis. `cache_rows` (beam, limit) contains the
   row of the beam at which the keys and values of each token are stored. The first element of each pair of arrays is
   current. The second element is filled for the next step. The banks of candidates and continuations, `states` and
   `last_tokens` are used only by requests with constraints (constraint.h). */
#pragma once

#include "interface.h"
#include "../common/vector.h"

#include <stdlib.h>

typedef struct {
    float value;
    int32_t token, bank;
} Candidate;

typedef struct {
    float total;
    int32_t parent, token, bank, is_selected;
} Continuation;

typedef struct {
    Request *request;
    int read;     /* number of input tokens that the decoder has processed */
    int live;     /* number of live hypotheses */
    int finished; /* number of finished hypotheses in the request */
    float *totals;                   /* (beam): summed log-probabilities */
    int32_t *tokens[2], *cache_rows[2]; /* (beam, limit) */
    Candidate *candidates;           /* (beam, max_candidates): the best tokens of each live hypothesis */
    int32_t *candidate_counts;       /* (beam) */
    Continuation *ranked;            /* (beam · max_candidates + 1) */
    const ConstraintState **states[2]; /* (beam): the state of each live hypothesis */
    int32_t *last_tokens;            /* (beam): the last token of each live hypothesis */
    size_t capacity, candidate_capacity;
    int beam_capacity;
} Beam;

/* Returns the number of continuations ranked per step. Even if `beam` of 2 · beam continuations end the sentence,
   `beam` continuations remain. */
INLINE int expansions(int beam) { return beam > 1 ? 2 * beam : 1; }

/* Returns the maximum number of candidates of a live hypothesis. */
INLINE int max_candidates(const Request *request) {
    return expansions(request->beam) + (request->start ? request->max_phrase_tokens : 0);
}

/* Returns the divisor of the log-probability of a hypothesis of `length` tokens. */
static double length_penalty(const Request *request, int length) {
    if (request->penalty == GNMT_PENALTY) return pow((5 + length) / 6.0, request->alpha);
    if (request->penalty == MEAN_PENALTY) return length > 1 ? length : 1;
    return 1.0;
}

static void beam_free(Beam *beam) {
    free(beam->totals), free(beam->candidates), free(beam->candidate_counts), free(beam->ranked), free(beam->last_tokens);
    for (int half = 0; half < 2; half++) free(beam->tokens[half]), free(beam->cache_rows[half]), free(beam->states[half]);
    memset(beam, 0, sizeof *beam);
}

/* Starts the search of a request with one empty hypothesis; returns 0 if memory runs out. */
static int beam_init(Beam *beam, Request *request) {
    size_t size = (size_t)request->beam, capacity = size * request->limit, candidates = size * max_candidates(request);
    if (capacity > beam->capacity || request->beam > beam->beam_capacity || candidates > beam->candidate_capacity) {
        beam_free(beam);
        beam->totals = calloc(size, sizeof *beam->totals);
        beam->candidates = calloc(candidates, sizeof *beam->candidates);
        beam->candidate_counts = calloc(size, sizeof *beam->candidate_counts);
        beam->ranked = calloc(candidates + 1, sizeof *beam->ranked);
        beam->last_tokens = calloc(size, sizeof *beam->last_tokens);
        int complete = beam->totals && beam->candidates && beam->candidate_counts && beam->ranked && beam->last_tokens;
        for (int half = 0; half < 2; half++) {
            beam->tokens[half] = calloc(capacity, sizeof(int32_t));
            beam->cache_rows[half] = calloc(capacity, sizeof(int32_t));
            beam->states[half] = calloc(size, sizeof **beam->states);
            complete = complete && beam->tokens[half] && beam->cache_rows[half] && beam->states[half];
        }
        if (!complete) {
            beam_free(beam);
            return 0;
        }
        beam->capacity = capacity;
        beam->candidate_capacity = candidates;
        beam->beam_capacity = request->beam;
    }
    beam->request = request;
    beam->read = beam->finished = 0;
    beam->live = 1;
    beam->totals[0] = 0;
    beam->states[0][0] = request->start;
    return 1;
}

/* Inserts a hypothesis into the request's n-best list, at rank `first` or later. Hypotheses with equal scores keep their
   order of insertion. */
static void insert_hypothesis(Beam *beam, const int32_t *tokens, int length, float total, double score, int finished, int first) {
    Request *request = beam->request;
    int rank = beam->finished;
    while (rank > first && request->scores[rank - 1] < score) rank--;
    if (rank >= request->nbest) return;
    if (beam->finished == request->nbest) beam->finished--;
    size_t limit = (size_t)request->limit, shifted = (size_t)(beam->finished - rank);
    memmove(request->tokens + (rank + 1) * limit, request->tokens + rank * limit, shifted * limit * sizeof(int32_t));
    memmove(request->lengths + rank + 1, request->lengths + rank, shifted * sizeof *request->lengths);
    memmove(request->log_probabilities + rank + 1, request->log_probabilities + rank, shifted * sizeof *request->log_probabilities);
    memmove(request->scores + rank + 1, request->scores + rank, shifted * sizeof *request->scores);
    memmove(request->finished + rank + 1, request->finished + rank, shifted);
    memcpy(request->tokens + rank * limit, tokens, (size_t)length * sizeof(int32_t));
    request->lengths[rank] = length;
    request->log_probabilities[rank] = total;
    request->scores[rank] = score;
    request->finished[rank] = (uint8_t)finished;
    beam->finished++;
}

/* Inserts all live hypotheses as unfinished hypotheses, after the finished hypotheses.
   tokens: (beam, limit). length: the number of tokens of each hypothesis. */
static void insert_unfinished(Beam *beam, const int32_t *tokens, int length) {
    const Request *request = beam->request;
    for (int row = 0, first = beam->finished; row < beam->live; row++)
        insert_hypothesis(
            beam, tokens + row * (size_t)request->limit, length, beam->totals[row],
            beam->totals[row] / length_penalty(request, length), 0, first
        );
}

/* Writes the continuations with the largest totals to `ranked`; returns their number, at most `expansions`.
   Ties are broken by the earlier parent hypothesis, then by the lower token id. */
static int rank_continuations(Beam *beam) {
    int max_count = expansions(beam->request->beam), count = 0;
    Continuation *ranked = beam->ranked;
    for (int parent = 0; parent < beam->live; parent++)
        for (int rank = 0; rank < beam->candidate_counts[parent]; rank++) {
            Candidate candidate = beam->candidates[parent * max_count + rank];
            float total = beam->totals[parent] + candidate.value;
            if (!(total > -INFINITY)) continue;
            int index = count;
            while (index > 0 && (ranked[index - 1].total < total ||
                                 (ranked[index - 1].total == total && ranked[index - 1].parent == parent &&
                                  ranked[index - 1].token > candidate.token)))
                index--;
            if (index >= max_count) continue;
            count = count < max_count ? count + 1 : max_count;
            memmove(ranked + index + 1, ranked + index, (size_t)(count - 1 - index) * sizeof *ranked);
            ranked[index] = (Continuation){total, parent, candidate.token, 0, 0};
        }
    return count;
}

/* Adds a continuation with the end of sentence to the finished hypotheses. */
static void finish_hypothesis(Beam *beam, const Continuation *continuation) {
    const int32_t *tokens = beam->tokens[0] + continuation->parent * (size_t)beam->request->limit;
    double score = continuation->total / length_penalty(beam->request, beam->read);
    insert_hypothesis(beam, tokens, beam->read - 1, continuation->total, score, 1, 0);
}

/* Makes a continuation the next live hypothesis of a row. Rows are filled in the order of `ranked`. */
static void keep_hypothesis(Beam *beam, const Continuation *continuation, int row) {
    size_t limit = (size_t)beam->request->limit, length = (size_t)beam->read;
    int32_t *tokens = beam->tokens[1] + row * limit;
    memcpy(tokens, beam->tokens[0] + continuation->parent * limit, (length - 1) * sizeof(int32_t));
    memcpy(beam->cache_rows[1] + row * limit, beam->cache_rows[0] + continuation->parent * limit, length * sizeof(int32_t));
    tokens[length - 1] = continuation->token;
    beam->ranked[row] = *continuation; /* the row is not after the continuation, so the overwritten entry is no longer needed */
}

/* Replaces the live hypotheses by the `kept` ones, and ends the search if its result can no longer change. */
static void end_step(Beam *beam, int kept) {
    Request *request = beam->request;
    int length = beam->read; /* number of tokens, including the last token of the kept hypotheses */
    if (!kept) {
        if (!beam->finished) insert_unfinished(beam, beam->tokens[0], length - 1); /* all continuations are forbidden */
        request->hypothesis_count = beam->finished;
        return;
    }
    int32_t *swapped = beam->tokens[0];
    beam->tokens[0] = beam->tokens[1], beam->tokens[1] = swapped;
    swapped = beam->cache_rows[0], beam->cache_rows[0] = beam->cache_rows[1], beam->cache_rows[1] = swapped;
    beam->live = kept;
    for (int row = 0; row < kept; row++) beam->totals[row] = beam->ranked[row].total;
    if (length == request->limit) {
        insert_unfinished(beam, beam->tokens[0], length);
        request->hypothesis_count = beam->finished;
    } else if (
        beam->finished == request->nbest &&
        beam->totals[0] / length_penalty(request, request->limit) <= request->scores[beam->finished - 1]
    ) {
        request->hypothesis_count = beam->finished; /* no live hypothesis can still reach a better score */
    }
}

/* Chooses the next live hypotheses from the candidates of this step; sets `Request.hypothesis_count` at the end of the
   search. */
static void beam_advance(Beam *beam, int end) {
    int count = rank_continuations(beam), kept = 0, size = beam->request->beam;
    for (int rank = 0; rank < count; rank++) {
        const Continuation *continuation = beam->ranked + rank;
        if (continuation->token != end) {
            if (kept < size) keep_hypothesis(beam, continuation, kept++);
        } else if (rank < size) {
            finish_hypothesis(beam, continuation);
        }
    }
    end_step(beam, kept);
}
