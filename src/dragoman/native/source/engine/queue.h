/* The request queue, shared by the workers and the thread that submits requests.

   All fields are guarded by `mutex`. Requests belong to the caller. `Request.next` links them in the list of waiting
   requests (in order of submission) or in the list of completed requests (latest first). A running request is in neither
   list. */
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
    pthread_cond_t arrived;   /* signals that requests have arrived, a worker has stopped, or the queue was closed */
    pthread_cond_t completed; /* signals that requests are completed or a worker has stopped */
    Request *first, *last;    /* the first and last waiting requests */
    Request *done;            /* the latest completed request */
    int waiting, running;     /* numbers of requests */
    int workers; /* number of workers that have not stopped */
    int open;    /* whether more requests may be submitted */
    int outcome; /* an `Outcome`; workers stop as soon as it is not FINE */
} Queue;

/* Limits on the requests that a worker decodes together. */
typedef struct {
    int batch;  /* number of requests */
    int rows;   /* number of hypotheses of all requests, or 0 for no limit; a single request may have more */
    int tokens; /* number of source tokens that are encoded together; a single source may have more */
} AdmissionLimits;

static void queue_init(Queue *queue, int workers) {
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

static void queue_destroy(Queue *queue) {
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

/* Closes the queue to further requests. outcome: SUCCESS, or an `Outcome` with which waiting requests are dropped. */
static void queue_close(Queue *queue, int outcome) {
    pthread_mutex_lock(&queue->mutex);
    queue->open = 0;
    if (queue->outcome == SUCCESS) queue->outcome = outcome;
    pthread_cond_broadcast(&queue->arrived);
    pthread_mutex_unlock(&queue->mutex);
}

/* Returns the number of requests with a given beam size that a worker decodes together. */
static int target_batch_size(const AdmissionLimits *limits, int beam) {
    if (!limits->rows) return limits->batch;
    int target = limits->rows / beam > 1 ? limits->rows / beam : 1;
    return target < limits->batch ? target : limits->batch;
}

/* Returns whether a worker can admit a request. running_count: number of requests that the worker runs or is admitting.
   tokens: number of source tokens that it is admitting. */
static int can_admit(const AdmissionLimits *limits, const Request *request, int running_count, int tokens) {
    return !running_count || (running_count < target_batch_size(limits, request->beam) && tokens < limits->tokens);
}

/* Removes waiting requests for a worker that runs `running_count` requests; returns the number of removed requests. The
   limits apply, and no worker gets more than an equal share of all requests. If `running_count` is 0, this function waits
   until a request arrives or the queue is closed. */
static int queue_take(Queue *queue, Request **requests, int running_count, const AdmissionLimits *limits) {
    int taken = 0, tokens = 0;
    pthread_mutex_lock(&queue->mutex);
    while (!running_count && !queue->first && queue->open && queue->outcome == SUCCESS) pthread_cond_wait(&queue->arrived, &queue->mutex);
    int fair_share = (queue->waiting + queue->running + queue->workers - 1) / queue->workers;
    while (queue->outcome == SUCCESS && queue->first && running_count + taken < fair_share &&
           can_admit(limits, queue->first, running_count + taken, tokens)) {
        requests[taken++] = queue->first;
        tokens += queue->first->length;
        queue->first = queue->first->next;
    }
    queue->waiting -= taken, queue->running += taken;
    pthread_mutex_unlock(&queue->mutex);
    return taken;
}

/* Records that a worker has completed requests. */
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

/* Records that a worker stops. outcome: an `Outcome`; an error stops the other workers too. */
static void queue_leave(Queue *queue, int outcome) {
    pthread_mutex_lock(&queue->mutex);
    if (queue->outcome == SUCCESS) queue->outcome = outcome;
    queue->workers--;
    pthread_cond_broadcast(&queue->arrived);
    pthread_cond_signal(&queue->completed);
    pthread_mutex_unlock(&queue->mutex);
}

/* Returns whether running requests must be dropped. */
static int queue_is_cancelled(Queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    int cancelled = queue->outcome != SUCCESS;
    pthread_mutex_unlock(&queue->mutex);
    return cancelled;
}

/* Returns a linked list of all requests completed since the last call. Waits up to `milliseconds` for a request, unless
   all workers have stopped. */
static Request *queue_completed(Queue *queue, int milliseconds, int32_t *outcome, int32_t *waiting) {
    struct timespec until;
    clock_gettime(CLOCK, &until);
    long nanoseconds = until.tv_nsec + milliseconds % 1000 * 1000000L;
    until.tv_sec += milliseconds / 1000 + nanoseconds / 1000000000L;
    until.tv_nsec = nanoseconds % 1000000000L;
    pthread_mutex_lock(&queue->mutex);
    while (!queue->done && queue->workers && queue->outcome == SUCCESS)
        if (pthread_cond_timedwait(&queue->completed, &queue->mutex, &until) == ETIMEDOUT) break;
    Request *done = queue->done;
    queue->done = NULL;
    *outcome = queue->outcome, *waiting = queue->waiting;
    pthread_mutex_unlock(&queue->mutex);
    return done;
}
