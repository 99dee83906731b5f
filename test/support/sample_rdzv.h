/*
 * sample_rdzv.h - a test's own program as the rendezvous process that the hub starts.
 */
#pragma once

#include "rendezvous/shared/rdzv_wire.h"

/** sample_rdzv_say() - say that to the hub, at once. */
void sample_rdzv_say(const struct rdzv_wire *m);

/**
 * sample_rdzv_run() - be such a process until the hub hangs up.
 *
 * @take:	called for each message; @fd: the socket of RDZV_WIRE_LISTENER, lent; else -1
 *
 * Return: the program's exit status.
 */
int sample_rdzv_run(void (*take)(const struct rdzv_wire *m, int fd));
