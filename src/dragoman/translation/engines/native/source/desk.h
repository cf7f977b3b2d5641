/* What one worker does: it takes texts from a queue, has several at work at a time, and takes more as some are done. */
#pragma once

#include "decoder.h"
#include "queue.h"

typedef struct {
    Positions source, target;
    int32_t begin, end; /* ids of the beginning and the end of a sentence */
    int32_t workers, batch; /* batch: sentences that a worker has at work at most */
} Plan;

typedef struct {
    const Model *model;
    const Plan *plan;
    Team *team;
    Queue *queue;
} Share;

#define ENCODED_TOKENS 2048 /* that are read together at most, where a text has no more by itself */

typedef struct {
    const Share *share;
    Slot *all, **working, **idle;
    Text **texts;
    int *starts, *slot_of;
    int32_t *ids;
    size_t *offsets;
    size_t ids_room;
    int rows_room, at_work;
    int most; /* sentences that are best at work together, by the last one's beam */
    int tokens; /* of the texts that are being taken on */
} Desk;

static void desk_free(Desk *desk) {
    for (int number = 0; desk->all && number < desk->share->plan->batch; number++) {
        hypotheses_free(&desk->all[number].hypotheses);
        free(desk->all[number].memory);
    }
    free(desk->all), free(desk->working), free(desk->idle), free(desk->texts);
    free(desk->starts), free(desk->slot_of), free(desk->ids), free(desk->offsets);
}

static int desk_begin(Desk *desk, const Share *share) {
    memset(desk, 0, sizeof *desk);
    desk->share = share;
    size_t size = (size_t)share->plan->batch;
    desk->most = share->plan->batch;
    desk->all = calloc(size, sizeof *desk->all);
    desk->working = calloc(size, sizeof *desk->working);
    desk->idle = calloc(size, sizeof *desk->idle);
    desk->texts = calloc(size, sizeof *desk->texts);
    desk->starts = calloc(size + 1, sizeof *desk->starts);
    desk->offsets = calloc(size, sizeof *desk->offsets);
    if (!desk->all || !desk->working || !desk->idle || !desk->texts || !desk->starts || !desk->offsets) return 0;
    for (size_t number = 0; number < size; number++) desk->idle[number] = desk->all + number;
    return 1;
}

/* Rows of 8-bit codes that are best at work: weights of a few megabytes come from a cache fast enough for few rows, and
   what more rows hold would drive them out of it; larger weights must be shared by more rows. */
#define LEAST_CODED_ROWS 20
#define WEIGHTS_OF_A_CODED_ROW 300000

static size_t weights_of(const Matrix *matrix) { return (size_t)matrix->outputs * matrix->inputs; }

/* Weights that a step of the decoder reads. */
static size_t weights_of_step(const Model *model) {
    size_t count = weights_of(&model->vocabulary);
    for (int number = 0; number < model->decoder.layers; number++) {
        const Layer *layer = model->decoder.layer + number;
        count += weights_of(&layer->projections) + weights_of(&layer->output) + weights_of(&layer->source_query) +
                 weights_of(&layer->source_output) + weights_of(&layer->inner) + weights_of(&layer->gate) + weights_of(&layer->outer);
    }
    return count;
}

/* Sentences of a beam size that a worker has at work: as many as it may, or as are best. */
static int best_batch(const Share *share, int beam) {
    if (share->model->vocabulary.precision == FLOAT32) return share->plan->batch;
    int rows = (int)(weights_of_step(share->model) / WEIGHTS_OF_A_CODED_ROW);
    if (rows < LEAST_CODED_ROWS) rows = LEAST_CODED_ROWS;
    int best = rows / beam > 1 ? rows / beam : 1;
    return best < share->plan->batch ? best : share->plan->batch;
}

static int may_have(void *context, const Text *text, int own) {
    Desk *desk = context;
    int most = best_batch(desk->share, text->beam);
    if (own && (own >= most || desk->tokens >= ENCODED_TOKENS)) return 0;
    desk->most = most;
    desk->tokens += text->length;
    return 1;
}

/* Gives idle slots the next texts; 0 without memory. */
static int take_on(Desk *desk, Worker *worker) {
    const Plan *plan = desk->share->plan;
    desk->tokens = 0;
    int taken = queue_take(desk->share->queue, desk->texts, desk->at_work, may_have, desk);
    if (!taken) return 1;
    size_t tokens = (size_t)desk->tokens;
    if (tokens > desk->ids_room) {
        free(desk->ids);
        desk->ids = malloc(tokens * sizeof *desk->ids);
        desk->ids_room = desk->ids ? tokens : 0;
        if (!desk->ids) return 0;
    }
    desk->starts[0] = 0;
    for (int number = 0; number < taken; number++) {
        const Text *text = desk->texts[number];
        memcpy(desk->ids + desk->starts[number], text->source, (size_t)text->length * sizeof *desk->ids);
        desk->starts[number + 1] = desk->starts[number] + text->length;
    }
    if (!encode(worker, desk->ids, desk->starts, taken, &plan->source)) return 0;
    Slot **begun = desk->working + desk->at_work;
    for (int number = 0; number < taken; number++) {
        Slot *slot = desk->idle[plan->batch - desk->at_work - 1];
        if (!slot_begin(&worker->model->decoder, slot, desk->texts[number])) return 0;
        desk->working[desk->at_work++] = slot;
    }
    return hold_sources(worker, begun, desk->starts, taken);
}

/* One token more of all that is at work; an `Outcome`. */
static int advance_all(Desk *desk, Worker *worker) {
    const Plan *plan = desk->share->plan;
    int rows = 0;
    for (int number = 0; number < desk->at_work; number++) rows += desk->working[number]->hypotheses.live;
    if (rows > desk->rows_room) {
        free(desk->slot_of);
        desk->slot_of = malloc((size_t)rows * 2 * sizeof *desk->slot_of);
        desk->rows_room = desk->slot_of ? 2 * rows : 0;
        if (!desk->slot_of) return NO_MEMORY;
    }
    int outcome = step(worker, desk->working, desk->at_work, &plan->target, plan->begin, plan->end, desk->slot_of, desk->offsets);
    if (outcome != FINE) return outcome;
    int stays = 0, done = 0;
    for (int number = 0; number < desk->at_work; number++) {
        Slot *slot = desk->working[number];
        if (slot->hypotheses.text->found < 0) {
            desk->working[stays++] = slot;
            continue;
        }
        desk->idle[plan->batch - desk->at_work + done] = slot;
        desk->texts[done++] = slot->hypotheses.text;
    }
    desk->at_work = stays;
    queue_done(desk->share->queue, desk->texts, done);
    return FINE;
}

/* Until the queue is closed and empty, or something goes wrong. */
static void work(const Share *share) {
    Worker worker;
    Desk desk;
    int there = worker_begin(&worker, share->model, share->team);
    there = desk_begin(&desk, share) && there;
    int outcome = there ? FINE : NO_MEMORY;
    while (outcome == FINE) {
        /* a few sentences at a time would keep the encoder's products from being large */
        if (4 * (desk.most - desk.at_work) >= desk.most && !take_on(&desk, &worker)) outcome = NO_MEMORY;
        if (outcome != FINE || !desk.at_work || queue_is_over(share->queue)) break;
        outcome = advance_all(&desk, &worker);
    }
    queue_leave(share->queue, outcome);
    worker_end(&worker);
    desk_free(&desk);
}

static void *work_main(void *share) {
    work(share);
    return NULL;
}
