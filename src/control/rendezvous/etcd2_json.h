/*
 * etcd2_json.h - JSON that is written down in two passes: how long it is, then the text itself, in
 * one piece of memory of that length. Pure.
 *
 * The values of an etcd tree may be any bytes, and an answer a million of them; so it is known, and
 * asked for, what an answer takes before it is made, and nothing is kept twice.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** A text being written, or only measured. */
struct rdzv_json {
    char *text; /* borrowed, with room for all of it; NULL: it is only measured */
    size_t len; /* bytes so far */
    size_t max; /* whoever writes may stop when @len is over that */
};

/** rdzv_json_add() - these bytes as they are. */
void rdzv_json_add(struct rdzv_json *j, const void *p, size_t len);

/** rdzv_json_raw() - the same of a text. */
void rdzv_json_raw(struct rdzv_json *j, const char *text);

/** rdzv_json_string() - with its quotes; what is no UTF-8 is shown as U+FFFD, as Go shows it. */
void rdzv_json_string(struct rdzv_json *j, const char *p, size_t len);

/** rdzv_json_number() - in decimal. */
void rdzv_json_number(struct rdzv_json *j, uint64_t v);
