/* The decoder: one step for all hypotheses of all sequences that a worker decodes.

   A `Sequence` is the state of one request: its beam and its cache. The cache, owned by the sequence, is one array with a
   part per layer (`CacheLayout`):
     source keys      (heads · key width, stride)      transposed; stride is the source's length, padded
     source values    (length, heads · value width)
     own tokens       (limit, beam, heads, key width + value width)   by step and row of the beam: a key, then its value;
                      of an SSRU the cell (limit, beam, width)
   Keys and values of a token are never moved. `Beam.sources` records which of them belong to a hypothesis, so that
   reordering a beam copies no keys and values.

   In a step, the live hypotheses of all sequences are the rows of every buffer; those of one sequence are adjacent. */
#pragma once

#include "encoder.h"
#include "beam.h"

#define LOGIT_ROWS 24 /* rows whose logits are in memory at a time */

typedef struct {
    Beam beam;
    int first_row;     /* of its live hypotheses in this step */
    int source_stride; /* the source's length, padded */
    float *cache;
    size_t cache_capacity;
} Sequence;

/* The offsets, in floats, of the arrays in a layer's part of a cache; the source's keys come first. */
typedef struct {
    size_t source_values, own, size;
} CacheLayout;

INLINE CacheLayout cache_layout(const Layer *layer, const Request *request) {
    const Attention *source = &layer->source, *own = &layer->attention;
    CacheLayout layout;
    layout.source_values = (size_t)source->heads * source->key_width * padded(request->length);
    layout.own = layout.source_values + (size_t)request->length * source->heads * source->value_width;
    layout.size = layout.own + (size_t)request->limit * request->beam * own->heads * (own->key_width + own->value_width);
    return layout;
}

/* Assigns a request to a sequence; returns 0 if memory runs out. */
static int sequence_begin(const Stack *stack, Sequence *sequence, Request *request) {
    size_t size = 0;
    for (int number = 0; number < stack->layers; number++) size += cache_layout(stack->layer + number, request).size;
    sequence->source_stride = padded(request->length);
    return reserve(&sequence->cache, &sequence->cache_capacity, size) && beam_begin(&sequence->beam, request);
}

/* Stores the keys and values of a source in a layer's part of the cache. projected: (length, keys + values). */
static void store_source_kv(const Sequence *sequence, const Layer *layer, float *cache, const float *projected) {
    int keys = layer->source.heads * layer->source.key_width, values = layer->source.heads * layer->source.value_width;
    int length = sequence->beam.request->length, stride = sequence->source_stride;
    float *source_values = cache + cache_layout(layer, sequence->beam.request).source_values;
    for (int position = 0; position < length; position++, projected += keys + values) {
        for (int key = 0; key < keys; key++) cache[(size_t)key * stride + position] = projected[key];
        memcpy(source_values + (size_t)position * values, projected + keys, (size_t)values * sizeof(float));
    }
    for (int key = 0; key < keys; key++)
        for (int position = length; position < stride; position++) cache[(size_t)key * stride + position] = 0;
}

/* Stores the keys and values of sources that were just encoded, in this order, in all layers.
   Returns 0 if memory runs out. */
static int store_sources(Workspace *space, Sequence **sequences, const int *starts, int count) {
    const Stack *stack = &space->model->decoder;
    for (int number = 0; number < stack->layers; number++) {
        const Layer *layer = stack->layer + number;
        size_t width = (size_t)layer->source_projections.outputs;
        if (!reserve(&space->wide, &space->wide_capacity, (size_t)starts[count] * width)) return 0;
        if (!project(space, &layer->source_projections, space->rows, space->wide, starts[count], STORE)) return 0;
        for (int each = 0; each < count; each++) {
            const Request *request = sequences[each]->beam.request;
            size_t offset = 0;
            for (int below = 0; below < number; below++) offset += cache_layout(stack->layer + below, request).size;
            store_source_kv(sequences[each], layer, sequences[each]->cache + offset, space->wide + (size_t)starts[each] * width);
        }
    }
    return 1;
}

typedef struct {
    Workspace *space;
    const Layer *layer;
    const Positions *positions;
    Sequence **sequences;
    int *sequence_of; /* (rows) */
    size_t *offsets;  /* (sequences): where this layer's part of each cache begins */
    int rows;
} DecoderAttention;

/* Computes a share of the heads of all rows. A row of projections holds queries, keys and values, each head by head. */
static void self_attention(void *context, int share, int shares) {
    const DecoderAttention *task = context;
    const Attention *attention = &task->layer->attention;
    int heads = attention->heads, keys = attention->key_width, values = attention->value_width, each = keys + values;
    float *scores = task->space->scratch[share];
    int units = task->rows * heads;
    for (int unit = (int)((int64_t)units * share / shares); unit < (int)((int64_t)units * (share + 1) / shares); unit++) {
        int row = unit / heads, head = unit % heads;
        const Sequence *sequence = task->sequences[task->sequence_of[row]];
        const Beam *beam = &sequence->beam;
        const Request *request = beam->request;
        int own_row = row - sequence->first_row, now = beam->read;
        CacheLayout layout = cache_layout(task->layer, request);
        float *cached = sequence->cache + task->offsets[task->sequence_of[row]] + layout.own + (size_t)head * each;
        size_t step_stride = (size_t)request->beam * heads * each, row_stride = (size_t)heads * each;
        float *query = task->space->wide + (size_t)row * heads * (2 * keys + values) + head * keys;
        float *key = cached + now * step_stride + own_row * row_stride;
        memcpy(key, query + heads * keys, (size_t)keys * sizeof(float));
        memcpy(key + keys, query - head * keys + 2 * heads * keys + head * values, (size_t)values * sizeof(float));
        if (attention->rotary) {
            const float *angles = task->positions->angles + (size_t)now * task->positions->angles_width;
            rotate(query, angles, task->positions->angles_width);
            rotate(key, angles, task->positions->angles_width);
        }
        const int32_t *sources = beam->sources[0] + (size_t)own_row * request->limit;
        for (int step = 0; step <= now; step++) {
            int at = step < now ? sources[step] : own_row;
            scores[step] = dot(query, cached + step * step_stride + at * row_stride, keys) * attention->scale;
            if (attention->slopes) scores[step] -= attention->slopes[head] * (float)(now - step);
        }
        softmax(scores, now + 1);
        float *result = task->space->context + ((size_t)row * heads + head) * values;
        for (int i = 0; i < values; i += LANES) {
            const float *value = cached + keys + i;
            Vector sum = broadcast(0);
            for (int step = 0; step < now; step++) sum += scores[step] * load(value + step * step_stride + sources[step] * row_stride);
            store(result + i, sum + scores[now] * load(value + now * step_stride + own_row * row_stride));
        }
    }
}

/* Computes a share of the rows of an SSRU (Kim et al. 2019): c ← f ⊙ c + (1 − f) ⊙ candidate; the result is relu(c). */
static void ssru(void *context, int share, int shares) {
    const DecoderAttention *task = context;
    size_t width = (size_t)task->layer->attention.key_width;
    for (int row = share; row < task->rows; row += shares) {
        const Sequence *sequence = task->sequences[task->sequence_of[row]];
        const Beam *beam = &sequence->beam;
        const Request *request = beam->request;
        int own_row = row - sequence->first_row, now = beam->read;
        float *cached = sequence->cache + task->offsets[task->sequence_of[row]] + cache_layout(task->layer, request).own;
        float *cell = cached + ((size_t)now * request->beam + own_row) * width;
        const int32_t *sources = beam->sources[0] + (size_t)own_row * request->limit;
        const float *previous = now ? cached + ((size_t)(now - 1) * request->beam + sources[now - 1]) * width : NULL;
        const float *gate = task->space->wide + (size_t)row * 2 * width, *candidate = gate + width;
        float *result = task->space->context + (size_t)row * width;
        for (size_t i = 0; i < width; i += LANES) {
            Vector forget = 1.0f / (1.0f + exponential(-load(gate + i)));
            Vector next = (1.0f - forget) * load(candidate + i);
            if (previous) next += forget * load(previous + i);
            store(cell + i, next);
            store(result + i, maximum(next, broadcast(0)));
        }
    }
}

/* Computes a share of the heads of all rows of cross-attention. */
static void cross_attention(void *context, int share, int shares) {
    const DecoderAttention *task = context;
    const Attention *attention = &task->layer->source;
    int heads = attention->heads, keys = attention->key_width, values = attention->value_width;
    float *scores = task->space->scratch[share];
    int units = task->rows * heads;
    for (int unit = (int)((int64_t)units * share / shares); unit < (int)((int64_t)units * (share + 1) / shares); unit++) {
        int row = unit / heads, head = unit % heads;
        const Sequence *sequence = task->sequences[task->sequence_of[row]];
        const Request *request = sequence->beam.request;
        CacheLayout layout = cache_layout(task->layer, request);
        const float *cache = sequence->cache + task->offsets[task->sequence_of[row]];
        const float *query = task->space->wide + ((size_t)row * heads + head) * keys;
        const float *transposed = cache + (size_t)head * keys * sequence->source_stride;
        scores_of_transposed(query, transposed, keys, sequence->source_stride, request->length, attention->scale, scores);
        softmax(scores, request->length);
        float *result = task->space->context + ((size_t)row * heads + head) * values;
        const float *value = cache + layout.source_values + head * values;
        for (int i = 0; i < values; i += LANES) {
            Vector sum = broadcast(0);
            for (int position = 0; position < request->length; position++)
                sum += scores[position] * load(value + (size_t)position * heads * values + i);
            store(result + i, sum);
        }
    }
}

/* Returns whether any lane is larger than a number. */
#if defined(__AVX512F__)
INLINE int any_larger(Vector a, float than) { return _mm512_cmp_ps_mask((__m512)a, _mm512_set1_ps(than), _CMP_GT_OQ) != 0; }
#elif defined(__AVX__)
INLINE int any_larger(Vector a, float than) { return _mm256_movemask_ps((__m256)(a > than)) != 0; }
#else
INLINE int any_larger(Vector a, float than) {
    Integers mask = a > than;
    int any = 0;
    for (int lane = 0; lane < LANES; lane++) any |= mask[lane];
    return any != 0;
}
#endif

/* Returns ln Σ e^logit; NaN if any logit is NaN. */
static float log_sum_exp(const float *logits, int count) {
    Vector maxima = load(logits);
    Integers nan = maxima != maxima;
    for (int i = LANES; i < count; i += LANES) {
        Vector some = load(logits + i);
        maxima = maximum(maxima, some);
        nan |= some != some;
    }
    for (int lane = 0; lane < LANES; lane++)
        if (nan[lane]) return NAN;
    float largest = horizontal_maximum(maxima);
    Vector sums = broadcast(0);
    for (int i = 0; i < count; i += LANES) sums += exponential(load(logits + i) - largest);
    return largest + logf(horizontal_sum(sums));
}

/* Finds the `wanted` largest logits above −∞, best first, equal ones by id; returns their number. */
static int top_candidates(const float *logits, int count, int wanted, Candidate *best) {
    int found = 0;
    float threshold = -INFINITY;
    for (int block = 0; block < count; block += PANEL) {
        Vector maxima = load(logits + block);
        for (int i = LANES; i < PANEL; i += LANES) maxima = maximum(maxima, load(logits + block + i));
        if (!any_larger(maxima, threshold)) continue;
        for (int token = block; token < block + PANEL; token++) {
            float value = logits[token];
            if (!(value > threshold)) continue;
            int rank = found < wanted ? found++ : found - 1;
            while (rank > 0 && best[rank - 1].value < value) best[rank] = best[rank - 1], rank--;
            best[rank] = (Candidate){value, token};
            if (found == wanted) threshold = best[found - 1].value;
        }
    }
    return found;
}

typedef struct {
    Workspace *space;
    Sequence **sequences;
    int *sequence_of;
    int first, rows; /* the rows whose logits are in memory: first … first + rows − 1 */
    int end;         /* the id of the end of sentence */
    atomic_int not_a_number;
} CandidateSelection;

/* Computes a share of the rows: the candidates of each hypothesis, or the log-probability of its next prefix token. */
static void select_candidates(void *context, int share, int shares) {
    CandidateSelection *task = context;
    int size = task->space->model->vocabulary.outputs;
    for (int row = share; row < task->rows; row += shares) {
        Sequence *sequence = task->sequences[task->sequence_of[task->first + row]];
        Beam *beam = &sequence->beam;
        const Request *request = beam->request;
        float *logits = task->space->logits + (size_t)row * size; /* (size) */
        int own_row = task->first + row - sequence->first_row, most = expansions(request->beam);
        float sum = log_sum_exp(logits, size);
        if (!(fabsf(sum) < INFINITY)) atomic_store(&task->not_a_number, 1);
        if (beam->read < request->prefix_length) {
            beam->totals[0] += logits[request->prefix[beam->read]] - sum;
            continue;
        }
        for (int number = 0; number < request->forbidden_count; number++) logits[request->forbidden[number]] = -INFINITY;
        if (beam->read < request->minimum) logits[task->end] = -INFINITY;
        Candidate *candidates = beam->candidates + (size_t)own_row * most;
        int count = top_candidates(logits, size, most, candidates);
        for (int number = 0; number < count; number++) candidates[number].value -= sum;
        beam->candidate_counts[own_row] = count;
    }
}

/* Computes a step of `count` sequences up to the final states, in `Workspace.rows`; returns 0 if memory runs out.
   sequence_of: (rows), as `decode_step` fills it. */
static int decode_layers(
    Workspace *space, Sequence **sequences, int count, const Positions *positions, int rows, int *sequence_of, size_t *offsets
) {
    const Stack *stack = &space->model->decoder;
    for (int number = 0; number < count; number++) offsets[number] = 0;
    for (int number = 0; number < stack->layers; number++) {
        const Layer *layer = stack->layer + number;
        DecoderAttention task = {space, layer, positions, sequences, sequence_of, offsets, rows};
        const float *x = sublayer_input(space, stack, &layer->around_attention, rows); /* (rows, width) */
        if (!project(space, &layer->projections, x, space->wide, rows, STORE)) return 0; /* (rows, queries + keys + values) */
        if (layer->recurrent) {
            parallel_run(space->team, ssru, &task);
            add_residual(space, stack, &layer->around_attention, space->context, rows);
        } else {
            parallel_run(space->team, self_attention, &task);
            if (!add_projected(space, stack, &layer->around_attention, &layer->output, space->context, rows)) return 0;
        }
        x = sublayer_input(space, stack, &layer->around_source, rows);
        if (!project(space, &layer->source_query, x, space->wide, rows, STORE)) return 0;
        parallel_run(space->team, cross_attention, &task);
        if (!add_projected(space, stack, &layer->around_source, &layer->source_output, space->context, rows)) return 0;
        if (!feed_forward(space, stack, layer, rows)) return 0;
        for (int each = 0; each < count; each++) offsets[each] += cache_layout(layer, sequences[each]->beam.request).size;
    }
    if (stack->pre) normalise(&stack->norm, space->rows, space->rows, rows, stack->width);
    return 1;
}

/* Reads a token of every live hypothesis of `count` sequences and chooses the next one; an `Outcome`. Sequences whose
   search has ended have `Request.found` set. sequence_of: space for a number per live hypothesis; offsets: per sequence. */
static int decode_step(Workspace *space, Sequence **sequences, int count, const Options *options, int *sequence_of, size_t *offsets) {
    const Model *model = space->model;
    const Stack *stack = &model->decoder;
    int rows = 0, longest = 0;
    for (int number = 0; number < count; number++) {
        Sequence *sequence = sequences[number];
        sequence->first_row = rows;
        if (sequence->beam.read + 1 > longest) longest = sequence->beam.read + 1;
        if (sequence->source_stride > longest) longest = sequence->source_stride;
        for (int row = 0; row < sequence->beam.live; row++) sequence_of[rows++] = number;
    }
    if (!workspace_reserve(space, stack, rows, (size_t)padded(longest) + PANEL)) return NO_MEMORY;
    if (!reserve(&space->logits, &space->logits_capacity, (size_t)LOGIT_ROWS * model->vocabulary.outputs)) return NO_MEMORY;
    for (int row = 0; row < rows; row++) {
        const Sequence *sequence = sequences[sequence_of[row]];
        const Beam *beam = &sequence->beam;
        const Request *request = beam->request;
        int read = beam->read, id = options->begin;
        if (read > request->prefix_length) id = beam->tokens[0][(size_t)(row - sequence->first_row) * request->limit + read - 1];
        else if (read > 0) id = request->prefix[read - 1];
        embed(stack, &options->target, id, read, space->rows + (size_t)row * stack->width);
    }
    if (!decode_layers(space, sequences, count, &options->target, rows, sequence_of, offsets)) return NO_MEMORY;
    for (int first = 0; first < rows; first += LOGIT_ROWS) {
        int some = rows - first < LOGIT_ROWS ? rows - first : LOGIT_ROWS;
        const float *x = space->rows + (size_t)first * stack->width; /* (some, width) */
        if (!project(space, &model->vocabulary, x, space->logits, some, STORE)) return NO_MEMORY;
        CandidateSelection task = {space, sequences, sequence_of, first, some, options->end, 0};
        parallel_run(space->team, select_candidates, &task);
        if (atomic_load(&task.not_a_number)) return NOT_A_NUMBER;
    }
    for (int number = 0; number < count; number++) {
        Beam *beam = &sequences[number]->beam;
        Request *request = beam->request;
        for (int row = 0; row < beam->live; row++) beam->sources[0][(size_t)row * request->limit + beam->read] = row;
        if (beam->read < request->prefix_length) beam->tokens[0][beam->read] = request->prefix[beam->read];
        if (++beam->read > request->prefix_length) beam_advance(beam, options->end);
    }
    return FINE;
}
