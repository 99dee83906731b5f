/*
 * transfer.h - bytes through connections for a while, counted where they arrive.
 *
 * The rate is that of the second half of the time in which something came:
 * slow start, and the handshake of a tunnel that has slept, are over by then.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "measure/result.h"

#define TRANSFER_SAMPLES 256

/** How many bytes had come by when; halves its resolution when it is full. */
struct transfer_meter {
    nsec_t at[TRANSFER_SAMPLES];
    uint64_t bytes[TRANSFER_SAMPLES];
    unsigned n;
    nsec_t step; /* between samples, at least */
};

struct transfer_stream {
    int fd;     /* borrowed; connected */
    bool sends; /* else it receives */
    bool is_done;
};

struct transfer {
    struct transfer_stream *streams; /* borrowed */
    size_t n_streams;
    uint64_t bytes_max;   /* of each direction */
    nsec_t duration;      /* senders stop then, and close their half */
    nsec_t deadline;      /* monotonic: everything stops then */
    uint64_t sent;        /* result */
    struct flow received; /* result */
};

/**
 * transfer_run() - until every stream has ended, or the deadline
 *
 * A stream that fails has ended; what had come until then counts.
 *
 * Return: 0 or -ENOMEM.
 */
int transfer_run(struct transfer *t);

/** transfer_meter_add() - @total bytes have come by @now. */
void transfer_meter_add(struct transfer_meter *m, nsec_t now, uint64_t total);

/** transfer_meter_rate() - bits per second of the second half; 0 when nothing came. */
uint64_t transfer_meter_rate(const struct transfer_meter *m);
