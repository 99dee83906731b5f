/*
 * uapi_text.h - the text of an answer, in which there may be keys.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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
