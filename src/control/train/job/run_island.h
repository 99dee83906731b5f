/*
 * run_island.h - gives a job the private network of its node's island (`weft run --island-lan`).
 *
 * In a mount namespace of this process, and so of the command, the hosts file is another one: names
 * of the island's nodes lead to their addresses on its private network (island_lan.h). The
 * machine's own file stays as it is. That needs root; without it the job has the variables alone.
 *
 * The agent replaces the machine's file by a rename, which takes away the file that lies over it in
 * other namespaces. So the job's one is looked for now and then, and made anew of what the agent
 * has written.
 */
#pragma once

#include <stdbool.h>

struct run;
struct str;

/** The hosts file is looked for so often. */
#define RUN_ISLAND_EACH_MS 2000

/** run_find_island() - set run->island_interface; "" when no node is reached over such a network.
 */
void run_find_island(struct run *run);

/**
 * run_take_island() - write down the island's nodes, and lay the hosts file
 * @run:	after run_find_island(); nothing is done when run->island_interface is ""
 * @notes:	a line for each thing that could not be done is appended
 *
 * Threads: the process must have only one.
 */
void run_take_island(struct run *run, struct str *notes);

/**
 * run_leave_island() - take away the hosts file that was laid for an earlier start of the command
 *
 * Best effort. Threads: as run_take_island().
 */
void run_leave_island(void);

/** run_keep_island() - if the hosts file that was laid is gone, lay it anew. Best effort. */
void run_keep_island(const struct run *run);
