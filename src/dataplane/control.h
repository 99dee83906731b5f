/*
 * control.h - the port's control thread.
 *
 * It sleeps in the loop (loop.h) without the port's lock and does everything else with it:
 * handshake messages from the rx workers, peers that a data thread has told about, timers, and
 * whatever else has a descriptor in the loop.
 */
#pragma once

struct port;

/** control_start() - begin the thread: 0 or negative errno; control_stop() ends it. */
int control_start(struct port *p);
void control_stop(struct port *p);
