/*
 * control.h - the port's control thread.
 *
 * It sleeps in the loop (loop.h) without the port's lock and does everything else with it:
 * handshake messages from the rx workers, peers that a data thread has told about, timers, and
 * whatever else has a descriptor in the loop.
 */
#pragma once

struct port;

/** control_start() - begin the thread. Under the port's lock. 0 or negative errno. */
int control_start(struct port *p);

/** control_stop() - wait for its end, after p->is_stopping was set. Outside the lock. */
void control_stop(struct port *p);
