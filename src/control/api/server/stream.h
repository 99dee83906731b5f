/*
 * stream.h - an answer that goes on: lines, queued until the other end takes them.
 *
 * Theory of operation. A line is made once and shared by all streams that it
 * goes to. Each stream has a queue of bounded length. When it is full, a
 * push fails; an owner that pushes only as the connection takes what there was, as a watch does
 * (hub/watch/watch.h), never fills it. A snapshot may be longer than the queue may be: it is
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
#include <stdint.h>

#include "base/clock.h"

/* ---- lines ---------------------------------------------------------------------------------- */

/*
 * A line is text that is made once and sent to thousands of streams: one line, several, or a part
 * of one.
 *
 * A client that accepts "Content-Encoding: deflate" (RFC 9110 section 8.4.1.2) is sent the same
 * text packed. It is packed once, when the first stream needs it.
 *
 * Theory of operation. A deflate stream (RFC 1951) may consist of pieces that were packed apart, if
 * each ends at a byte, by an empty stored block, and refers to nothing before its own beginning. So
 * one packed line fits into every stream, whatever that stream has sent before, and a stream needs
 * no memory for packing. It has the header of RFC 1950 before the first line. Behind the last line
 * it has an empty last block and the checksum of all of the text. The checksum is calculated from
 * those of the lines.
 *
 * Threads: a line and all who hold it belong to one thread.
 */

/** Shared, and never changed. */
struct line {
    unsigned refs;       /* how many hold it */
    bool is_part;        /* the line that is queued next continues it */
    struct line *packed; /* owns; the same for clients that take it packed; NULL: not made yet */
    size_t n_plain;      /* of a packed line: the bytes that it unpacks to */
    uint32_t checksum;   /* of a packed line: Adler-32 of those bytes (RFC 1950 section 8.2) */
    size_t len;          /* of @text, with the newline */
    char text[];         /* not zero-terminated */
};

/** line_new() - a copy of @len bytes at @text and a newline; one reference, NULL: no memory. */
struct line *line_new(const char *text, size_t len);

/** line_new_part() - without the newline: the beginning of a line that the next one continues. */
struct line *line_new_part(const char *text, size_t len);

/** line_ref() - add a reference. Returns @l. */
struct line *line_ref(struct line *l);

/** line_unref() - drop a reference; the last one frees it. */
struct line *line_unref(struct line *l);

/** line_packed() - lends the same text packed, for as long as @l stays. NULL: no memory. */
struct line *line_packed(struct line *l);

/** Bytes before the first packed line, and most bytes behind the last one. */
#define LINE_PACKED_HEAD 2
#define LINE_PACKED_END  6

/** The checksum of no text at all. */
#define LINE_CHECKSUM_NONE 1u

/** line_packed_head() - what comes before the first packed line. */
void line_packed_head(char buf[static LINE_PACKED_HEAD]);

/** line_packed_end() - what comes behind the last one; @checksum: of all of their text. */
void line_packed_end(uint32_t checksum, char buf[static LINE_PACKED_END]);

/** line_checksum_add() - the checksum of a text with that one, and of @packed behind it. */
uint32_t line_checksum_add(uint32_t checksum, const struct line *packed);

/**
 * line_accepts_packed() - does a client that sent this header take "deflate"?
 * @accept_encoding:	as it came (RFC 9110 section 12.5.3); NULL: none did
 *
 * Return: true if it names "deflate" and does not refuse it with "q=0".
 */
bool line_accepts_packed(const char *accept_encoding);

/* ---- streams -------------------------------------------------------------------------------- */

/** How long a queue may not move at all. */
#define STREAM_STALL_NS (30 * NSEC_PER_SEC)

/** A queue that has reached either of these takes no more: it exceeds them by at most one line. */
#define STREAM_LINES_MAX 1024
#define STREAM_BYTES_MAX (1u << 20)

/** How a stream is sent: as it is, or packed, and where in that it is. */
enum stream_packing {
    STREAM_PLAIN,
    STREAM_PACKED_HEAD,  /* its first bytes are to come */
    STREAM_PACKED_LINES, /* they are out */
    STREAM_PACKED_ENDED, /* and so are the last ones */
};

/** An answer that goes on. */
struct stream {
    const char *type;            /* as in Content-Type; a constant; at first lines of JSON */
    struct line **queue;         /* owns the array and a reference each; a ring */
    size_t cap;                  /* of the array, a power of two; 0 at first */
    size_t first;                /* index of the line that is being sent */
    size_t n;                    /* lines queued */
    size_t n_free;               /* the first of them, which do not count for the limits */
    size_t bytes;                /* of the others, not sent yet */
    size_t sent;                 /* bytes of the first line that are out */
    enum stream_packing packing; /* how it is sent */
    uint32_t checksum;           /* of the text that was sent packed */
    bool is_inside;              /* the last line that was sent whole is_part */
    bool aborted;                /* stream_abort() was called */
    bool ended;                  /* stream_end() was called */
    nsec_t moved_at;             /* when bytes were last taken, or the queue was empty */
    /* All is sent; it may push more. */
    void (*on_drained)(struct stream *, nsec_t now);
    void (*on_closed)(struct stream *); /* the connection is gone; may free the stream */
    void (*wake)(struct stream *);      /* the server's: there is something to take */
    void (*check)(struct stream *);     /* the server's: stream_check() */
    /* The server's: stream_is_answered() */
    bool (*is_answered)(struct stream *, nsec_t within);
    void *server_ctx; /* the server's, pinned */
};

/** stream_init() - empty; the two callbacks may not be NULL. */
void stream_init(struct stream *s, void (*on_drained)(struct stream *, nsec_t now),
    void (*on_closed)(struct stream *));

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

/** stream_is_answered() - has the other end's machine acknowledged all that was sent, or something
 * of it @within that time? True as well where nobody can tell. */
bool stream_is_answered(struct stream *s, nsec_t within);

/** The least room that stream_take() may be given. */
#define STREAM_TAKE_MIN LINE_PACKED_END

/** stream_take() - for the server: up to @cap bytes of the queue into @buf; how many those are. */
size_t stream_take(struct stream *s, char *buf, size_t cap, nsec_t now);

/** stream_is_stalled() - for the server: has nothing been taken for STREAM_STALL_NS? */
bool stream_is_stalled(const struct stream *s, nsec_t now);
