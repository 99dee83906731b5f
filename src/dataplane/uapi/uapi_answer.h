/*
 * uapi_answer.h - what a request is answered with: a text, in which there may be keys.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct device;

/** Text that grows. A failed allocation is remembered, and asked for once, at the end. */
struct uapi_text {
    char *p;         /* owns; NULL while empty */
    size_t len;      /* bytes used, without the zero that follows */
    size_t cap;      /* bytes allocated */
    bool has_failed; /* no memory for some of it */
};

/** uapi_text_add() - as printf. */
void uapi_text_add(struct uapi_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** uapi_text_deinit() - wipe (there may be keys in it) and release. Idempotent. */
void uapi_text_deinit(struct uapi_text *t);

/** uapi_get() - the answer to get=1: the device's configuration and state, without the closing
 * errno. Under the port's lock. */
void uapi_get(struct device *d, struct uapi_text *out);

/** uapi_stats() - the answer to stats=1: its port's counters, likewise. */
void uapi_stats(struct device *d, struct uapi_text *out);
