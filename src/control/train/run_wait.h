/*
 * run_wait.h - who is missing while a job waits for its nodes.
 *
 * torchrun waits for ten minutes, and says nothing meanwhile.
 */
#pragma once

struct run;

/** How long after its start a job is looked at first, ms. */
#define RUN_WAIT_FIRST_MS 20000

/** run_wait_look() - a child_watch's fn: says on standard error who has not come. @run: a struct
 * run. */
unsigned run_wait_look(void *run);
