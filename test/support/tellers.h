/*
 * tellers.h - a hub whose nodes a and b tell what they have moved, for tests.
 *
 * A whole hub on a store on the disk; the day is 2026-11-23.
 */
#pragma once

#include "test/support/sample_hub.h"

/** The day, since 1970. */
#define TELLERS_DAY 20780

/** What a tells of b, early and late; and what b says of the same: it bears a out. */
#define TELLERS_A_100                                                                              \
    "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":"                                               \
    "[{\"peer\":\"b\",\"path\":\"direct\",\"job\":\"llama\",\"sent\":100,\"received\":10}]}"
#define TELLERS_A_300                                                                              \
    "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":"                                               \
    "[{\"peer\":\"b\",\"path\":\"direct\",\"job\":\"llama\",\"sent\":300,\"received\":10}]}"
#define TELLERS_B_300                                                                              \
    "{\"day\":\"2026-11-23\",\"meter\":9,\"flows\":"                                               \
    "[{\"peer\":\"a\",\"path\":\"direct\",\"job\":\"llama\",\"sent\":10,\"received\":300}]}"

extern struct sample_hub tellers_hub;

/** tellers_enter(), tellers_leave() - a test's set-up and teardown. */
int tellers_enter(void **state);
int tellers_leave(void **state);

/** tellers_restart() - the hub ends, and begins again with what it has stored. */
void tellers_restart(void);

/** tellers_network() - lends the one that there is. */
struct model_network *tellers_network(void);

/** tellers_node() - lends the node of that name, which is there. */
struct model_node *tellers_node(const char *name);

/** tellers_tell() - node @who tells the hub @text, as it would report it, at noon of @today. */
void tellers_tell(const char *who, int32_t today, const char *text);
