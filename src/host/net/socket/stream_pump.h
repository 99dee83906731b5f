/*
 * stream_pump.h - moves datagrams between a UDP socket and a stream of bytes.
 *
 * Both ends of a stream (docs/wire/stream.md) do the same: what arrives on a
 * connected UDP socket is framed and written, what is read is unframed and
 * sent. The hub and the agent differ in what the bytes go through.
 *
 * Theory of operation. What the stream does not take stays in one buffer of a
 * bounded size, and while there is something in it no datagram is read. So a
 * stream that is slower than what comes for it fills the UDP socket's receive
 * buffer, and the kernel drops what arrives last: memory never grows, and the
 * order is kept. Buffers exist only while they hold something.
 *
 * Datagrams that arrive together are written together, and frames of one size
 * are sent as one run (UDP_SEGMENT), where the kernel can.
 *
 * Threads: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/addr.h"

/** A call has done its share and there may be more: call again soon. */
#define STREAM_PUMP_E_MORE 1
/** The other end has closed the stream. */
#define STREAM_PUMP_E_ENDED 2
/** What came is not a frame. */
#define STREAM_PUMP_E_GARBAGE 3

/** The stream of bytes. Neither function blocks; -EAGAIN when it would have to. */
struct stream_bytes {
    ssize_t (*read)(void *ctx, void *buf, size_t cap); /* 0: ended; else bytes or -errno */
    /* Bytes or -errno. After -EAGAIN it is called with the same bytes again. */
    ssize_t (*write)(void *ctx, const void *buf, size_t len);
    void *ctx; /* pins */
};

struct stream_pump {
    int udp_fd;          /* owns; connected, never blocks */
    bool echoes;         /* answers each heartbeat with one: the hub's end */
    bool owes_heartbeat; /* a heartbeat is to be written */
    bool gso;            /* send runs; cleared when the kernel refuses */
    uint8_t *out;        /* owns; what the stream has not taken; NULL: nothing */
    size_t out_len;      /* bytes in it */
    size_t out_off;      /* of them taken */
    uint8_t *in;         /* owns; the beginning of a frame; NULL: none */
    size_t in_len;       /* bytes of it */
    uint64_t rx_bytes;   /* of datagrams that came through the stream */
    uint64_t tx_bytes;   /* of datagrams that went into it */
};

#define STREAM_PUMP_NULL {.udp_fd = -1}

/**
 * stream_pump_open() - the UDP end
 * @local:	on loopback; port 0: the kernel chooses
 * @remote:	the only one that is heard; none: nobody yet, see stream_pump_connect()
 *
 * Return: 0 or negative errno with words.
 */
int stream_pump_open(struct stream_pump *p, const struct endpoint *local,
    const struct endpoint *remote, bool echoes, struct err *e);

/** stream_pump_close() - idempotent. */
void stream_pump_close(struct stream_pump *p);

/** stream_pump_connect() - hear @remote only, and send there. 0 or negative errno. Any thread. */
int stream_pump_connect(const struct stream_pump *p, const struct endpoint *remote);

/** stream_pump_local() - where the UDP end is; none when it is closed. */
struct endpoint stream_pump_local(const struct stream_pump *p);

/** stream_pump_restart() - forget what an old stream has left half done; another one begins. */
void stream_pump_restart(struct stream_pump *p);

/** stream_pump_is_full() - does it wait for the stream? Meanwhile no datagram is read. */
bool stream_pump_is_full(const struct stream_pump *p);

/**
 * stream_pump_outward() - from UDP into the stream, until one of them would block
 *
 * Return: 0; STREAM_PUMP_E_MORE; or a negative errno of the stream's.
 */
int stream_pump_outward(struct stream_pump *p, const struct stream_bytes *bytes);

/**
 * stream_pump_inward() - from the stream into UDP, until there is nothing to read
 *
 * Return: 0; STREAM_PUMP_E_MORE; STREAM_PUMP_E_ENDED; STREAM_PUMP_E_GARBAGE; or a negative errno
 * of the stream's.
 */
int stream_pump_inward(struct stream_pump *p, const struct stream_bytes *bytes);

/** stream_pump_take() - the same for bytes that were read elsewhere: 0 or STREAM_PUMP_E_GARBAGE. */
int stream_pump_take(struct stream_pump *p, const void *bytes, size_t len);
