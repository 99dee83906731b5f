/*
 * stream.h - an answer that goes on: lines, queued until the other end takes them.
 *
 * Theory of operation. A line is made once and shared by all streams that it
 * goes to. Each stream has a queue of bounded length. When it is full, a push
 * fails and the owner decides what to do: a watch drops what is queued and sends
 * a snapshot later. The server takes bytes out as fast as the connection does;
 * a queue that does not move for STREAM_STALL_NS ends the connection.
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

#include "base/clock.h"

/** How long a queue may not move at all. */
#define STREAM_STALL_NS (30 * NSEC_PER_SEC)

/** A queue that has reached either of these takes no more: it exceeds them by at most one line. */
#define STREAM_LINES_MAX 1024
#define STREAM_BYTES_MAX (1u << 20)

/** One line with its newline, or a part of one; shared. */
struct line {
    unsigned refs; /* how many hold it */
    bool is_part;  /* it has no newline: the line that is queued next continues it */
    size_t len;    /* with the newline */
    char text[];   /* not zero-terminated */
};

/** line_new() - a copy of @len bytes at @text and a newline; one reference, NULL: no memory. */
struct line *line_new(const char *text, size_t len);

/** line_new_part() - without the newline: the beginning of a line that the next one continues. */
struct line *line_new_part(const char *text, size_t len);

/** line_ref() - add a reference. Returns @l. */
struct line *line_ref(struct line *l);

/** line_unref() - drop a reference; the last one frees it. NULL is fine. Always NULL. */
struct line *line_unref(struct line *l);

/** An answer that goes on. */
struct stream {
    struct line **queue;                 /* owns the array and a reference each; a ring */
    size_t cap;                          /* of the array, a power of two; 0 at first */
    size_t first;                        /* index of the line that is being sent */
    size_t n;                            /* lines queued */
    size_t bytes;                        /* of them, not sent yet */
    size_t sent;                         /* bytes of the first line that are out */
    bool is_inside;                      /* the last line that was sent whole is_part */
    bool aborted;                        /* stream_abort() was called */
    bool ended;                          /* stream_end() was called */
    nsec_t moved_at;                     /* when bytes were last taken, or the queue was empty */
    void (*on_drained)(struct stream *); /* all is sent; it may push more */
    void (*on_closed)(struct stream *);  /* the connection is gone; may free the stream */
    void (*wake)(struct stream *);       /* the server's: there is something to take */
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

/** stream_clear() - drop all lines but the one that has been sent in part, with its other parts. */
void stream_clear(struct stream *s);

/** stream_end() - close the connection in order once the queue is out. */
void stream_end(struct stream *s);

/** stream_abort() - close the connection soon, and drop what is queued. */
void stream_abort(struct stream *s);

/** stream_take() - for the server: up to @cap bytes of the queue into @buf; how many those are. */
size_t stream_take(struct stream *s, char *buf, size_t cap, nsec_t now);

/** stream_is_stalled() - for the server: has nothing been taken for STREAM_STALL_NS? */
bool stream_is_stalled(const struct stream *s, nsec_t now);
