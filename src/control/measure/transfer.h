/*
 * transfer.h - sends bytes through connections for some time, and counts them where they arrive.
 *
 * The rate is that of the second half of the time in which something arrived, because TCP's slow
 * start and the handshake of an idle tunnel are over by then.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "measure/result.h"

#define TRANSFER_SAMPLES 256

/** Samples of how many bytes had arrived at which time. When it is full it drops every second
 * sample, and takes samples half as often. */
struct transfer_meter {
    nsec_t at[TRANSFER_SAMPLES];      /* time of each sample, monotonic */
    uint64_t bytes[TRANSFER_SAMPLES]; /* bytes that had arrived by then */
    unsigned n;                       /* samples */
    nsec_t step;                      /* least time between samples */
};

/** One connection of a transfer. */
struct transfer_stream {
    int fd;     /* borrowed; connected */
    bool sends; /* we send on it; else we receive */
    bool is_done;
};

struct transfer {
    struct transfer_stream *streams; /* borrowed */
    size_t n_streams;
    uint64_t bytes_max;   /* most bytes in each direction */
    nsec_t duration;      /* after this time senders stop, and shut down their direction */
    nsec_t deadline;      /* monotonic; everything stops then */
    uint64_t sent;        /* result: bytes given to the kernel */
    struct flow received; /* result */
};

/**
 * transfer_run() - send and receive until every stream has ended, or until the deadline
 *
 * A stream on which an error occurs has ended; what arrived before the error counts.
 *
 * Return: 0 or -ENOMEM.
 */
int transfer_run(struct transfer *t);

/** transfer_meter_add() - @total bytes have arrived since the start. @now: monotonic */
void transfer_meter_add(struct transfer_meter *m, nsec_t now, uint64_t total);

/** transfer_meter_rate() - bits per second in the second half; 0 when nothing came. */
uint64_t transfer_meter_rate(const struct transfer_meter *m);
