/* The batch of one worker: sequences that are decoded together. New sequences replace completed sequences.

   A `Batch` owns its arrays and its `Options.batch` sequences. Running sequences are running[0 … count − 1]. Idle
   sequences are the first `Options.batch` − `count` elements of `idle`. Requests belong to the caller. */
#pragma once

#include "decoder.h"
#include "queue.h"

/* The data that workers share. The model and the options are read-only. */
typedef struct {
    const Model *model;
    const Options *options;
    Team *team; /* the team of a single worker; several workers use a team with a single thread */
    Queue *queue;
} WorkerContext;

typedef struct {
    const WorkerContext *context;
    Sequence *sequences;           /* (batch) */
    Sequence **running, **idle;    /* (batch) */
    Request **requests;            /* (batch): the requests that are being admitted or were just completed */
    int *starts;                   /* (batch + 1): the index in `ids` of the first token of each admitted source */
    int32_t *ids;                  /* packed sources */
    size_t ids_capacity;
    int *sequence_of;              /* (rows): the running sequence of each live hypothesis */
    int rows_capacity;
    size_t *offsets;               /* (batch) */
    int count;                     /* number of running sequences */
    int target;                    /* number of sequences to decode together, for the last admitted beam size */
    AdmissionLimits limits;
} Batch;

#define MAX_ENCODED_TOKENS 2048 /* maximum number of tokens encoded together, unless a single source has more */

/* The number of rows that are decoded together with 8-bit weights. If the weights are small enough to fit into a cache
   (a few megabytes), few rows suffice, and more rows would evict the weights. Larger weights must be shared by more
   rows. */
#define MIN_INT8_ROWS 20
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
    AdmissionLimits limits = {options->batch, 0, MAX_ENCODED_TOKENS};
    if (model->vocabulary.precision != INT8) return limits;
    limits.rows = (int)(weights_per_step(model) / WEIGHTS_PER_INT8_ROW);
    if (limits.rows < MIN_INT8_ROWS) limits.rows = MIN_INT8_ROWS;
    return limits;
}

static void batch_free(Batch *batch) {
    for (int number = 0; batch->sequences && number < batch->context->options->batch; number++) {
        beam_free(&batch->sequences[number].beam);
        free(batch->sequences[number].cache);
        matrix_free(&batch->sequences[number].vocabulary);
    }
    free(batch->sequences), free(batch->running), free(batch->idle), free(batch->requests);
    free(batch->starts), free(batch->sequence_of), free(batch->ids), free(batch->offsets);
}

/* Returns 0 if memory runs out. */
static int batch_init(Batch *batch, const WorkerContext *context) {
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

static int is_cancelled(const Request *request) { return __atomic_load_n(&request->cancelled, __ATOMIC_RELAXED); }

/* Removes requests from the queue into `requests`, and returns their number. Cancelled requests are completed instead:
   to encode thousands of them would take seconds. */
static int take_requests(Batch *batch) {
    Queue *queue = batch->context->queue;
    int taken, kept = 0;
    while (!kept && (taken = queue_take(queue, batch->requests, batch->count, &batch->limits)))
        for (int number = 0; number < taken; number++) {
            Request *request = batch->requests[number];
            if (!is_cancelled(request)) {
                batch->requests[kept++] = request;
                continue;
            }
            request->hypothesis_count = 0;
            queue_complete(queue, &request, 1);
        }
    return kept;
}

/* Removes requests from the queue, encodes their sources and assigns the requests to idle sequences.
   Returns 0 if memory runs out. */
static int admit(Batch *batch, Workspace *space) {
    const Options *options = batch->context->options;
    int admitted_count = take_requests(batch);
    if (!admitted_count) return 1;
    batch->target = target_batch_size(&batch->limits, batch->requests[admitted_count - 1]->beam);
    batch->starts[0] = 0;
    for (int number = 0; number < admitted_count; number++)
        batch->starts[number + 1] = batch->starts[number] + batch->requests[number]->length;
    size_t tokens = (size_t)batch->starts[admitted_count];
    if (tokens > batch->ids_capacity) {
        free(batch->ids);
        batch->ids = malloc(tokens * sizeof *batch->ids);
        batch->ids_capacity = batch->ids ? tokens : 0;
        if (!batch->ids) return 0;
    }
    for (int number = 0; number < admitted_count; number++) {
        const Request *request = batch->requests[number];
        memcpy(batch->ids + batch->starts[number], request->source, (size_t)request->length * sizeof *batch->ids);
    }
    if (!encode(space, batch->ids, NULL, batch->starts, admitted_count, &options->source)) return 0;
    Sequence **admitted = batch->running + batch->count;
    for (int number = 0; number < admitted_count; number++) {
        Sequence *sequence = batch->idle[options->batch - batch->count - 1];
        if (!sequence_init(space->model, sequence, batch->requests[number])) return 0;
        batch->running[batch->count++] = sequence;
    }
    return store_sources(space, admitted, batch->starts, admitted_count);
}

/* Decodes the next token of each running sequence; returns an `Outcome`. */
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
    if (outcome != SUCCESS) return outcome;
    int remaining = 0, completed = 0;
    for (int number = 0; number < batch->count; number++) {
        Sequence *sequence = batch->running[number];
        Request *request = sequence->beam.request;
        if (request->hypothesis_count < 0 && is_cancelled(request)) request->hypothesis_count = 0;
        if (request->hypothesis_count < 0) {
            batch->running[remaining++] = sequence;
            continue;
        }
        batch->idle[options->batch - batch->count + completed] = sequence;
        batch->requests[completed++] = request;
    }
    batch->count = remaining;
    queue_complete(batch->context->queue, batch->requests, completed);
    return SUCCESS;
}

/* Runs until the queue is closed and empty, or an error occurs. */
static void run_worker(const WorkerContext *context) {
    Workspace space;
    Batch batch;
    int initialised = workspace_init(&space, context->model, context->team);
    initialised = batch_init(&batch, context) && initialised;
    int outcome = initialised ? SUCCESS : NO_MEMORY;
    while (outcome == SUCCESS) {
        /* sources are admitted in groups, so that the encoder's matrix products are large */
        if (4 * (batch.target - batch.count) >= batch.target && !admit(&batch, &space)) outcome = NO_MEMORY;
        if (outcome != SUCCESS || !batch.count || queue_is_cancelled(context->queue)) break;
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
