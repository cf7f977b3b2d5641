/* Reads sources: their tokens lie one behind the other, without padding. */
#pragma once

#include "attention.h"
#include "worker.h"

/* What positions add to token vectors, (length, width), and by what they turn queries and keys; NULL for nothing. */
typedef struct {
    const float *vectors, *turns;
    int turns_width, length; /* numbers of a position's turns; positions */
} Positions;

typedef struct {
    Worker *worker;
    const Layer *layer;
    const Positions *positions;
    const int *starts; /* (count + 1) */
    int count;
} EncoderAttention;

static void attend_text(void *context, int thread, int threads) {
    const EncoderAttention *task = context;
    const Attention *attention = &task->layer->attention;
    int heads = attention->heads, keys = attention->key_width, values = attention->value_width;
    size_t stride = (size_t)heads * (2 * keys + values);
    int units = task->count * heads;
    for (int unit = (int)((int64_t)units * thread / threads); unit < (int)((int64_t)units * (thread + 1) / threads); unit++) {
        int sentence = unit / heads, head = unit % heads;
        int first = task->starts[sentence], length = task->starts[sentence + 1] - first, room = padded(length);
        float *rows = task->worker->wide + (size_t)first * stride;
        float *turned = task->worker->scratch[thread], *scores = turned + (size_t)keys * room;
        for (int place = 0; place < length; place++) {
            float *query = rows + place * stride + head * keys, *key = query + heads * keys;
            if (attention->rotary) {
                const float *turns = task->positions->turns + (size_t)place * task->positions->turns_width;
                rotate(query, turns, task->positions->turns_width);
                rotate(key, turns, task->positions->turns_width);
            }
            for (int number = 0; number < keys; number++) turned[(size_t)number * room + place] = key[number];
        }
        for (int number = 0; number < keys; number++)
            for (int place = length; place < room; place++) turned[(size_t)number * room + place] = 0;
        const float *value = rows + 2 * heads * keys + head * values;
        for (int place = 0; place < length; place++) {
            scores_by_number(rows + place * stride + head * keys, turned, keys, room, length, attention->scale, scores);
            if (attention->slopes)
                for (int other = 0; other < length; other++) scores[other] -= attention->slopes[head] * (float)abs(other - place);
            softmax(scores, length);
            float *result = task->worker->context + ((size_t)(first + place) * heads + head) * values;
            for (int number = 0; number < values; number += LANES) {
                Vector sum = all(0);
                for (int other = 0; other < length; other++) sum += scores[other] * load(value + other * stride + number);
                store(result + number, sum);
            }
        }
    }
}

/* States of `count` sources, ids one behind the other, into `worker->rows`; 0 without memory. */
static int encode(Worker *worker, const int32_t *ids, const int *starts, int count, const Positions *positions) {
    const Stack *stack = &worker->model->encoder;
    int rows = starts[count], longest = 0, widest = 0;
    for (int sentence = 0; sentence < count; sentence++)
        if (starts[sentence + 1] - starts[sentence] > longest) longest = starts[sentence + 1] - starts[sentence];
    for (int layer = 0; layer < stack->layers; layer++)
        if (stack->layer[layer].attention.key_width > widest) widest = stack->layer[layer].attention.key_width;
    if (!worker_room(worker, stack, rows, (size_t)padded(longest) * (size_t)(widest + 1) + PANEL)) return 0;
    for (int sentence = 0; sentence < count; sentence++)
        for (int row = starts[sentence]; row < starts[sentence + 1]; row++) {
            const float *token = stack->tokens + (size_t)ids[row] * stack->width;
            const float *vector = positions->vectors ? positions->vectors + (size_t)(row - starts[sentence]) * stack->width : NULL;
            for (int place = 0; place < stack->width; place += LANES)
                store(worker->rows + (size_t)row * stack->width + place, vector ? load(token + place) + load(vector + place) : load(token + place));
        }
    for (int number = 0; number < stack->layers; number++) {
        const Layer *layer = stack->layer + number;
        const float *x = before(worker, stack, &layer->around_attention, rows);
        if (!worker_multiply(worker, &layer->projections, x, worker->wide, rows, STORE)) return 0;
        EncoderAttention task = {worker, layer, positions, starts, count};
        together(worker->team, attend_text, &task);
        if (!behind(worker, stack, &layer->around_attention, &layer->output, worker->context, rows)) return 0;
        if (!feed_forward(worker, stack, layer, rows)) return 0;
    }
    if (stack->pre) normalise(&stack->norm, worker->rows, worker->rows, rows, stack->width);
    return 1;
}
