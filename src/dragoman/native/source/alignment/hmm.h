/* The hidden Markov model of alignments (Vogel et al. 1996), with NULL states as in Och and Ney 2003, section 2.1.

   A state is the last aligned source position k = 0 … I, where 0 is the state before the first link, with a flag for
   target words that are aligned with NULL. From k, the next target word is aligned with NULL with probability p0, and
   with position i with probability (1 − p0) · ((1 − λ) θ(i − k) / Z + λ / I), where Z = Σ θ(i' − k) over all positions
   i' within the largest distance. The state 0 has a separate θ. */
#pragma once

#include <float.h>
#include <string.h>

#include "lexicon.h"

typedef struct {
    const double *jumps; /* (2 · distance + 1): θ(d) for d = −distance … distance */
    const double *start; /* (distance + 1): θ of the first position, counted from 0 */
    int64_t distance;    /* the largest distance with a parameter of its own */
    double null;         /* p0 */
    double smoothing;    /* λ */
} Jumps;

/* Expected numbers of transitions that are drawn from θ, not from the uniform distribution.

   A context is a state k in a sentence of I words. Its window is the range of distances that stay in the sentence. The
   sums of n / Z over all contexts, where n is the expected number of transitions, are stored by the ends of windows. */
typedef struct {
    double *jumps; /* (2 · distance + 1) */
    double *start; /* (distance + 1) */
    double *lows;  /* (distance + 1): sums by −(lower end of the window) */
    double *highs; /* (distance + 1): sums by the upper end of the window */
    double *firsts; /* (distance + 1): sums of the state before the first link, by the upper end */
} JumpCounts;

/* The memory for one pair. */
typedef struct {
    double *emissions; /* (J, I + 1): t(f | e), NULL first */
    double *aligned;   /* (J, I): scaled forward probabilities of the states that are aligned with k */
    double *states;    /* (J + 1, I + 1): scaled forward probabilities of k */
    double *scales;    /* (J) */
    double *backward, *next, *products, *drawn; /* (I + 1) */
    double *weights, *rest, *expected;          /* (I + 1): (1 − λ) / Z, the uniform part, and n of each state k */
    double *reversed;                           /* (2 · distance + 1): θ(−d) */
} HmmMemory;

INLINE int64_t lower(int64_t a, int64_t b) { return a < b ? a : b; }

/* a += x · b */
INLINE void add_scaled(double *restrict a, const double *restrict b, double x, int64_t size) {
    for (int64_t index = 0; index < size; index++) a[index] += x * b[index];
}

/* Distributes one block among the arrays. Returns the block, or NULL if memory runs out. */
static double *hmm_memory(HmmMemory *memory, int64_t sources, int64_t targets, int64_t distance) {
    int64_t width = sources + 1, size = (3 * targets + 1) * width + targets + 7 * width + 2 * distance + 1;
    double *block = malloc(sizeof *block * (size_t)size), *next = block;
    if (!block) return 0;
    double **arrays[] = {&memory->emissions, &memory->aligned, &memory->states,  &memory->scales,
                         &memory->backward,  &memory->next,    &memory->products, &memory->drawn,
                         &memory->weights,   &memory->rest,    &memory->expected, &memory->reversed};
    int64_t sizes[] = {targets * width, targets * width, (targets + 1) * width, targets, width, width,
                       width,           width,           width,                 width,   width, 2 * distance + 1};
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++) {
        *arrays[index] = next;
        next += sizes[index];
    }
    return block;
}

/* Computes the weights of θ and of the uniform distribution for every state of a sentence of I words. */
static void context_weights(const Jumps *jumps, int64_t sources, double *weights, double *rest) {
    int64_t distance = jumps->distance;
    for (int64_t k = 0; k <= sources; k++) {
        double sum = 0;
        int64_t low = k ? -lower(k - 1, distance) : 0, high = lower(k ? sources - k : sources - 1, distance);
        for (int64_t d = low; d <= high; d++) sum += k ? jumps->jumps[distance + d] : jumps->start[d];
        weights[k] = sum > DBL_MIN ? (1 - jumps->smoothing) / sum : 0;
        rest[k] = (sum > DBL_MIN ? jumps->smoothing : 1) / (double)sources;
    }
}

/* The forward pass. Returns log p(f | e). */
static double hmm_forward(const Jumps *jumps, HmmMemory *memory, int64_t sources, int64_t targets) {
    int64_t width = sources + 1, distance = jumps->distance;
    double total = 0;
    memset(memory->states, 0, sizeof *memory->states * (size_t)width);
    memory->states[0] = 1;
    for (int64_t j = 0; j < targets; j++) {
        const double *state = memory->states + j * width, *emissions = memory->emissions + j * width;
        double *aligned = memory->aligned + j * width, *next = memory->states + (j + 1) * width;
        double uniform = 0, sum = 0;
        for (int64_t k = 0; k <= sources; k++) uniform += state[k] * memory->rest[k];
        for (int64_t i = 0; i < sources; i++) aligned[i] = uniform;
        add_scaled(aligned, jumps->start, state[0] * memory->weights[0], lower(sources, distance + 1));
        for (int64_t k = 1; k <= sources; k++) {
            int64_t low = -lower(k - 1, distance), high = lower(sources - k, distance);
            add_scaled(
                aligned + (k - 1 + low), jumps->jumps + distance + low, state[k] * memory->weights[k], high - low + 1);
        }
        double unaligned = jumps->null * emissions[0];
        next[0] = state[0] * unaligned;
        sum = next[0];
        for (int64_t i = 0; i < sources; i++) {
            aligned[i] *= (1 - jumps->null) * emissions[i + 1];
            next[i + 1] = aligned[i] + state[i + 1] * unaligned;
            sum += next[i + 1];
        }
        if (!(sum > DBL_MIN)) { /* all probabilities have underflowed: the word carries no information */
            sum = DBL_MIN;
            for (int64_t i = 0; i < sources; i++) aligned[i] = 0;
            memcpy(next, state, sizeof *next * (size_t)width);
            memory->scales[j] = 0;
        } else {
            memory->scales[j] = 1 / sum;
            for (int64_t i = 0; i < sources; i++) aligned[i] *= memory->scales[j];
            for (int64_t k = 0; k <= sources; k++) next[k] *= memory->scales[j];
        }
        total += log(sum);
    }
    return total;
}

/* The backward pass. It stores p(i | j, pair) in matrix (I + 1, J) and adds to the counts, unless they are NULL. */
static void hmm_backward(
    const Jumps *jumps, HmmMemory *memory, int64_t sources, int64_t targets, double *matrix, JumpCounts *counts) {
    int64_t width = sources + 1, distance = jumps->distance;
    double *backward = memory->backward, *products = memory->products, *drawn = memory->drawn, *next = memory->next;
    for (int64_t k = 0; k <= sources; k++) backward[k] = 1, memory->expected[k] = 0;
    for (int64_t j = targets - 1; j >= 0; j--) {
        const double *aligned = memory->aligned + j * width, *state = memory->states + j * width;
        double sum = 0, scale = memory->scales[j];
        for (int64_t i = 0; i < sources; i++) {
            double posterior = aligned[i] * backward[i + 1];
            matrix[(i + 1) * targets + j] = posterior;
            sum += posterior;
        }
        matrix[j] = sum < 1 ? 1 - sum : 0;
        if (scale == 0) continue; /* the word was skipped */
        const double *emissions = memory->emissions + j * width;
        double factor = (1 - jumps->null) * scale, unaligned = jumps->null * emissions[0] * scale, total = 0;
        for (int64_t i = 0; i < sources; i++) {
            products[i] = factor * emissions[i + 1] * backward[i + 1];
            total += products[i];
        }
        for (int64_t k = 0; k <= sources; k++) drawn[k] = 0;
        for (int64_t i = 0; i < lower(sources, distance + 1); i++) drawn[0] += jumps->start[i] * products[i];
        for (int64_t i = 0; i < sources; i++) { /* θ(i − k) for k from the first to the last state within the distance */
            int64_t first = i - lower(i, distance), last = lower(sources - 1, i + distance);
            add_scaled(
                drawn + 1 + first, memory->reversed + distance + (first - i), products[i], last - first + 1);
        }
        if (counts) {
            for (int64_t k = 0; k <= sources; k++) memory->expected[k] += state[k] * memory->weights[k] * drawn[k];
            double weight = state[0] * memory->weights[0];
            for (int64_t i = 0; i < lower(sources, distance + 1); i++)
                counts->start[i] += weight * jumps->start[i] * products[i];
            for (int64_t k = 1; k <= sources; k++) { /* the factor θ(d) is applied when a block is complete */
                int64_t low = -lower(k - 1, distance), high = lower(sources - k, distance);
                add_scaled(
                    counts->jumps + distance + low, products + (k - 1 + low), state[k] * memory->weights[k],
                    high - low + 1);
            }
        }
        for (int64_t k = 0; k <= sources; k++)
            next[k] = memory->weights[k] * drawn[k] + memory->rest[k] * total + unaligned * backward[k];
        memcpy(backward, next, sizeof *next * (size_t)width);
    }
    if (!counts) return;
    for (int64_t k = 0; k <= sources; k++) {
        double share = memory->expected[k] * memory->weights[k] / (1 - jumps->smoothing); /* n / Z */
        if (k == 0) {
            counts->firsts[lower(sources - 1, distance)] += share;
        } else {
            counts->lows[lower(k - 1, distance)] += share;
            counts->highs[lower(sources - k, distance)] += share;
        }
    }
}

/* Computes p(i | j, pair) for the pairs `first` to `last` − 1, and log p(f | e) of each pair.

   posteriors: starts with the matrix of pair `first`. log_likelihoods: (last − first). counts: zeros, or NULL. Pairs
   with a blank side have posterior probabilities of NULL only. Returns 0 if memory runs out. */
static int expect_hmm(
    const Pairs *pairs, const double *lexicon, const Jumps *jumps, int64_t first, int64_t last, double *posteriors,
    double *log_likelihoods, JumpCounts *counts) {
    int64_t distance = jumps->distance;
    for (int64_t number = first; number < last; number++) {
        Pair pair = pair_at(pairs, number);
        int64_t width = pair.sources + 1;
        double *matrix = posteriors + (pairs->cells[number] - pairs->cells[first]);
        log_likelihoods[number - first] = 0;
        if (!pair.sources || !pair.targets) {
            for (int64_t j = 0; j < pair.targets; j++) {
                double probability = lexicon[pair.slots[j]];
                log_likelihoods[number - first] += log(probability > DBL_MIN ? probability : DBL_MIN);
                matrix[j] = 1;
            }
            continue;
        }
        HmmMemory memory;
        double *block = hmm_memory(&memory, pair.sources, pair.targets, distance);
        if (!block) return 0;
        for (int64_t d = 0; d <= 2 * distance; d++) memory.reversed[d] = jumps->jumps[2 * distance - d];
        for (int64_t i = 0; i < width; i++)
            for (int64_t j = 0; j < pair.targets; j++)
                memory.emissions[j * width + i] = lexicon[pair.slots[i * pair.targets + j]];
        context_weights(jumps, pair.sources, memory.weights, memory.rest);
        log_likelihoods[number - first] = hmm_forward(jumps, &memory, pair.sources, pair.targets);
        hmm_backward(jumps, &memory, pair.sources, pair.targets, matrix, counts);
        free(block);
    }
    if (counts)
        for (int64_t d = 0; d <= 2 * distance; d++) counts->jumps[d] *= jumps->jumps[d];
    return 1;
}
