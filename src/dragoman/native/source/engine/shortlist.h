/* The shortlist of a request: the ids that its outputs may contain.

   The product with the vocabulary matrix then has one column per id of the shortlist instead of one per id. Such a column
   is called an output. */
#pragma once

#include "interface.h"
#include "../common/vector.h"

/* Returns the id that an output of a request predicts. */
INLINE int32_t token_of_output(const Request *request, int output) { return request->shortlist ? request->shortlist[output] : output; }

/* Returns the output of a request that predicts an id, or −1 if the id is not in the shortlist. */
static int output_of_token(const Request *request, int32_t token) {
    if (!request->shortlist) return token;
    int first = 0, last = request->shortlist_count;
    while (first < last) {
        int middle = first + (last - first) / 2;
        if (request->shortlist[middle] < token) first = middle + 1;
        else last = middle;
    }
    return first < request->shortlist_count && request->shortlist[first] == token ? first : -1;
}

/* Sets the logit of an id to −∞, if it is in the shortlist. */
INLINE void forbid_token(const Request *request, float *logits, int32_t token) {
    int output = output_of_token(request, token);
    if (output >= 0) logits[output] = -INFINITY;
}
