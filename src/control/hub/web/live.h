/*
 * live.h - tells open pages what changes in their network, as server-sent events (the HTML
 * standard, section 9.2).
 *
 * Theory of operation. While a page is open the rows of its network (live_view.h) are made anew
 * each LIVE_EACH, or later: making them takes a twentieth of the time at most. A page has a cursor
 * in their order, and is sent in one event all that has changed since, once its connection has
 * taken what was before; so a slow one costs nobody anything, and skips what has changed again. The
 * id of an event is the run of the hub and the number up to which the page knows everything. A
 * browser whose connection broke sends it in Last-Event-ID, and goes on there; where that is not
 * known any more, it is sent all. The rows are kept for a minute after the last page has gone.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/containers.h"
#include "base/err.h"
#include "hub/web/live_view.h"
#include "store/keys.h"

struct model;
struct model_network;
struct stream;

/** How often what is shown is looked at, and how much later it is where it takes long. */
#define LIVE_EACH  (2 * NSEC_PER_SEC)
#define LIVE_SHARE 20

/** Pages at a time, and of them those of one session. */
#define LIVE_STREAMS_MAX  32
#define LIVE_STREAMS_EACH 8

/** How long a page may hear nothing. */
#define LIVE_SILENCE (15 * NSEC_PER_SEC)

/** A stream without a session, by an admin token, comes again after that, and says its token again.
 */
#define LIVE_LIFE (300 * NSEC_PER_SEC)

/** How long the rows are kept without a page. */
#define LIVE_KEPT (60 * NSEC_PER_SEC)

struct live {
    struct model *model;         /* pins */
    struct live_sources sources; /* see there */
    /* Is the session with that number still good? Asked each time, for an open page. */
    bool (*holds)(void *ctx, uint64_t session, nsec_t now);
    struct keys networks; /* owns struct live_network */
    struct list streams;  /* of struct live_stream */
    unsigned n_streams;
    uint64_t revision;  /* of the last change in any network */
    uint64_t n_resumed; /* streams that went on where an earlier one had ended, since the start */
};

/** live_init() - @live's @model, @sources and @holds are the caller's to fill in after it. */
void live_init(struct live *live);

/** live_deinit() - after all streams have been closed. Idempotent. */
void live_deinit(struct live *live);

/** Who opens a page, and what it knows already. */
struct live_asker {
    uint64_t session;       /* 0: none, it has an admin token */
    const char *last_event; /* Last-Event-ID; NULL or nonsense: it knows nothing */
};

/**
 * live_open() - the stream of a page
 *
 * Return: to answer with; it frees itself when it is closed. NULL with words: -EBUSY: there are too
 * many; -ENOMEM.
 */
struct stream *live_open(struct live *live, const struct model_network *net,
    const struct live_asker *asker, nsec_t now, struct err *e);

/** live_tick() - each second: make anew what is due, tell, and end what is over. */
void live_tick(struct live *live, nsec_t now);

/** live_end_session() - its pages are closed: its user is out. */
void live_end_session(struct live *live, uint64_t session);

/**
 * live_id_read() - "RUN.NUMBER", as the id of an event
 *
 * Return: false: it is none.
 */
bool live_id_read(const char *text, uint64_t *ret_run, uint64_t *ret_number);
