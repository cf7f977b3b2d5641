/* The encoder, which computes the states of several sources together.

   Sources are packed without padding: the ids of source s are ids[starts[s]] … ids[starts[s + 1] − 1], and row 0 of every
   buffer belongs to ids[starts[0]]. The states are written to `Workspace.rows`, (tokens, width). A row of projections contains queries, then keys, then
   values, each ordered by head: heads · (2 · key width + value width) floats. */
#pragma once

#include "attention.h"
#include "workspace.h"

typedef struct {
    Workspace *space;
    const Layer *layer;
    const Positions *positions;
    const int *starts; /* (count + 1) */
    int count, causal;
} EncoderAttention;

/* The number of queries that are computed together, so that each key and value is loaded once for all of them. */
#define QUERIES 4

/* Computes the scores of `queries` queries (queries, query_stride) with `vectors` · LANES transposed keys (width, stride).
   scores: (queries, stride). The last two arguments are compile-time constants at every call, as in `mean_tile`. */
INLINE void score_tile(
    const float *query, size_t query_stride, const float *keys, int width, int stride, float scale, float *scores, int queries, int vectors
) {
    Vector sums[QUERIES][2];
#pragma GCC unroll 8
    for (int sum = 0; sum < queries * vectors; sum++) sums[sum / vectors][sum % vectors] = broadcast(0);
    for (int i = 0; i < width; i++) {
        Vector key[2];
#pragma GCC unroll 2
        for (int vector = 0; vector < vectors; vector++) key[vector] = load(keys + (size_t)i * stride + vector * LANES);
#pragma GCC unroll 8
        for (int sum = 0; sum < queries * vectors; sum++)
            sums[sum / vectors][sum % vectors] += query[sum / vectors * query_stride + i] * key[sum % vectors];
    }
#pragma GCC unroll 8
    for (int sum = 0; sum < queries * vectors; sum++)
        store(scores + (size_t)(sum / vectors) * stride + sum % vectors * LANES, sums[sum / vectors][sum % vectors] * scale);
}

/* Computes `vectors` · LANES components of the weighted sums of `count` values (count, value_stride).
   weights: (queries, stride). result: (queries, result_stride). */
INLINE void mean_tile(
    const float *weights, int stride, const float *values, size_t value_stride, int count, float *result, size_t result_stride, int queries,
    int vectors
) {
    Vector sums[QUERIES][2];
#pragma GCC unroll 8
    for (int sum = 0; sum < queries * vectors; sum++) sums[sum / vectors][sum % vectors] = broadcast(0);
    for (int other = 0; other < count; other++) {
        Vector value[2];
#pragma GCC unroll 2
        for (int vector = 0; vector < vectors; vector++) value[vector] = load(values + other * value_stride + vector * LANES);
#pragma GCC unroll 8
        for (int sum = 0; sum < queries * vectors; sum++)
            sums[sum / vectors][sum % vectors] += weights[(size_t)(sum / vectors) * stride + other] * value[sum % vectors];
    }
#pragma GCC unroll 8
    for (int sum = 0; sum < queries * vectors; sum++)
        store(result + sum / vectors * result_stride + sum % vectors * LANES, sums[sum / vectors][sum % vectors]);
}

/* One head of one source: pointers to its first query, key and value, its transposed keys, and its first result. */
typedef struct {
    const Attention *attention;
    const float *query, *value; /* rows of `stride` floats */
    const float *transposed;    /* (key width, padded_length) */
    float *scores;              /* (QUERIES, padded_length) */
    float *result;              /* rows of heads · value width floats */
    size_t stride;
    int length, padded_length, head, causal;
} EncoderHead;

/* Computes the results of the `queries` tokens from `position`. queries: a compile-time constant at every call. */
INLINE void attend(const EncoderHead *head, int position, int queries) {
    const Attention *attention = head->attention;
    int keys = attention->key_width, values = attention->value_width, padded_length = head->padded_length, key = 0, i = 0;
    int count = head->causal ? position + queries : head->length; /* the number of tokens that any of these attends to */
    const float *query = head->query + position * head->stride;
    for (; key + LANES < count; key += 2 * LANES)
        score_tile(query, head->stride, head->transposed + key, keys, padded_length, attention->scale, head->scores + key, queries, 2);
    if (key < count) score_tile(query, head->stride, head->transposed + key, keys, padded_length, attention->scale, head->scores + key, queries, 1);
    for (int each = 0; each < queries; each++) {
        float *scores = head->scores + (size_t)each * padded_length;
        int own_count = head->causal ? position + each + 1 : count;
        if (attention->slopes)
            for (int other = 0; other < own_count; other++)
                scores[other] -= attention->slopes[head->head] * (float)abs(other - position - each);
        softmax(scores, own_count);
        for (int other = own_count; other < count; other++) scores[other] = 0;
    }
    size_t result_stride = (size_t)attention->heads * values;
    float *result = head->result + position * result_stride;
    for (; i + LANES < values; i += 2 * LANES)
        mean_tile(head->scores, padded_length, head->value + i, head->stride, count, result + i, result_stride, queries, 2);
    if (i < values) mean_tile(head->scores, padded_length, head->value + i, head->stride, count, result + i, result_stride, queries, 1);
}

/* Computes a share of the heads of all sources. */
static void encoder_attention(void *context, int share, int shares) {
    const EncoderAttention *task = context;
    const Attention *attention = &task->layer->attention;
    int heads = attention->heads, keys = attention->key_width, values = attention->value_width;
    size_t stride = (size_t)heads * (2 * keys + values);
    int units = task->count * heads;
    for (int unit = (int)((int64_t)units * share / shares); unit < (int)((int64_t)units * (share + 1) / shares); unit++) {
        int sentence = unit / heads, head = unit % heads;
        int first = task->starts[sentence] - task->starts[0], length = task->starts[sentence + 1] - task->starts[sentence];
        int padded_length = padded(length);
        float *rows = task->space->wide + (size_t)first * stride; /* (length, stride) */
        float *transposed = task->space->scratch[share];         /* (keys, padded_length) */
        for (int position = 0; position < length; position++) {
            float *query = rows + position * stride + head * keys, *key = query + heads * keys;
            if (attention->rotary) {
                const float *angles = task->positions->angles + (size_t)position * task->positions->angles_width;
                rotate(query, angles, task->positions->angles_width);
                rotate(key, angles, task->positions->angles_width);
            }
            for (int i = 0; i < keys; i++) transposed[(size_t)i * padded_length + position] = key[i];
        }
        for (int i = 0; i < keys; i++)
            for (int position = length; position < padded_length; position++) transposed[(size_t)i * padded_length + position] = 0;
        EncoderHead one = {
            .attention = attention,
            .query = rows + head * keys,
            .value = rows + 2 * heads * keys + head * values,
            .transposed = transposed,
            .scores = transposed + (size_t)keys * padded_length,
            .result = task->space->context + ((size_t)first * heads + head) * values,
            .stride = stride,
            .length = length,
            .padded_length = padded_length,
            .head = head,
            .causal = task->causal,
        };
        int position = 0;
        for (; position + QUERIES <= length; position += QUERIES) attend(&one, position, QUERIES);
        for (; position < length; position++) attend(&one, position, 1);
    }
}

/* Encodes `count` sources with packed ids; returns 0 if memory runs out. segments: the segment of each id, or NULL. */
static int encode(
    Workspace *space, const int32_t *ids, const int32_t *segments, const int *starts, int count, const Positions *positions
) {
    const Stack *stack = &space->model->encoder;
    int rows = starts[count] - starts[0], longest = 0, widest_key = 0;
    for (int sentence = 0; sentence < count; sentence++)
        if (starts[sentence + 1] - starts[sentence] > longest) longest = starts[sentence + 1] - starts[sentence];
    for (int layer = 0; layer < stack->layers; layer++)
        if (stack->layer[layer].attention.key_width > widest_key) widest_key = stack->layer[layer].attention.key_width;
    if (!workspace_reserve(space, stack, rows, (size_t)padded(longest) * (size_t)(widest_key + QUERIES) + PANEL)) return 0;
    for (int sentence = 0; sentence < count; sentence++)
        for (int token = starts[sentence]; token < starts[sentence + 1]; token++) {
            const float *segment = segments ? stack->segments + (size_t)segments[token] * stack->width : NULL;
            float *row = space->rows + (size_t)(token - starts[0]) * stack->width;
            embed(stack, segment, positions, ids[token], token - starts[sentence], row);
        }
    if (stack->embedding_norm.width) normalise(&stack->embedding_norm, space->rows, space->rows, rows, stack->width);
    for (int number = 0; number < stack->layers; number++) {
        const Layer *layer = stack->layer + number;
        const float *x = sublayer_input(space, stack, &layer->around_attention, rows);
        if (!project(space, &layer->projections, x, space->wide, rows, STORE)) return 0;
        EncoderAttention task = {space, layer, positions, starts, count, stack->causal};
        parallel_run(space->team, encoder_attention, &task);
        if (!add_projected(space, stack, &layer->around_attention, &layer->output, space->context, rows)) return 0;
        if (!feed_forward(space, stack, layer, rows)) return 0;
    }
    if (stack->pre) normalise(&stack->norm, space->rows, space->rows, rows, stack->width);
    return 1;
}
