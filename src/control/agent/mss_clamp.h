/*
 * mss_clamp.h - the segment size of TCP connections that this machine forwards.
 *
 * What starts or ends here learns its size from the route. A connection that
 * passes through, of a container or a machine behind this one, is told by its
 * ends alone, who know nothing of the tunnel: so the MSS that they announce is
 * lowered, in both directions, to what the routes to both of them allow.
 */
#pragma once

struct err;

/**
 * mss_clamp_put() - have the rules, in a table of their own; as often as one likes
 * @interface:	a name that state_check_interface() takes
 *
 * Return: 0, or negative errno with words.
 */
int mss_clamp_put(const char *interface, struct err *e);

/**
 * mss_clamp_check_name() - may the rules name that interface?
 *
 * A name may have characters that mean something to nft; nobody gives one such a name.
 *
 * Return: 0, or -EINVAL with words.
 */
int mss_clamp_check_name(const char *interface, struct err *e);

/** mss_clamp_remove() - rules that are not there are fine. 0 or negative errno with words. */
int mss_clamp_remove(const char *interface, struct err *e);
