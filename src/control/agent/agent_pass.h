/*
 * agent_pass.h - a pass: the interface, its rates and its packet filter become what the snapshot
 * says.
 *
 * Threads: the loop's.
 */
#pragma once

#include "mesh/render/render.h"

struct agent;

/** agent_pass_input() - snapshot and paths as they are now; borrowed until the next call. */
struct render_input agent_pass_input(struct agent *a);

/** agent_pass_run() - make a pass now, and plan the next. */
void agent_pass_run(struct agent *a);
