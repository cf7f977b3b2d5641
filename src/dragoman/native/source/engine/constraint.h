/* The beam search of a request whose outputs must contain phrases: dynamic beam allocation (Post & Vilar 2018).

   The results are those of `dragoman.decode.constraints.constrained_search`, up to rounding. The caller owns all
   `ConstraintState`s, which live as long as the request. */
#pragma once

#include "beam.h"
#include "shortlist.h"

/* Writes the tokens that begin or continue a phrase to `candidates`, with the logits above −∞ of those that leave enough
   positions for the missing phrases; returns their number. Sets the logits of all tokens that must not follow otherwise
   to −∞. room: the maximum number of tokens after the next one. size: number of logits. */
static int phrase_candidates(
    const Request *request, const ConstraintState *state, float *logits, int size, int room, int end, Candidate *candidates
) {
    int count = 0, forbids_kind[TOKEN_KINDS], forbids_any = 0;
    for (int number = 0; number < state->count; number++) {
        int output = output_of_token(request, state->tokens[number]);
        if (output < 0) continue;
        if (state->needs[number] <= room && logits[output] > -INFINITY)
            candidates[count++] = (Candidate){logits[output], state->tokens[number], state->banks[number]};
        logits[output] = -INFINITY;
    }
    if (!state->complete) forbid_token(request, logits, end);
    for (int kind = 0; kind < TOKEN_KINDS; kind++) forbids_any |= forbids_kind[kind] = state->other_needs[kind] > room;
    for (int output = 0; forbids_any && output < size; output++)
        if (forbids_kind[request->kinds[token_of_output(request, output)]]) logits[output] = -INFINITY;
    return count;
}

/* Orders continuations by their totals, ties by the earlier parent hypothesis, then by the lower token id. */
static int compare_continuations(const void *first, const void *second) {
    const Continuation *a = first, *b = second;
    if (a->total != b->total) return a->total > b->total ? -1 : 1;
    if (a->parent != b->parent) return a->parent < b->parent ? -1 : 1;
    return (a->token > b->token) - (a->token < b->token);
}

/* Selects the continuations that become live hypotheses. Each bank, which contains the continuations with the same number
   of phrase tokens, has an equal share of the slots for its best continuations, at least one. The other slots are filled
   with the best of all other continuations. */
static void allocate_slots(const Request *request, Continuation *ranked, int count, int end) {
    int slots = request->beam, share = request->beam / (request->phrase_tokens + 1);
    if (share < 1) share = 1;
    for (int bank = request->phrase_tokens; bank >= 0 && slots; bank--)
        for (int rank = 0, taken = 0; rank < count && taken < share && slots; rank++)
            if (ranked[rank].bank == bank && ranked[rank].token != end) ranked[rank].is_selected = 1, taken++, slots--;
    for (int rank = 0; rank < count && slots; rank++)
        if (!ranked[rank].is_selected && ranked[rank].token != end) ranked[rank].is_selected = 1, slots--;
}

/* Chooses the next live hypotheses, like `beam_advance`. */
static void constrained_advance(Beam *beam, int end) {
    Request *request = beam->request;
    int count = 0, complete = 0, chosen = 0, max_count = max_candidates(request);
    Continuation *ranked = beam->ranked;
    for (int parent = 0; parent < beam->live; parent++)
        for (int number = 0; number < beam->candidate_counts[parent]; number++) {
            Candidate candidate = beam->candidates[parent * max_count + number];
            float total = beam->totals[parent] + candidate.value;
            if (total > -INFINITY) ranked[count++] = (Continuation){total, parent, candidate.token, candidate.bank, 0};
        }
    qsort(ranked, (size_t)count, sizeof *ranked, compare_continuations);
    for (int rank = 0; rank < count && complete < request->requested_beam; rank++) {
        int ends = ranked[rank].token == end;
        complete += ends || ranked[rank].bank == request->phrase_tokens;
        if (ends) finish_hypothesis(beam, ranked + rank);
    }
    allocate_slots(request, ranked, count, end);
    for (int rank = 0; rank < count; rank++)
        if (ranked[rank].is_selected) {
            beam->states[1][chosen] = beam->states[0][ranked[rank].parent];
            beam->last_tokens[chosen] = ranked[rank].token;
            keep_hypothesis(beam, ranked + rank, chosen++);
        }
    const ConstraintState **swapped = beam->states[0];
    beam->states[0] = beam->states[1], beam->states[1] = swapped;
    end_step(beam, chosen);
    if (request->hypothesis_count < 0 && !request->follow(beam->states[0], beam->last_tokens, chosen))
        request->hypothesis_count = 0; /* the caller has stored the error */
}
