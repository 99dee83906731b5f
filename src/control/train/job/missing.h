/*
 * missing.h - says which nodes a job still waits for.
 *
 * torchrun waits for ten minutes and says nothing meanwhile.
 */
#pragma once

struct run;

/** Milliseconds from the start to the first report of who is missing. */
#define MISSING_FIRST_MS 20000

/**
 * missing_report() - say on standard error which nodes have not come
 *
 * Asks the hub and the agent; blocks for some seconds at most.
 *
 * Return: in how many ms it is to be called again; 0: never, because the job has enough nodes or
 * the hub does not say.
 */
unsigned missing_report(const struct run *run);
