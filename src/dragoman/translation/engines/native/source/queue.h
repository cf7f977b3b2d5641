/* Texts that wait for workers, and those that are done. Shared by threads. */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "hypotheses.h"

#ifdef __APPLE__ /* its conditions have no other clock */
#define CLOCK CLOCK_REALTIME
#define pthread_condattr_setclock(attributes, clock) ((void)0)
#else
#define CLOCK CLOCK_MONOTONIC
#endif

typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t come, gone; /* a text, or the end; what is done, or the last worker */
    Text *first, *last;        /* that wait, linked */
    Text *done;                /* linked, the latest first */
    int waiting, at_work;
    int workers; /* that have not ended */
    int open;    /* whether more texts may come */
    int outcome; /* an `Outcome`; workers end as soon as it is not FINE */
} Queue;

static void queue_begin(Queue *queue, int workers) {
    memset(queue, 0, sizeof *queue);
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->come, NULL);
    pthread_condattr_t clocked;
    pthread_condattr_init(&clocked);
    pthread_condattr_setclock(&clocked, CLOCK);
    pthread_cond_init(&queue->gone, &clocked);
    pthread_condattr_destroy(&clocked);
    queue->workers = workers;
    queue->open = 1;
}

static void queue_end(Queue *queue) {
    pthread_mutex_destroy(&queue->mutex);
    pthread_cond_destroy(&queue->come);
    pthread_cond_destroy(&queue->gone);
}

static void queue_put(Queue *queue, Text *texts, int count) {
    pthread_mutex_lock(&queue->mutex);
    for (int number = 0; number < count; number++) {
        Text *text = texts + number;
        text->next = NULL;
        if (queue->first) queue->last->next = text;
        else queue->first = text;
        queue->last = text;
    }
    queue->waiting += count;
    pthread_cond_broadcast(&queue->come);
    pthread_mutex_unlock(&queue->mutex);
}

/* No more texts come. outcome: FINE, or why those that wait are not wanted either. */
static void queue_close(Queue *queue, int outcome) {
    pthread_mutex_lock(&queue->mutex);
    queue->open = 0;
    if (queue->outcome == FINE) queue->outcome = outcome;
    pthread_cond_broadcast(&queue->come);
    pthread_mutex_unlock(&queue->mutex);
}

/* Those that a worker begins with: as many as it may have, but no more than leave each worker the same number.
   Where it has nothing to do it waits for them, or for the end. own: that it has at work already. */
static int queue_take(Queue *queue, Text **texts, int own, int (*may_have)(void *context, const Text *text, int own), void *context) {
    int taken = 0;
    pthread_mutex_lock(&queue->mutex);
    while (!own && !queue->first && queue->open && queue->outcome == FINE) pthread_cond_wait(&queue->come, &queue->mutex);
    int fair = (queue->waiting + queue->at_work + queue->workers - 1) / queue->workers;
    while (queue->outcome == FINE && queue->first && own + taken < fair && may_have(context, queue->first, own + taken)) {
        texts[taken++] = queue->first;
        queue->first = queue->first->next;
    }
    queue->waiting -= taken, queue->at_work += taken;
    pthread_mutex_unlock(&queue->mutex);
    return taken;
}

/* A worker is done with these. */
static void queue_done(Queue *queue, Text **texts, int count) {
    if (!count) return;
    pthread_mutex_lock(&queue->mutex);
    for (int number = 0; number < count; number++) {
        texts[number]->next = queue->done;
        queue->done = texts[number];
    }
    queue->at_work -= count;
    pthread_cond_signal(&queue->gone);
    pthread_mutex_unlock(&queue->mutex);
}

/* A worker ends. */
static void queue_leave(Queue *queue, int outcome) {
    pthread_mutex_lock(&queue->mutex);
    if (queue->outcome == FINE) queue->outcome = outcome;
    queue->workers--;
    pthread_cond_broadcast(&queue->come);
    pthread_cond_signal(&queue->gone);
    pthread_mutex_unlock(&queue->mutex);
}

/* Whether what is at work is not wanted any more. */
static int queue_is_over(Queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    int over = queue->outcome != FINE;
    pthread_mutex_unlock(&queue->mutex);
    return over;
}

/* All that are done since the last time, linked; waits for one, but no longer than so many milliseconds, and not where
   none can come. */
static Text *queue_found(Queue *queue, int milliseconds, int32_t *outcome, int32_t *waiting) {
    struct timespec until;
    clock_gettime(CLOCK, &until);
    long nanoseconds = until.tv_nsec + milliseconds % 1000 * 1000000L;
    until.tv_sec += milliseconds / 1000 + nanoseconds / 1000000000L;
    until.tv_nsec = nanoseconds % 1000000000L;
    pthread_mutex_lock(&queue->mutex);
    while (!queue->done && queue->workers && queue->outcome == FINE)
        if (pthread_cond_timedwait(&queue->gone, &queue->mutex, &until) == ETIMEDOUT) break;
    Text *done = queue->done;
    queue->done = NULL;
    *outcome = queue->outcome, *waiting = queue->waiting;
    pthread_mutex_unlock(&queue->mutex);
    return done;
}
