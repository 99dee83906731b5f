/*
 * frame_writer.h - the end of the way in: packets become frames, and frames go to an interface.
 *
 * Continuing packets of a flow are merged (gro.h), and each frame is written with one call, whose
 * pieces lie where they were decrypted.
 *
 * Threads: the rx worker that it belongs to, inside the gate.
 */
#pragma once

#include <stdint.h>

#include "packet/gro.h"

struct device;
struct drops;
struct ip_info;

struct frame_writer {
    struct drops *drops;   /* pins: the worker's */
    unsigned worker;       /* which one: it has a queue of each interface for its own */
    struct device *device; /* borrows, for the batch; NULL: nothing is collected */
    struct gro gro;        /* what is to be written to @device */
};

/** frame_writer_init() - of worker @worker; pins its @drops. */
void frame_writer_init(struct frame_writer *w, unsigned worker, struct drops *drops);

/**
 * frame_writer_add() - have a packet written to @d's interface
 * @p:		borrowed until frame_writer_flush(), with GRO_HEADROOM bytes before it, all writable
 * @ip:		from ip_parse() of @p
 *
 * Writes what was collected before, when that is for another device or there is no more room.
 */
void frame_writer_add(
    struct frame_writer *w, struct device *d, uint8_t *p, const struct ip_info *ip);

/** frame_writer_flush() - write all that was collected: at the end of a receive call. */
void frame_writer_flush(struct frame_writer *w);
