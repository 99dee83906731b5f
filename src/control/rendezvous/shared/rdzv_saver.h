/*
 * rdzv_saver.h - where a TCPStore and an etcd tree say what has to be saved.
 *
 * What they keep is told as blobs (rdzv_blob.h), each under a name that no other of its kind in the
 * job has. The calls come while a request is handled, or while changes are flushed; they may not
 * call back.
 */
#pragma once

#include <stddef.h>

#include "rendezvous/shared/rdzv_record.h"

struct rdzv_saver {
    void *ctx; /* pinned: handed to the calls */

    /* A TCPStore has something for tcpstore_server_flush(), where it had nothing. */
    void (*unsaved)(void *ctx);

    /* The blob called @name is now the @len bytes at @p; it had @before (0: it is new). */
    void (*put)(void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len,
        const void *p, size_t len, size_t before);

    /* The blob called @name is gone; it had @before bytes. */
    void (*drop)(
        void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len, size_t before);
};

/** Keeps nothing: for one that is given up, and whose blobs stay. */
extern const struct rdzv_saver rdzv_saver_none;
