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
struct etcd2_json {
    char *text; /* borrowed, with room for all of it; NULL: it is only measured */
    size_t len; /* bytes so far */
    size_t max; /* whoever writes may stop when @len is over that */
};

/** etcd2_json_add() - these bytes as they are. */
void etcd2_json_add(struct etcd2_json *j, const void *p, size_t len);

/** etcd2_json_raw() - the same of a text. */
void etcd2_json_raw(struct etcd2_json *j, const char *text);

/** etcd2_json_string() - with its quotes; what is no UTF-8 is shown as U+FFFD, as Go shows it. */
void etcd2_json_string(struct etcd2_json *j, const char *p, size_t len);

/** etcd2_json_number() - in decimal. */
void etcd2_json_number(struct etcd2_json *j, uint64_t v);
