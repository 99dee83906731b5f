/*
 * routes.h - the table of the hub's calls: one row each, as docs/API.md lists them.
 *
 * It stands above the handlers: a handler that tells of the table is lent it.
 */
#pragma once

#include "api/content/route.h"

/** All of them; the ctx of each is a struct handlers. Ends with ROUTES_END. */
extern const struct route routes[];
