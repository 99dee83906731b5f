/*
 * etcd2_json.h - JSON that is written in two passes: the first measures its length, the second
 * writes the text into one block of memory of that length. Pure.
 *
 * The values of an etcd tree may be any bytes, and an answer may have millions of them. So the
 * quota is asked before an answer is made, and no value is copied twice.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** A text being written, or only measured. */
struct etcd2_json {
    char *text; /* borrowed, with room for all of it; NULL: it is only measured */
    size_t len; /* bytes so far */
    size_t max; /* writers may stop once @len is more than that */
};

/** etcd2_json_raw() - append a text as it is. */
void etcd2_json_raw(struct etcd2_json *j, const char *text);

/** etcd2_json_string() - append a string with its quotes; bytes that are not UTF-8 become U+FFFD,
 * as in Go. */
void etcd2_json_string(struct etcd2_json *j, const char *p, size_t len);

/** etcd2_json_number() - append a number in decimal. */
void etcd2_json_number(struct etcd2_json *j, uint64_t v);
