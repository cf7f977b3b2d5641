/* A team: one thread that leads, and others that take their share of its loops while it works. */
#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "vector.h"

typedef void (*Task)(void *context, int thread, int threads);

typedef struct Team Team;

typedef struct {
    Team *team;
    int number;
    pthread_t thread;
} Member;

struct Team {
    int size; /* threads, the leader included */
    Member *members;
    Task task;
    void *context;
    atomic_int round;   /* grows with every task */
    atomic_int working; /* members that have not finished it */
    atomic_int awake;   /* whether members spin, because a task may come at any moment */
    int over;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
};

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

static void *member_main(void *argument) {
    Member *member = argument;
    Team *team = member->team;
    int seen = 0, spins = 0;
    for (;;) {
        while (atomic_load_explicit(&team->round, memory_order_acquire) == seen) {
            if (!atomic_load_explicit(&team->awake, memory_order_relaxed)) {
                pthread_mutex_lock(&team->mutex);
                while (!atomic_load(&team->awake) && !team->over && atomic_load(&team->round) == seen)
                    pthread_cond_wait(&team->wake, &team->mutex);
                int over = team->over;
                pthread_mutex_unlock(&team->mutex);
                if (over) return NULL;
            }
            pause_briefly(&spins);
        }
        seen = atomic_load(&team->round);
        team->task(team->context, member->number, team->size);
        atomic_fetch_sub_explicit(&team->working, 1, memory_order_release);
    }
}

/* Lets every thread of the team run the task, which takes the share of its number; returns when all have. */
static void together(Team *team, Task task, void *context) {
    if (team->size == 1) {
        task(context, 0, 1);
        return;
    }
    team->task = task;
    team->context = context;
    atomic_store_explicit(&team->working, team->size - 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&team->round, 1, memory_order_release);
    task(context, 0, team->size);
    int spins = 0;
    while (atomic_load_explicit(&team->working, memory_order_acquire)) pause_briefly(&spins);
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
    for (int number = 1; number < team->size; number++) pthread_join(team->members[number].thread, NULL);
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
    for (int number = 1; number < size; number++) {
        team->members[number].team = team;
        team->members[number].number = number;
        if (pthread_create(&team->members[number].thread, NULL, member_main, &team->members[number])) {
            team->size = number;
            break;
        }
    }
    return team->size;
}
