/*
 * device_access.h - the network's rules as a device's own filter goes by them (access/), for a
 * machine whose kernel has no packet filter.
 *
 * Threads: all calls are under the port's lock, outside the gates.
 */
#pragma once

#include <stdint.h>

struct access_builder;
struct device;
struct err;
struct str;

/** device_access_begin() - for rules that a client is about to say; NULL: no memory. */
struct access_builder *device_access_begin(struct device *d);

/**
 * device_access_use() - go by what @b has been told, from the next packet on
 * @tag:	what the client calls it
 *
 * Return: 0; or negative errno with words, and all is as before.
 */
int device_access_use(struct device *d, struct access_builder *b, uint64_t tag, struct err *e);

/** device_access_end() - all passes again, and what was counted is forgotten. Idempotent. */
void device_access_end(struct device *d);

/**
 * device_access_tell() - what was let in and refused
 * @out:	appended to: lines "access_tag=N", "access_rules=N", "access_passed=RULE,N",
 *		"access_kind=FROM,TO,PROTOCOL,PORT,N" of a kind of packet, and
 *		"access_refused=N" of all; none without rules
 */
void device_access_tell(struct device *d, struct str *out);
