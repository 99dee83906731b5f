/*
 * mss_clamp.h - the segment size of TCP connections that this machine forwards.
 *
 * A connection that starts or ends here learns its segment size from the route.
 * A connection that is forwarded, of a container or a machine behind this one,
 * learns it from its two ends, which do not know the tunnel. So the MSS that they
 * announce is lowered, in both directions, to what the routes to both ends allow.
 */
#pragma once

struct err;

/**
 * mss_clamp_put() - replace the rules, which have a table of their own
 *
 * It may be called any number of times.
 *
 * @interface:	a name that state_check_interface() takes
 *
 * Return: 0, or negative errno with words.
 */
int mss_clamp_put(const char *interface, struct err *e);

/** mss_clamp_remove() - remove the rules, if there are any. 0 or negative errno with words. */
int mss_clamp_remove(const char *interface, struct err *e);
