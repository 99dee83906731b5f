/*
 * audience.h - a hub with the nodes a, b and c, and what their watches are told, for tests.
 *
 * A whole hub on the memory store; the test is the server, and takes what the streams hold.
 */
#pragma once

#include "hub/watch/watch.h"
#include "test/support/sample_hub.h"

extern struct sample_hub audience_hub;

/** What a watch knows that begins. */
extern const struct watch_known audience_nothing;

/** audience_enter(), audience_leave() - a test's set-up and teardown. */
int audience_enter(void **state);
int audience_leave(void **state);

/** audience_network() - lends the one that there is. */
struct model_network *audience_network(void);

/** audience_node() - lends the node of that name, which is there. */
struct model_node *audience_node(const char *name);

/** audience_add() - a node more, as sample_hub_add_node(). */
void audience_add(const char *name);

/** audience_remove() - a node less. */
void audience_remove(const char *name);

/** audience_set_edge() - the path of the edge between a and b. */
void audience_set_edge(const char *path);

/** audience_open() - a watch of that node, which has got its snapshot. */
struct stream *audience_open(const char *name);

/** audience_take() - what is queued, as far as there is room for it, until the next call; what was
 * all of it has drained the stream. */
const char *audience_take(struct stream *s);

/** audience_count() - how often @part is in @text. */
unsigned audience_count(const char *text, const char *part);

/** audience_end() - the watch's connection is gone. */
void audience_end(struct stream *s);
