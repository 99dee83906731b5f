/*
 * origin.h - does a request come from a program that means this daemon, or from a web page?
 *
 * A browser on a node reaches the hub's overlay address, and a page of any site can make it send
 * there; with a name that the page's owner points to that address (DNS rebinding) it can even read
 * the answers. But a browser says in "Host" which name it was given, and in "Origin" that a page
 * asks. No program of Weft sends an "Origin".
 */
#pragma once

#include <stdbool.h>

#include "api/content/route.h"

struct err;

/** What a request says about where it comes from, and where it arrived. Texts: NULL if not sent. */
struct origin {
    const char *host;
    const char *origin;
    enum api_access access;
    bool is_unix;       /* it came through a unix socket */
    struct ip_addr own; /* API_ACCESS_OVERLAY: the address that the listener is bound to */
};

/**
 * origin_check() - is the request one for this listener?
 *
 * The public API takes any: what counts there is a secret in the request. On the overlay "Host" is
 * the listener's own address, with or without a port; on a unix socket a name without a dot.
 *
 * Return: 0; or -EPERM with words.
 */
int origin_check(const struct origin *o, struct err *e);
