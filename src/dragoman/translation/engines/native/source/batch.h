/* The batch of one worker: sequences that are decoded together; new sequences replace those that have ended.

   A `Batch` owns its arrays and its `Options.batch` sequences. Running sequences are running[0 … count − 1]; idle ones
   are the first `Options.batch` − `count` of `idle`. Requests belong to the caller. */
#pragma once

#include "decoder.h"
#include "queue.h"

/* The data that workers share. The model and the options are read-only. */
typedef struct {
    const Model *model;
    const Options *options;
    Team *team; /* the team of a single worker; with several workers, each has a team of one thread */
    Queue *queue;
} WorkerContext;

typedef struct {
    const WorkerContext *context;
    Sequence *sequences;           /* (batch) */
    Sequence **running, **idle;    /* (batch) */
    Request **requests;            /* (batch): the requests that are being admitted or were just completed */
    int *starts;                   /* (batch + 1): the first token of each admitted source in `ids` */
    int32_t *ids;                  /* packed sources */
    size_t ids_capacity;
    int *sequence_of;              /* (rows): the running sequence of each live hypothesis */
    int rows_capacity;
    size_t *offsets;               /* (batch) */
    int count;                     /* running sequences */
    int target;                    /* sequences to decode together, for the beam size of the last one admitted */
    AdmissionLimits limits;
} Batch;

#define ENCODED_TOKENS 2048 /* maximum number encoded together, unless a single source has more */

/* Rows that are decoded together with 8-bit weights. If the weights, a few megabytes, fit into a cache, few rows
   suffice, and more rows would evict them; larger weights must be shared by more rows. */
#define LEAST_INT8_ROWS 20
#define WEIGHTS_PER_INT8_ROW 300000

static size_t weight_count(const Matrix *matrix) { return (size_t)matrix->outputs * matrix->inputs; }

/* Returns the number of weights that a step of the decoder reads. */
static size_t weights_per_step(const Model *model) {
    size_t count = weight_count(&model->vocabulary);
    for (int number = 0; number < model->decoder.layers; number++) {
        const Layer *layer = model->decoder.layer + number;
        count += weight_count(&layer->projections) + weight_count(&layer->output) + weight_count(&layer->source_query) +
                 weight_count(&layer->source_output) + weight_count(&layer->inner) + weight_count(&layer->gate) + weight_count(&layer->outer);
    }
    return count;
}

static AdmissionLimits admission_limits(const Model *model, const Options *options) {
    AdmissionLimits limits = {options->batch, 0, ENCODED_TOKENS};
    if (model->vocabulary.precision == FLOAT32) return limits;
    limits.rows = (int)(weights_per_step(model) / WEIGHTS_PER_INT8_ROW);
    if (limits.rows < LEAST_INT8_ROWS) limits.rows = LEAST_INT8_ROWS;
    return limits;
}

static void batch_free(Batch *batch) {
    for (int number = 0; batch->sequences && number < batch->context->options->batch; number++) {
        beam_free(&batch->sequences[number].beam);
        free(batch->sequences[number].cache);
    }
    free(batch->sequences), free(batch->running), free(batch->idle), free(batch->requests);
    free(batch->starts), free(batch->sequence_of), free(batch->ids), free(batch->offsets);
}

/* Returns 0 if memory runs out. */
static int batch_begin(Batch *batch, const WorkerContext *context) {
    memset(batch, 0, sizeof *batch);
    batch->context = context;
    size_t size = (size_t)context->options->batch;
    batch->target = context->options->batch;
    batch->limits = admission_limits(context->model, context->options);
    batch->sequences = calloc(size, sizeof *batch->sequences);
    batch->running = calloc(size, sizeof *batch->running);
    batch->idle = calloc(size, sizeof *batch->idle);
    batch->requests = calloc(size, sizeof *batch->requests);
    batch->starts = calloc(size + 1, sizeof *batch->starts);
    batch->offsets = calloc(size, sizeof *batch->offsets);
    if (!batch->sequences || !batch->running || !batch->idle || !batch->requests || !batch->starts || !batch->offsets) return 0;
    for (size_t number = 0; number < size; number++) batch->idle[number] = batch->sequences + number;
    return 1;
}

/* Takes requests from the queue, encodes their sources and assigns them to idle sequences.
   Returns 0 if memory runs out. */
static int admit(Batch *batch, Workspace *space) {
    const Options *options = batch->context->options;
    int taken = queue_take(batch->context->queue, batch->requests, batch->count, &batch->limits);
    if (!taken) return 1;
    batch->target = target_batch(&batch->limits, batch->requests[taken - 1]->beam);
    batch->starts[0] = 0;
    for (int number = 0; number < taken; number++)
        batch->starts[number + 1] = batch->starts[number] + batch->requests[number]->length;
    size_t tokens = (size_t)batch->starts[taken];
    if (tokens > batch->ids_capacity) {
        free(batch->ids);
        batch->ids = malloc(tokens * sizeof *batch->ids);
        batch->ids_capacity = batch->ids ? tokens : 0;
        if (!batch->ids) return 0;
    }
    for (int number = 0; number < taken; number++) {
        const Request *request = batch->requests[number];
        memcpy(batch->ids + batch->starts[number], request->source, (size_t)request->length * sizeof *batch->ids);
    }
    if (!encode(space, batch->ids, batch->starts, taken, &options->source)) return 0;
    Sequence **admitted = batch->running + batch->count;
    for (int number = 0; number < taken; number++) {
        Sequence *sequence = batch->idle[options->batch - batch->count - 1];
        if (!sequence_begin(&space->model->decoder, sequence, batch->requests[number])) return 0;
        batch->running[batch->count++] = sequence;
    }
    return store_sources(space, admitted, batch->starts, taken);
}

/* Decodes one more token of all running sequences; returns an `Outcome`. */
static int advance_batch(Batch *batch, Workspace *space) {
    const Options *options = batch->context->options;
    int rows = 0;
    for (int number = 0; number < batch->count; number++) rows += batch->running[number]->beam.live;
    if (rows > batch->rows_capacity) {
        free(batch->sequence_of);
        batch->sequence_of = malloc((size_t)rows * 2 * sizeof *batch->sequence_of);
        batch->rows_capacity = batch->sequence_of ? 2 * rows : 0;
        if (!batch->sequence_of) return NO_MEMORY;
    }
    int outcome = decode_step(space, batch->running, batch->count, options, batch->sequence_of, batch->offsets);
    if (outcome != FINE) return outcome;
    int remaining = 0, completed = 0;
    for (int number = 0; number < batch->count; number++) {
        Sequence *sequence = batch->running[number];
        if (sequence->beam.request->found < 0) {
            batch->running[remaining++] = sequence;
            continue;
        }
        batch->idle[options->batch - batch->count + completed] = sequence;
        batch->requests[completed++] = sequence->beam.request;
    }
    batch->count = remaining;
    queue_complete(batch->context->queue, batch->requests, completed);
    return FINE;
}

/* Runs until the queue is closed and empty, or an error occurs. */
static void run_worker(const WorkerContext *context) {
    Workspace space;
    Batch batch;
    int begun = workspace_begin(&space, context->model, context->team);
    begun = batch_begin(&batch, context) && begun;
    int outcome = begun ? FINE : NO_MEMORY;
    while (outcome == FINE) {
        /* several sources are encoded at a time, since the encoder's matrix products would otherwise be small */
        if (4 * (batch.target - batch.count) >= batch.target && !admit(&batch, &space)) outcome = NO_MEMORY;
        if (outcome != FINE || !batch.count || queue_is_cancelled(context->queue)) break;
        outcome = advance_batch(&batch, &space);
    }
    queue_leave(context->queue, outcome);
    workspace_free(&space);
    batch_free(&batch);
}

static void *worker_main(void *context) {
    run_worker(context);
    return NULL;
}
