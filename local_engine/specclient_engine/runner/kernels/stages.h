/* How the threads of a pass share its work. */
#pragma once
#include "nouns.h"

/* A stage of the pass: tasks are handed out by `next` and counted when `done`. */
typedef struct {
    _Alignas(64) atomic_int next;
    atomic_int done;
} Stage;

static int take(Stage *stage) { return atomic_fetch_add_explicit(&stage->next, 1, memory_order_relaxed); }

static void finished(Stage *stage) { atomic_fetch_add_explicit(&stage->done, 1, memory_order_release); }

/* Waits until a stage's tasks are done, not until every thread has come by: on a busy machine a thread
 * that was put to sleep between tasks holds nobody up. */
static void await_tasks(Stage *stage, int tasks) {
    for (int spins = 0; atomic_load_explicit(&stage->done, memory_order_acquire) < tasks; spins++) {
        if (spins < 2000) _mm_pause();
        else sched_yield();
    }
}
