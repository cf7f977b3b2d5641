/* The queue of requests, shared by the workers and the thread that submits.

   All fields are guarded by `mutex`. Requests belong to the caller; the queue links them through `Request.next`, in the
   list of waiting requests (first come, first served) or in the list of completed requests (the latest first). A request
   that a worker has taken is in neither list. */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "interface.h"

#ifdef __APPLE__ /* condition variables on macOS support no other clock */
#define CLOCK CLOCK_REALTIME
#define pthread_condattr_setclock(attributes, clock) ((void)0)
#else
#define CLOCK CLOCK_MONOTONIC
#endif

typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t arrived;   /* a request has arrived, or the queue was closed */
    pthread_cond_t completed; /* a request is completed, or the last worker has left */
    Request *first, *last;    /* waiting */
    Request *done;
    int waiting, running;
    int workers; /* workers that have not left */
    int open;    /* whether more requests may be submitted */
    int outcome; /* an `Outcome`; workers stop as soon as it is not FINE */
} Queue;

/* Limits on the requests that a worker decodes together. */
typedef struct {
    int batch;  /* requests */
    int rows;   /* hypotheses of all of them, 0 for any number; one request is always admitted */
    int tokens; /* source tokens that are encoded together; a single source may have more */
} AdmissionLimits;

static void queue_begin(Queue *queue, int workers) {
    memset(queue, 0, sizeof *queue);
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->arrived, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK);
    pthread_cond_init(&queue->completed, &attributes);
    pthread_condattr_destroy(&attributes);
    queue->workers = workers;
    queue->open = 1;
}

static void queue_end(Queue *queue) {
    pthread_mutex_destroy(&queue->mutex);
    pthread_cond_destroy(&queue->arrived);
    pthread_cond_destroy(&queue->completed);
}

static void queue_submit(Queue *queue, Request *requests, int count) {
    pthread_mutex_lock(&queue->mutex);
    for (int number = 0; number < count; number++) {
        Request *request = requests + number;
        request->next = NULL;
        if (queue->first) queue->last->next = request;
        else queue->first = request;
        queue->last = request;
    }
    queue->waiting += count;
    pthread_cond_broadcast(&queue->arrived);
    pthread_mutex_unlock(&queue->mutex);
}

/* Closes the queue to further requests. outcome: FINE, or the reason for also dropping the waiting ones. */
static void queue_close(Queue *queue, int outcome) {
    pthread_mutex_lock(&queue->mutex);
    queue->open = 0;
    if (queue->outcome == FINE) queue->outcome = outcome;
    pthread_cond_broadcast(&queue->arrived);
    pthread_mutex_unlock(&queue->mutex);
}

/* Returns the number of requests of a beam size that a worker decodes together. */
static int target_batch(const AdmissionLimits *limits, int beam) {
    if (!limits->rows) return limits->batch;
    int target = limits->rows / beam > 1 ? limits->rows / beam : 1;
    return target < limits->batch ? target : limits->batch;
}

/* Whether a worker may take another request. own: the requests it runs; tokens: the source tokens it is taking. */
static int can_admit(const AdmissionLimits *limits, const Request *request, int own, int tokens) {
    return !own || (own < target_batch(limits, request->beam) && tokens < limits->tokens);
}

/* Takes requests for a worker that already runs `own`; returns how many. The limits apply, and no worker gets more than
   an equal share of all requests. If `own` is 0, waits for a request or until the queue is closed. */
static int queue_take(Queue *queue, Request **requests, int own, const AdmissionLimits *limits) {
    int taken = 0, tokens = 0;
    pthread_mutex_lock(&queue->mutex);
    while (!own && !queue->first && queue->open && queue->outcome == FINE) pthread_cond_wait(&queue->arrived, &queue->mutex);
    int fair = (queue->waiting + queue->running + queue->workers - 1) / queue->workers;
    while (queue->outcome == FINE && queue->first && own + taken < fair && can_admit(limits, queue->first, own + taken, tokens)) {
        requests[taken++] = queue->first;
        tokens += queue->first->length;
        queue->first = queue->first->next;
    }
    queue->waiting -= taken, queue->running += taken;
    pthread_mutex_unlock(&queue->mutex);
    return taken;
}

/* Records that a worker has completed these requests. */
static void queue_complete(Queue *queue, Request **requests, int count) {
    if (!count) return;
    pthread_mutex_lock(&queue->mutex);
    for (int number = 0; number < count; number++) {
        requests[number]->next = queue->done;
        queue->done = requests[number];
    }
    queue->running -= count;
    pthread_cond_signal(&queue->completed);
    pthread_mutex_unlock(&queue->mutex);
}

/* Records that a worker stops. */
static void queue_leave(Queue *queue, int outcome) {
    pthread_mutex_lock(&queue->mutex);
    if (queue->outcome == FINE) queue->outcome = outcome;
    queue->workers--;
    pthread_cond_broadcast(&queue->arrived);
    pthread_cond_signal(&queue->completed);
    pthread_mutex_unlock(&queue->mutex);
}

/* Returns whether running requests must be dropped. */
static int queue_is_cancelled(Queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    int cancelled = queue->outcome != FINE;
    pthread_mutex_unlock(&queue->mutex);
    return cancelled;
}

/* Returns all requests completed since the last call, linked. Waits up to `milliseconds` for the first one,
   unless all workers have left. */
static Request *queue_completed(Queue *queue, int milliseconds, int32_t *outcome, int32_t *waiting) {
    struct timespec until;
    clock_gettime(CLOCK, &until);
    long nanoseconds = until.tv_nsec + milliseconds % 1000 * 1000000L;
    until.tv_sec += milliseconds / 1000 + nanoseconds / 1000000000L;
    until.tv_nsec = nanoseconds % 1000000000L;
    pthread_mutex_lock(&queue->mutex);
    while (!queue->done && queue->workers && queue->outcome == FINE)
        if (pthread_cond_timedwait(&queue->completed, &queue->mutex, &until) == ETIMEDOUT) break;
    Request *done = queue->done;
    queue->done = NULL;
    *outcome = queue->outcome, *waiting = queue->waiting;
    pthread_mutex_unlock(&queue->mutex);
    return done;
}
