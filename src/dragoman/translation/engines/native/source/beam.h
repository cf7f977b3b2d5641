/* The beam search of one request: its live hypotheses, the finished ones, and the rules between them.

   It finds what `dragoman.decode.search.search` finds, up to rounding. A `Beam` owns its arrays, which only grow. The
   `capacity` of `tokens` and `sources` is beam · limit; those of the others depend on the beam size alone. Finished
   hypotheses are written straight into the arrays of the `Request`, sorted by score.

   tokens and sources, (beam, limit) each, hold for every live hypothesis the tokens that it has written, and for each of
   these tokens the row of the beam at which its keys and values are stored. The first of each pair is current; the second
   is written for the next step. */
#pragma once

#include "interface.h"
#include "vector.h"

#include <stdlib.h>

typedef struct {
    float value;
    int32_t token;
} Candidate;

typedef struct {
    float total;
    int32_t parent, token;
} Continuation;

typedef struct {
    Request *request;
    int read;     /* tokens that the decoder has read */
    int live;     /* hypotheses */
    int finished; /* hypotheses that are kept in the request */
    float *totals;                   /* (beam): summed log-probabilities */
    int32_t *tokens[2], *sources[2]; /* (beam, limit) */
    Candidate *candidates;           /* (beam, expansions): the best tokens of each live hypothesis, best first */
    int32_t *candidate_counts;       /* (beam) */
    Continuation *ranked;            /* (expansions + 1) */
    size_t capacity;
    int beam_capacity;
} Beam;

/* Continuations that are ranked in a step: of 2 · beam, enough remain if `beam` of them are ends of sentence. */
INLINE int expansions(int beam) { return beam > 1 ? 2 * beam : 1; }

/* Returns the divisor of the log-probability of `length` tokens. */
static double length_penalty(const Request *request, int length) {
    if (request->penalty == GNMT_PENALTY) return pow((5 + length) / 6.0, request->alpha);
    if (request->penalty == MEAN_PENALTY) return length > 1 ? length : 1;
    return 1.0;
}

static void beam_free(Beam *beam) {
    free(beam->totals), free(beam->candidates), free(beam->candidate_counts), free(beam->ranked);
    for (int half = 0; half < 2; half++) free(beam->tokens[half]), free(beam->sources[half]);
    memset(beam, 0, sizeof *beam);
}

/* Starts with one empty hypothesis; returns 0 if memory runs out. */
static int beam_begin(Beam *beam, Request *request) {
    size_t capacity = (size_t)request->beam * request->limit;
    if (capacity > beam->capacity || request->beam > beam->beam_capacity) {
        beam_free(beam);
        size_t size = (size_t)request->beam, each = (size_t)expansions(request->beam);
        beam->totals = calloc(size, sizeof *beam->totals);
        beam->candidates = calloc(size * each, sizeof *beam->candidates);
        beam->candidate_counts = calloc(size, sizeof *beam->candidate_counts);
        beam->ranked = calloc(each + 1, sizeof *beam->ranked);
        int complete = beam->totals && beam->candidates && beam->candidate_counts && beam->ranked;
        for (int half = 0; half < 2; half++) {
            beam->tokens[half] = calloc(capacity, sizeof(int32_t));
            beam->sources[half] = calloc(capacity, sizeof(int32_t));
            complete = complete && beam->tokens[half] && beam->sources[half];
        }
        if (!complete) {
            beam_free(beam);
            return 0;
        }
        beam->capacity = capacity;
        beam->beam_capacity = request->beam;
    }
    beam->request = request;
    beam->read = beam->finished = 0;
    beam->live = 1;
    beam->totals[0] = 0;
    return 1;
}

/* Inserts a hypothesis into the request's n best, at rank `first` or later; equal scores stay in order of arrival. */
static void keep(Beam *beam, const int32_t *tokens, int length, float total, double score, int finished, int first) {
    Request *request = beam->request;
    int rank = beam->finished;
    while (rank > first && request->scores[rank - 1] < score) rank--;
    if (rank >= request->nbest) return;
    if (beam->finished == request->nbest) beam->finished--;
    size_t limit = (size_t)request->limit, moved = (size_t)(beam->finished - rank);
    memmove(request->tokens + (rank + 1) * limit, request->tokens + rank * limit, moved * limit * sizeof(int32_t));
    memmove(request->lengths + rank + 1, request->lengths + rank, moved * sizeof *request->lengths);
    memmove(request->log_probabilities + rank + 1, request->log_probabilities + rank, moved * sizeof *request->log_probabilities);
    memmove(request->scores + rank + 1, request->scores + rank, moved * sizeof *request->scores);
    memmove(request->finished + rank + 1, request->finished + rank, moved);
    memcpy(request->tokens + rank * limit, tokens, (size_t)length * sizeof(int32_t));
    request->lengths[rank] = length;
    request->log_probabilities[rank] = total;
    request->scores[rank] = score;
    request->finished[rank] = (uint8_t)finished;
    beam->finished++;
}

/* Keeps all live hypotheses as unfinished, after the finished ones. tokens: (beam, limit); length: tokens of each. */
static void keep_unfinished(Beam *beam, const int32_t *tokens, int length) {
    const Request *request = beam->request;
    for (int row = 0, first = beam->finished; row < beam->live; row++)
        keep(
            beam, tokens + row * (size_t)request->limit, length, beam->totals[row],
            beam->totals[row] / length_penalty(request, length), 0, first
        );
}

/* Ranks the candidates of all live hypotheses by their sums into `ranked`; returns how many, at most `expansions`.
   Among equal sums the earlier hypothesis comes first, and of one hypothesis the lower token. */
static int rank_continuations(Beam *beam) {
    int most = expansions(beam->request->beam), count = 0;
    Continuation *ranked = beam->ranked;
    for (int parent = 0; parent < beam->live; parent++)
        for (int rank = 0; rank < beam->candidate_counts[parent]; rank++) {
            Candidate candidate = beam->candidates[parent * most + rank];
            float total = beam->totals[parent] + candidate.value;
            if (!(total > -INFINITY)) continue;
            int place = count;
            while (place > 0 && (ranked[place - 1].total < total ||
                                 (ranked[place - 1].total == total && ranked[place - 1].parent == parent &&
                                  ranked[place - 1].token > candidate.token)))
                place--;
            if (place >= most) continue;
            count = count < most ? count + 1 : most;
            memmove(ranked + place + 1, ranked + place, (size_t)(count - 1 - place) * sizeof *ranked);
            ranked[place] = (Continuation){total, parent, candidate.token};
        }
    return count;
}

/* Chooses the next live hypotheses from the candidates of this step; sets `Request.found` if the search has ended. */
static void beam_advance(Beam *beam, int end) {
    Request *request = beam->request;
    int count = rank_continuations(beam), length = beam->read; /* length: tokens with the one that is chosen now */
    Continuation *ranked = beam->ranked;
    int32_t *tokens = beam->tokens[0];
    size_t limit = (size_t)request->limit;
    int chosen = 0;
    for (int rank = 0; rank < count; rank++) {
        Continuation *one = ranked + rank;
        if (one->token == end) {
            if (rank < request->beam) {
                double score = one->total / length_penalty(request, length);
                keep(beam, tokens + one->parent * limit, length - 1, one->total, score, 1, 0);
            }
        } else if (chosen < request->beam) {
            int32_t *written = beam->tokens[1] + chosen * limit, *sources = beam->sources[1] + chosen * limit;
            memcpy(written, tokens + one->parent * limit, (size_t)(length - 1) * sizeof(int32_t));
            memcpy(sources, beam->sources[0] + one->parent * limit, (size_t)length * sizeof(int32_t));
            written[length - 1] = one->token;
            ranked[chosen++] = *one; /* chosen ≤ rank, so the overwritten entry has been read */
        }
    }
    if (!chosen) {
        if (!beam->finished) keep_unfinished(beam, tokens, length - 1); /* no token may follow any of them */
        request->found = beam->finished;
        return;
    }
    int32_t *swapped = beam->tokens[0];
    beam->tokens[0] = beam->tokens[1], beam->tokens[1] = swapped;
    swapped = beam->sources[0], beam->sources[0] = beam->sources[1], beam->sources[1] = swapped;
    beam->live = chosen;
    for (int row = 0; row < chosen; row++) beam->totals[row] = ranked[row].total;
    if (length == request->limit) {
        keep_unfinished(beam, beam->tokens[0], length);
        request->found = beam->finished;
    } else if (
        beam->finished == request->nbest &&
        beam->totals[0] / length_penalty(request, request->limit) <= request->scores[beam->finished - 1]
    ) {
        request->found = beam->finished; /* no live hypothesis can get a better score */
    }
}
