/* The decoder, which runs one step for all hypotheses of all sequences of a worker.

   A `Sequence` is the state of one request: its beam and its cache. The sequence owns the cache, which is one array with
   a part per layer (`CacheLayout`):
     source keys      (heads · key width, stride)      transposed; stride is the source's length, padded
     source values    (length, heads · value width)
     output tokens    (limit, beam, heads, key width + value width)   by step and row of the beam: a key, then its value;
                      for an SSRU, the cell (limit, beam, width)
   Keys and values of a token are never moved. `Beam.cache_rows` records which keys and values belong to a hypothesis, so
   that reordering a beam does not copy them.

   In a step, the rows of every buffer are the live hypotheses of all sequences. The hypotheses of a sequence are
   adjacent. */
#pragma once

#include "encoder.h"
#include "constraint.h"

#define LOGIT_ROWS 24 /* number of rows whose logits are in memory at the same time */

typedef struct {
    Beam beam;
    int first_row;     /* the row of its first live hypothesis in this step */
    int source_stride; /* the padded length of the source */
    float *cache;
    size_t cache_capacity;
    Matrix vocabulary; /* the part of the vocabulary matrix for the request's shortlist, if it has one */
    int vocabulary_capacity;
} Sequence;

/* The offsets and the total size, in floats, of the arrays in a layer's part of a cache. The source keys come first. */
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
static int sequence_init(const Model *model, Sequence *sequence, Request *request) {
    const Stack *stack = &model->decoder;
    size_t size = 0;
    for (int number = 0; number < stack->layers; number++) size += cache_layout(stack->layer + number, request).size;
    sequence->source_stride = padded(request->length);
    if (!reserve(&sequence->cache, &sequence->cache_capacity, size) || !beam_init(&sequence->beam, request)) return 0;
    if (!request->shortlist) return 1;
    return matrix_select(
        &sequence->vocabulary, &sequence->vocabulary_capacity, &model->vocabulary, request->shortlist, request->shortlist_count
    );
}

/* Returns the matrix that computes the logits of a sequence. */
INLINE const Matrix *vocabulary_of(const Model *model, const Sequence *sequence) {
    return sequence->beam.request->shortlist ? &sequence->vocabulary : &model->vocabulary;
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

/* Stores the keys and values of the sources encoded last, in the order of `sequences`, for all layers.
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
    size_t *offsets;  /* (sequences): the offset of this layer's part of each cache */
    int rows;
} DecoderAttention;

/* Computes a share of the heads of all rows. A row of projections contains queries, then keys, then values, each ordered
   by head. */
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
        int beam_row = row - sequence->first_row, position = beam->read;
        CacheLayout layout = cache_layout(task->layer, request);
        float *own_cache = sequence->cache + task->offsets[task->sequence_of[row]] + layout.own + (size_t)head * each;
        size_t step_stride = (size_t)request->beam * heads * each, row_stride = (size_t)heads * each;
        float *query = task->space->wide + (size_t)row * heads * (2 * keys + values) + head * keys;
        float *key = own_cache + position * step_stride + beam_row * row_stride;
        memcpy(key, query + heads * keys, (size_t)keys * sizeof(float));
        memcpy(key + keys, query - head * keys + 2 * heads * keys + head * values, (size_t)values * sizeof(float));
        if (attention->rotary) {
            const float *angles = task->positions->angles + (size_t)position * task->positions->angles_width;
            rotate(query, angles, task->positions->angles_width);
            rotate(key, angles, task->positions->angles_width);
        }
        const int32_t *cache_rows = beam->cache_rows[0] + (size_t)beam_row * request->limit;
        for (int step = 0; step <= position; step++) {
            int cache_row = step < position ? cache_rows[step] : beam_row;
            scores[step] = dot(query, own_cache + step * step_stride + cache_row * row_stride, keys) * attention->scale;
            if (attention->slopes) scores[step] -= attention->slopes[head] * (float)(position - step);
        }
        softmax(scores, position + 1);
        float *result = task->space->context + ((size_t)row * heads + head) * values;
        for (int i = 0; i < values; i += LANES) {
            const float *value = own_cache + keys + i;
            Vector sum = broadcast(0);
            for (int step = 0; step < position; step++) sum += scores[step] * load(value + step * step_stride + cache_rows[step] * row_stride);
            store(result + i, sum + scores[position] * load(value + position * step_stride + beam_row * row_stride));
        }
    }
}

/* Computes a share of the rows of an SSRU (Kim et al. 2019): c ← f ⊙ c + (1 − f) ⊙ candidate. The result is relu(c). */
static void ssru(void *context, int share, int shares) {
    const DecoderAttention *task = context;
    size_t width = (size_t)task->layer->attention.key_width;
    for (int row = share; row < task->rows; row += shares) {
        const Sequence *sequence = task->sequences[task->sequence_of[row]];
        const Beam *beam = &sequence->beam;
        const Request *request = beam->request;
        int beam_row = row - sequence->first_row, position = beam->read;
        float *own_cache = sequence->cache + task->offsets[task->sequence_of[row]] + cache_layout(task->layer, request).own;
        float *cell = own_cache + ((size_t)position * request->beam + beam_row) * width;
        const int32_t *cache_rows = beam->cache_rows[0] + (size_t)beam_row * request->limit;
        const float *previous = position ? own_cache + ((size_t)(position - 1) * request->beam + cache_rows[position - 1]) * width : NULL;
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

/* Computes cross-attention for a share of the heads of all rows. */
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
        score_transposed_keys(query, transposed, keys, sequence->source_stride, request->length, attention->scale, scores);
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

/* Returns whether any lane is greater than a number. */
#if defined(__AVX512F__)
INLINE int any_greater(Vector a, float than) { return _mm512_cmp_ps_mask((__m512)a, _mm512_set1_ps(than), _CMP_GT_OQ) != 0; }
#elif defined(__AVX__)
INLINE int any_greater(Vector a, float than) { return _mm256_movemask_ps((__m256)(a > than)) != 0; }
#else
INLINE int any_greater(Vector a, float than) {
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
        Vector block = load(logits + i);
        maxima = maximum(maxima, block);
        nan |= block != block;
    }
    for (int lane = 0; lane < LANES; lane++)
        if (nan[lane]) return NAN;
    float largest = horizontal_maximum(maxima);
    Vector sums = broadcast(0);
    for (int i = 0; i < count; i += LANES) sums += exponential(load(logits + i) - largest);
    return largest + logf(horizontal_sum(sums));
}

/* Writes up to `max_count` largest logits above −∞ to `best`, in descending order; returns their number. Ties are broken
   by the lower id. */
static int top_candidates(const float *logits, int count, int max_count, Candidate *best) {
    int number_found = 0;
    float threshold = -INFINITY;
    for (int block = 0; block < count; block += PANEL) {
        Vector maxima = load(logits + block);
        for (int i = LANES; i < PANEL; i += LANES) maxima = maximum(maxima, load(logits + block + i));
        if (!any_greater(maxima, threshold)) continue;
        for (int token = block; token < block + PANEL; token++) {
            float value = logits[token];
            if (!(value > threshold)) continue;
            int rank = number_found < max_count ? number_found++ : number_found - 1;
            while (rank > 0 && best[rank - 1].value < value) best[rank] = best[rank - 1], rank--;
            best[rank] = (Candidate){value, token, 0};
            if (number_found == max_count) threshold = best[number_found - 1].value;
        }
    }
    return number_found;
}

/* Computes the logits of rows first … first + rows − 1, from their states in `Workspace.rows`. Adjacent rows with the same
   vocabulary matrix share a product. Returns 0 if memory runs out. */
static int compute_logits(Workspace *space, Sequence **sequences, const int *sequence_of, int first, int rows) {
    const Model *model = space->model;
    size_t width = (size_t)model->decoder.width, stride = (size_t)model->vocabulary.outputs;
    for (int row = 0, end; row < rows; row = end) {
        const Matrix *matrix = vocabulary_of(model, sequences[sequence_of[first + row]]);
        for (end = row + 1; end < rows && vocabulary_of(model, sequences[sequence_of[first + end]]) == matrix;) end++;
        const float *x = space->rows + (size_t)(first + row) * width; /* (end − row, width) */
        if (!matmul(space->team, space->quantized, matrix, x, width, space->logits + row * stride, stride, end - row, STORE)) return 0;
    }
    return 1;
}

typedef struct {
    Workspace *space;
    Sequence **sequences;
    int *sequence_of;
    int first, rows; /* rows first … first + rows − 1 have their logits in memory */
    int end;         /* the id of the end of sentence */
    atomic_int not_a_number;
} CandidateSelection;

/* Processes a share of the rows: selects the candidates of each hypothesis, or adds the log-probability of its next
   prefix token. */
static void select_candidates(void *context, int share, int shares) {
    CandidateSelection *task = context;
    const Model *model = task->space->model;
    for (int row = share; row < task->rows; row += shares) {
        Sequence *sequence = task->sequences[task->sequence_of[task->first + row]];
        Beam *beam = &sequence->beam;
        const Request *request = beam->request;
        float *logits = task->space->logits + (size_t)row * model->vocabulary.outputs; /* (size) */
        int size = vocabulary_of(model, sequence)->outputs;
        const ConstraintState *state = NULL;
        int beam_row = task->first + row - sequence->first_row, count = 0;
        float sum = log_sum_exp(logits, size);
        if (!(fabsf(sum) < INFINITY)) atomic_store(&task->not_a_number, 1);
        if (beam->read < request->prefix_length) {
            int output = output_of_token(request, request->prefix[beam->read]);
            beam->totals[0] += output < 0 ? -INFINITY : logits[output] - sum;
            continue;
        }
        Candidate *candidates = beam->candidates + (size_t)beam_row * max_candidates(request);
        if (request->start) {
            state = beam->states[0][beam_row];
            int room = request->limit - beam->read - 1;
            int outputs = request->shortlist ? request->shortlist_count : model->decoder.size; /* without padding */
            count = phrase_candidates(request, state, logits, outputs, room, task->end, candidates);
        }
        for (int number = 0; number < request->forbidden_count; number++) forbid_token(request, logits, request->forbidden[number]);
        if (beam->read < request->minimum) forbid_token(request, logits, task->end);
        int phrase_count = count;
        count += top_candidates(logits, size, expansions(request->beam), candidates + count);
        for (int number = phrase_count; number < count; number++)
            candidates[number].token = token_of_output(request, candidates[number].token);
        for (int number = phrase_count; state && number < count; number++)
            candidates[number].bank = state->other_banks[request->kinds[candidates[number].token]];
        for (int number = 0; number < count; number++) candidates[number].value -= sum;
        beam->candidate_counts[beam_row] = count;
    }
}

/* Runs all layers for one step of `count` sequences. The final states are in `Workspace.rows`. Returns 0 if memory runs
   out. sequence_of: (rows), filled by `decode_step`. */
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

/* Runs one step of `count` sequences: chooses the next token of every live hypothesis. Returns an `Outcome`. Sets
   `Request.hypothesis_count` of sequences whose search has ended. sequence_of: space for one index per live hypothesis.
   offsets: space for one offset per sequence. */
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
        embed(stack, NULL, &options->target, id, read, space->rows + (size_t)row * stack->width);
    }
    if (!decode_layers(space, sequences, count, &options->target, rows, sequence_of, offsets)) return NO_MEMORY;
    for (int first = 0; first < rows; first += LOGIT_ROWS) {
        int chunk = rows - first < LOGIT_ROWS ? rows - first : LOGIT_ROWS;
        if (!compute_logits(space, sequences, sequence_of, first, chunk)) return NO_MEMORY;
        CandidateSelection task = {space, sequences, sequence_of, first, chunk, options->end, 0};
        parallel_run(space->team, select_candidates, &task);
        if (atomic_load(&task.not_a_number)) return NOT_A_NUMBER;
    }
    for (int number = 0; number < count; number++) {
        Beam *beam = &sequences[number]->beam;
        Request *request = beam->request;
        for (int row = 0; row < beam->live; row++) beam->cache_rows[0][(size_t)row * request->limit + beam->read] = row;
        if (beam->read < request->prefix_length) beam->tokens[0][beam->read] = request->prefix[beam->read];
        if (++beam->read <= request->prefix_length) continue;
        if (request->start) constrained_advance(beam, options->end);
        else beam_advance(beam, options->end);
    }
    return SUCCESS;
}
