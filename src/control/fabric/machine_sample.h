/*
 * machine_sample.h - what the kernel counts on this machine at one moment, for health/machine.h.
 *
 * Reads /proc and /sys below a root, as fabric.h does. What a kernel, a container or a driver does
 * not say is left out, and nothing is found of it.
 *
 * Some drivers ask their firmware for a counter, so reading takes some milliseconds, and some more
 * for each fabric port: it belongs on a thread.
 */
#pragma once

#include "base/clock.h"
#include "fabric/metadata.h"
#include "health/machine.h"

/**
 * machine_sample_read() - all that is counted now
 * @state_dir:	whose disk is looked at; not below the root of @t
 * @now:	monotonic
 */
void machine_sample_read(
    struct machine_sample *ret, const struct tree *t, const char *state_dir, nsec_t now);
