/*
 * uapi_get.h - the answers to get=1 and stats=1. Under the port's lock.
 */
#pragma once

struct device;
struct uapi_text;

/** uapi_get() - the device's configuration and state, without the closing errno. */
void uapi_get(struct device *d, struct uapi_text *out);

/** uapi_stats() - its port's counters, likewise. */
void uapi_stats(struct device *d, struct uapi_text *out);
