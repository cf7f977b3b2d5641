/* What one worker holds: a team of threads, and room for the rows that it computes. */
#pragma once

#include "model.h"

typedef struct {
    const Model *model;
    Team *team;
    Codes *codes;      /* one a thread */
    float **scratch;   /* one a thread: scores, and an encoder's turned keys */
    size_t *scratch_room;
    float *rows, *normed, *wide, *gated, *context, *logits;
    size_t rows_room, normed_room, wide_room, gated_room, context_room, logits_room;
} Worker;

static void worker_end(Worker *worker) {
    for (int thread = 0; thread < worker->team->size; thread++) {
        if (worker->codes) free(worker->codes[thread].codes), free(worker->codes[thread].scales);
        if (worker->scratch) free(worker->scratch[thread]);
    }
    free(worker->codes), free(worker->scratch), free(worker->scratch_room);
    free(worker->rows), free(worker->normed), free(worker->wide), free(worker->gated), free(worker->context), free(worker->logits);
}

/* 0 without memory. */
static int worker_begin(Worker *worker, const Model *model, Team *team) {
    memset(worker, 0, sizeof *worker);
    worker->model = model;
    worker->team = team;
    worker->codes = calloc((size_t)team->size, sizeof *worker->codes);
    worker->scratch = calloc((size_t)team->size, sizeof *worker->scratch);
    worker->scratch_room = calloc((size_t)team->size, sizeof *worker->scratch_room);
    return worker->codes && worker->scratch && worker->scratch_room;
}

/* Room for so many rows of a stack, and so many floats of scratch a thread. */
static int worker_room(Worker *worker, const Stack *stack, int rows, size_t scratch) {
    size_t count = (size_t)rows, width = (size_t)stack->width, inner = (size_t)stack->longest_inner;
    for (int thread = 0; thread < worker->team->size; thread++)
        if (!enough(worker->scratch + thread, worker->scratch_room + thread, scratch)) return 0;
    return enough(&worker->rows, &worker->rows_room, count * width) && enough(&worker->normed, &worker->normed_room, count * width) &&
           enough(&worker->wide, &worker->wide_room, count * inner) && enough(&worker->gated, &worker->gated_room, count * inner) &&
           enough(&worker->context, &worker->context_room, count * inner);
}

static int worker_multiply(Worker *worker, const Matrix *matrix, const float *x, float *y, int rows, int epilogue) {
    return multiply(
        worker->team, worker->codes, matrix, x, (size_t)matrix->inputs, y, (size_t)matrix->outputs, rows, epilogue
    );
}

/* The input of a sublayer: the rows, or what a norm before it makes of them. */
static const float *before(Worker *worker, const Stack *stack, const Norm *norm, int rows) {
    if (!stack->pre) return worker->rows;
    normalise(norm, worker->rows, worker->normed, rows, stack->width);
    return worker->normed;
}

/* Adds a sublayer's last product to the rows, and normalises them where the norm stands behind. */
static int behind(Worker *worker, const Stack *stack, const Norm *norm, const Matrix *matrix, const float *x, int rows) {
    if (!worker_multiply(worker, matrix, x, worker->rows, rows, ADD)) return 0;
    if (!stack->pre) normalise(norm, worker->rows, worker->rows, rows, stack->width);
    return 1;
}

/* The same with a sublayer's result as it is. */
static void joined(Worker *worker, const Stack *stack, const Norm *norm, const float *result, int rows) {
    size_t count = (size_t)rows * stack->width;
    for (size_t place = 0; place < count; place += LANES)
        store(worker->rows + place, load(worker->rows + place) + load(result + place));
    if (!stack->pre) normalise(norm, worker->rows, worker->rows, rows, stack->width);
}

static int feed_forward(Worker *worker, const Stack *stack, const Layer *layer, int rows) {
    const float *x = before(worker, stack, &layer->around_feedforward, rows);
    static const int epilogues[] = {RELU, GELU, SWISH, SWISH}; /* by activation; a gate is multiplied below */
    int epilogue = epilogues[layer->activation];
    if (!worker_multiply(worker, &layer->inner, x, worker->wide, rows, epilogue)) return 0;
    if (layer->activation == ACTIVATION_SWIGLU) {
        if (!worker_multiply(worker, &layer->gate, x, worker->gated, rows, STORE)) return 0;
        size_t count = (size_t)rows * layer->inner.outputs;
        for (size_t place = 0; place < count; place += LANES)
            store(worker->wide + place, load(worker->wide + place) * load(worker->gated + place));
    }
    return behind(worker, stack, &layer->around_feedforward, &layer->outer, worker->wide, rows);
}
