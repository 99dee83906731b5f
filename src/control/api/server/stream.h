/*
 * stream.h - an answer that goes on: lines, queued until the other end takes them.
 *
 * Theory of operation. A line is made once and shared by all streams that it
 * goes to (line.h). Each stream has a queue of bounded length. When it is full, a
 * push fails and the owner decides what to do: a watch drops what is queued and
 * sends a snapshot later. A snapshot may be longer than the queue may be: it is
 * pushed whole, into an empty queue, and does not count. The server takes bytes out as fast as the
 * connection does; a queue that does not move for STREAM_STALL_NS ends the connection.
 *
 * Life: the owner embeds the struct and hands it to the server in a response.
 * From then on the server will call on_closed exactly once, and until that the
 * stream must stay.
 *
 * Threads: the server's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/server/line.h"
#include "base/clock.h"

/** How long a queue may not move at all. */
#define STREAM_STALL_NS (30 * NSEC_PER_SEC)

/** A queue that has reached either of these takes no more: it exceeds them by at most one line. */
#define STREAM_LINES_MAX 1024
#define STREAM_BYTES_MAX (1u << 20)

/** How a stream is sent: as it is, or packed (line.h), and where in that it is. */
enum stream_packing {
    STREAM_PLAIN,
    STREAM_PACKED_HEAD,  /* its first bytes are to come */
    STREAM_PACKED_LINES, /* they are out */
    STREAM_PACKED_ENDED, /* and so are the last ones */
};

/** An answer that goes on. */
struct stream {
    struct line **queue;                 /* owns the array and a reference each; a ring */
    size_t cap;                          /* of the array, a power of two; 0 at first */
    size_t first;                        /* index of the line that is being sent */
    size_t n;                            /* lines queued */
    size_t n_free;                       /* the first of them, which do not count for the limits */
    size_t bytes;                        /* of the others, not sent yet */
    size_t sent;                         /* bytes of the first line that are out */
    enum stream_packing packing;         /* how it is sent */
    uint32_t checksum;                   /* of the text that was sent packed */
    bool is_inside;                      /* the last line that was sent whole is_part */
    bool aborted;                        /* stream_abort() was called */
    bool ended;                          /* stream_end() was called */
    nsec_t moved_at;                     /* when bytes were last taken, or the queue was empty */
    void (*on_drained)(struct stream *); /* all is sent; it may push more */
    void (*on_closed)(struct stream *);  /* the connection is gone; may free the stream */
    void (*wake)(struct stream *);       /* the server's: there is something to take */
    void (*check)(struct stream *);      /* the server's: stream_check() */
    void *server_ctx;                    /* the server's, pinned */
};

/** stream_init() - empty; the two callbacks may not be NULL. */
void stream_init(
    struct stream *s, void (*on_drained)(struct stream *), void (*on_closed)(struct stream *));

/** stream_deinit() - release the queue; after on_closed, or when it was never handed out. */
void stream_deinit(struct stream *s);

/**
 * stream_push() - queue a line
 * @l:	a reference is added; the caller keeps its own
 *
 * Return: false when the queue is full, or there is no memory; then nothing was queued.
 */
bool stream_push(struct stream *s, struct line *l, nsec_t now);

/**
 * stream_push_whole() - queue the @n_parts of one line, or of several, however long they are
 *
 * Only while the queue is empty. What is pushed behind it has the whole queue for itself.
 *
 * Return: false when the stream has ended, or there is no memory; then nothing was queued.
 */
bool stream_push_whole(struct stream *s, struct line *const *parts, size_t n_parts, nsec_t now);

/** stream_pack() - send it packed; before anything was taken. False: no memory, and it is not. */
bool stream_pack(struct stream *s);

/** stream_clear() - drop all lines but the one that has been sent in part, with its other parts. */
void stream_clear(struct stream *s);

/** stream_end() - close the connection in order once the queue is out. */
void stream_end(struct stream *s);

/** stream_abort() - close the connection soon, and drop what is queued. */
void stream_abort(struct stream *s);

/** stream_check() - close the connection soon if the other end has closed it: one that is silent is
 * looked at by nobody. */
void stream_check(struct stream *s);

/** The least room that stream_take() may be given. */
#define STREAM_TAKE_MIN LINE_PACKED_END

/** stream_take() - for the server: up to @cap bytes of the queue into @buf; how many those are. */
size_t stream_take(struct stream *s, char *buf, size_t cap, nsec_t now);

/** stream_is_stalled() - for the server: has nothing been taken for STREAM_STALL_NS? */
bool stream_is_stalled(const struct stream *s, nsec_t now);
