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
        float *scores = transposed + (size_t)keys * padded_length; /* (padded_length) */
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
        const float *value = rows + 2 * heads * keys + head * values;
        for (int position = 0; position < length; position++) {
            const float *query = rows + position * stride + head * keys;
            int count = task->causal ? position + 1 : length; /* the number of tokens that this one attends to */
            score_transposed_keys(query, transposed, keys, padded_length, count, attention->scale, scores);
            if (attention->slopes)
                for (int other = 0; other < count; other++) scores[other] -= attention->slopes[head] * (float)abs(other - position);
            softmax(scores, count);
            float *result = task->space->context + ((size_t)(first + position) * heads + head) * values;
            for (int i = 0; i < values; i += LANES) {
                Vector sum = broadcast(0);
                for (int other = 0; other < count; other++) sum += scores[other] * load(value + other * stride + i);
                store(result + i, sum);
            }
        }
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
    if (!workspace_reserve(space, stack, rows, (size_t)padded(longest) * (size_t)(widest_key + 1) + PANEL)) return 0;
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
