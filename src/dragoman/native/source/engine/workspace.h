/* The workspace of one worker: its team of threads, its buffers, and functions that compute parts of a layer.

   A `Workspace` owns its buffers, which never shrink. `rows` (the residual stream) and `normed` are (rows, width).
   `wide`, `gated` and `context` are (rows, widest). `logits` is (LOGIT_ROWS, vocabulary). `scratch` has one buffer per
   thread, for scores and for the encoder's transposed keys. All buffers are aligned to 64 bytes. The workspace does not
   own the model and the team. */
#pragma once

#include "model.h"

typedef struct {
    const Model *model;
    Team *team;
    QuantizedRows *quantized; /* one per thread */
    float **scratch;          /* one per thread */
    size_t *scratch_capacity;
    float *rows, *normed, *wide, *gated, *context, *logits;
    size_t rows_capacity, normed_capacity, wide_capacity, gated_capacity, context_capacity, logits_capacity;
} Workspace;

static void workspace_free(Workspace *space) {
    for (int thread = 0; thread < space->team->size; thread++) {
        if (space->quantized) free(space->quantized[thread].codes), free(space->quantized[thread].scales);
        if (space->scratch) free(space->scratch[thread]);
    }
    free(space->quantized), free(space->scratch), free(space->scratch_capacity);
    free(space->rows), free(space->normed), free(space->wide), free(space->gated), free(space->context), free(space->logits);
}

/* Returns 0 if memory runs out. */
static int workspace_init(Workspace *space, const Model *model, Team *team) {
    memset(space, 0, sizeof *space);
    space->model = model;
    space->team = team;
    space->quantized = calloc((size_t)team->size, sizeof *space->quantized);
    space->scratch = calloc((size_t)team->size, sizeof *space->scratch);
    space->scratch_capacity = calloc((size_t)team->size, sizeof *space->scratch_capacity);
    return space->quantized && space->scratch && space->scratch_capacity;
}

/* Grows the buffers for `rows` rows of a stack. scratch: the number of floats of scratch memory per thread.
   Returns 0 if memory runs out. */
static int workspace_reserve(Workspace *space, const Stack *stack, int rows, size_t scratch) {
    size_t count = (size_t)rows, width = (size_t)stack->width, widest = (size_t)stack->widest;
    for (int thread = 0; thread < space->team->size; thread++)
        if (!reserve(space->scratch + thread, space->scratch_capacity + thread, scratch)) return 0;
    return reserve(&space->rows, &space->rows_capacity, count * width) &&
           reserve(&space->normed, &space->normed_capacity, count * width) &&
           reserve(&space->wide, &space->wide_capacity, count * widest) &&
           reserve(&space->gated, &space->gated_capacity, count * widest) &&
           reserve(&space->context, &space->context_capacity, count * widest);
}

/* Computes y (rows, outputs) = x (rows, inputs) Wᵀ + b; returns 0 if memory runs out. */
static int project(Workspace *space, const Matrix *matrix, const float *x, float *y, int rows, int epilogue) {
    return matmul(space->team, space->quantized, matrix, x, (size_t)matrix->inputs, y, (size_t)matrix->outputs, rows, epilogue);
}

/* Writes the first layer's input to a row: the token vector, plus the vectors of its segment and its position if the model
   has them. segment: (width), or NULL. */
INLINE void embed(const Stack *stack, const float *segment, const Positions *positions, int32_t id, int position, float *row) {
    const float *token = stack->tokens + (size_t)(id == stack->begin ? stack->replaced : id) * stack->width;
    const float *vector = positions->vectors ? positions->vectors + (size_t)position * stack->width : NULL;
    for (int i = 0; i < stack->width; i += LANES) {
        Vector sum = load(token + i) * stack->scale;
        if (segment) sum += load(segment + i);
        if (vector) sum += load(vector + i);
        store(row + i, sum);
    }
}

/* Returns the input of a sublayer (rows, width): the residual stream, which is normalised in a pre-norm model. */
static const float *sublayer_input(Workspace *space, const Stack *stack, const Norm *norm, int rows) {
    if (!stack->pre) return space->rows;
    normalise(norm, space->rows, space->normed, rows, stack->width);
    return space->normed;
}

/* Adds a sublayer's last product to the residual stream, which is then normalised in a post-norm model. */
static int add_projected(Workspace *space, const Stack *stack, const Norm *norm, const Matrix *matrix, const float *x, int rows) {
    if (!project(space, matrix, x, space->rows, rows, ADD)) return 0;
    if (!stack->pre) normalise(norm, space->rows, space->rows, rows, stack->width);
    return 1;
}

/* Like `add_projected`, but without a product: adds `result` (rows, width) itself. */
static void add_residual(Workspace *space, const Stack *stack, const Norm *norm, const float *result, int rows) {
    size_t count = (size_t)rows * stack->width;
    for (size_t i = 0; i < count; i += LANES) store(space->rows + i, load(space->rows + i) + load(result + i));
    if (!stack->pre) normalise(norm, space->rows, space->rows, rows, stack->width);
}

static int feed_forward(Workspace *space, const Stack *stack, const Layer *layer, int rows) {
    const float *x = sublayer_input(space, stack, &layer->around_feedforward, rows);
    static const int epilogues[] = {RELU, GELU, SWISH, SWISH, GELU_TANH}; /* by activation; the gate is applied below */
    int epilogue = epilogues[layer->activation];
    if (!project(space, &layer->inner, x, space->wide, rows, epilogue)) return 0;
    if (layer->activation == ACTIVATION_SWIGLU) {
        if (!project(space, &layer->gate, x, space->gated, rows, STORE)) return 0;
        size_t count = (size_t)rows * layer->inner.outputs;
        for (size_t i = 0; i < count; i += LANES) store(space->wide + i, load(space->wide + i) * load(space->gated + i));
    }
    return add_projected(space, stack, &layer->around_feedforward, &layer->outer, space->wide, rows);
}
