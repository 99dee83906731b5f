/*
 * sample_overlay.h - a data half for a hub of a test: a real relay, an engine that keeps what it is
 * told, and no interface.
 */
#pragma once

#include "hub/overlay/overlay_internal.h"
#include "shared/device_state.h"
#include "test/support/sample_peers.h"

struct sample_hub;

struct sample_overlay {
    struct overlay o;
    struct sample_peers engine;
    struct engine_ops ops; /* of the engine, which can be closed */
    struct device device;  /* no more than a name */
    unsigned n_closed;     /* how often it was */
};

/** sample_overlay_begin() - from now on it is that of the hub, for its first network. */
void sample_overlay_begin(struct sample_overlay *so, struct sample_hub *s);

/** sample_overlay_end() - after the hub's end, which has taken everything from it. */
void sample_overlay_end(struct sample_overlay *so);
