/*
 * agent_world.h - the parts of a whole agent, on a clock of the test's: the node "n2" of four.
 *
 * Its interface "weft0" is a bridge in the test's network namespace; its engine keeps what it is
 * told; its hub is away, so nothing is reported. What its paths say nobody hears.
 */
#pragma once

#include "agent/agent_core.h"
#include "test/support/sample_engine.h"

/** Of the wall clock when the other one is 0. */
#define AGENT_WORLD_WALL (1790000000 * NSEC_PER_SEC)

struct agent_world {
    struct netlink *nl; /* pins: the namespace's */
    struct agent_config config;
    struct agent agent;
    struct sample_engine engine;
    unsigned ifindex; /* of the interface */
    nsec_t now;
};

/** agent_world_make() - the only one at a time. @state: of netns_enter(), the test's set-up. */
struct agent_world *agent_world_make(void **state);
void agent_world_end(struct agent_world *w);

/** agent_world_make_without_hub() - of a network that has none. */
struct agent_world *agent_world_make_without_hub(void **state);

/** agent_world_use() - the engine is one of that kind instead; before the first poll. */
void agent_world_use(struct agent_world *w, enum engine_kind kind);

/** agent_world_wall() - the wall clock. */
nsec_t agent_world_wall(void);

/** agent_world_peer() - lends what the engine was told of number @n; NULL: nothing. */
struct wg_peer *agent_world_peer(struct agent_world *w, unsigned n);

/** agent_world_put_hub() - a second hub, number 9, at the port 9999. */
void agent_world_put_hub(struct snapshot *s, const char *name);

/** agent_world_pass() - a pass; what it logs, lent until the next call. */
const char *agent_world_pass(struct agent_world *w);

/** agent_world_poll() - a poll; the same. */
const char *agent_world_poll(struct agent_world *w);
