/* A team: one thread that leads, and others that take shares of its loops while it works.

   The leader takes what nobody has taken, so it never waits for a thread that has no core. */
#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "vector.h"

typedef void (*Task)(void *context, int share, int shares);

typedef struct {
    int size; /* threads, the leader included, and shares of a task */
    pthread_t *members;
    Task task;
    void *context;
    atomic_uint_fast64_t taken; /* shares of this task that are taken; above them, in bits of their own, the task's number */
    atomic_int finished;        /* shares that members have done */
    atomic_int awake;           /* whether members spin, because a task may come at any moment */
    int over;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
} Team;

INLINE void pause_briefly(int *spins) {
    if (++*spins > 20000) { /* somebody else has the core */
        sched_yield();
        *spins = 0;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#define TASK ((uint_fast64_t)1 << 32)

/* The number of a share that nobody has taken yet, −1 for none. While it is not done, no other task can begin. */
INLINE int take(Team *team) {
    uint_fast64_t taken = atomic_load_explicit(&team->taken, memory_order_acquire);
    while ((int)(taken % TASK) < team->size)
        if (atomic_compare_exchange_weak(&team->taken, &taken, taken + 1)) return (int)(taken % TASK);
    return -1;
}

static void *member_main(void *argument) {
    Team *team = argument;
    int spins = 0;
    for (;;) {
        int share = take(team);
        if (share >= 0) {
            team->task(team->context, share, team->size);
            atomic_fetch_add_explicit(&team->finished, 1, memory_order_release);
            continue;
        }
        if (!atomic_load_explicit(&team->awake, memory_order_relaxed)) {
            pthread_mutex_lock(&team->mutex);
            while (!atomic_load(&team->awake) && !team->over) pthread_cond_wait(&team->wake, &team->mutex);
            int over = team->over;
            pthread_mutex_unlock(&team->mutex);
            if (over) return NULL;
        }
        pause_briefly(&spins);
    }
}

/* Does all shares of a task, on whatever threads of the team are free; returns when they are done. */
static void together(Team *team, Task task, void *context) {
    if (team->size == 1) {
        task(context, 0, 1);
        return;
    }
    team->task = task;
    team->context = context;
    atomic_store_explicit(&team->finished, 0, memory_order_relaxed);
    uint_fast64_t number = atomic_load_explicit(&team->taken, memory_order_relaxed) / TASK;
    atomic_store_explicit(&team->taken, (number + 1) % TASK * TASK + 1, memory_order_release);
    task(context, 0, team->size); /* always the same share, whose weights are in this core's cache */
    int done = 1, spins = 0;
    for (int share; (share = take(team)) >= 0; done++) task(context, share, team->size);
    while (done + atomic_load_explicit(&team->finished, memory_order_acquire) < team->size) pause_briefly(&spins);
}

static void team_wake(Team *team) {
    if (team->size == 1) return;
    pthread_mutex_lock(&team->mutex);
    atomic_store(&team->awake, 1);
    pthread_cond_broadcast(&team->wake);
    pthread_mutex_unlock(&team->mutex);
}

static void team_rest(Team *team) { atomic_store(&team->awake, 0); }

static void team_end(Team *team) {
    pthread_mutex_lock(&team->mutex);
    team->over = 1;
    atomic_store(&team->awake, 0);
    pthread_cond_broadcast(&team->wake);
    pthread_mutex_unlock(&team->mutex);
    for (int number = 1; number < team->size; number++) pthread_join(team->members[number - 1], NULL);
    free(team->members);
    pthread_mutex_destroy(&team->mutex);
    pthread_cond_destroy(&team->wake);
}

/* Gives the number of threads that could be had, 0 without memory. */
static int team_begin(Team *team, int size) {
    memset(team, 0, sizeof *team);
    pthread_mutex_init(&team->mutex, NULL);
    pthread_cond_init(&team->wake, NULL);
    team->members = calloc((size_t)size, sizeof *team->members);
    if (!team->members) return 0;
    team->size = size;
    atomic_store(&team->taken, (uint_fast64_t)size); /* nothing to do yet */
    for (int number = 1; number < size; number++)
        if (pthread_create(&team->members[number - 1], NULL, member_main, team)) {
            team->size = number;
            break;
        }
    return team->size;
}
