/*
 * writer.h - the thread that writes and watches the resources of a namespace.
 *
 * It holds the Lease (leader.h), and while it does, a projection (projection.h) of all objects. It
 * reads the resources of each kind by a list in pages and then by a watch with bookmarks, which
 * goes on from the version that it saw last; when that is too old (410) the list is read again.
 * What is due is done by one request after the other. Wishes go to the hub's loop by mail, and the
 * loop judges them as it judges any administrator's request.
 *
 * The hub does not depend on it: without the resources, or without the rights to write them, it
 * says so once and tries again each half minute.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "hub/resources/mail.h"

struct err;
struct resource_counts;
struct writer;

struct writer_config {
    const char *where;              /* borrowed: what follows "kubernetes:" in the store's URL */
    const char *me;                 /* borrowed: names this hub among those of the store */
    struct mail_queue *to_loop;     /* pins */
    void (*wake_loop)(void *ctx);   /* from the thread: there is mail for the loop */
    void *ctx;                      /* pins */
    struct resource_counts *counts; /* pins: counted from the thread */
};

/** writer_start() - read the files that @where names, and start the thread. */
int writer_start(struct writer **ret, const struct writer_config *config, struct err *e);

/** writer_put() - mail for the thread; @m is taken. The loop's thread only. */
void writer_put(struct writer *w, struct mail *m);

/** writer_stop() - give the Lease back, and join the thread. NULL is fine. Always NULL. */
struct writer *writer_stop(struct writer *w);
