/*
 * relay_lines.h - how the lines are by which pairs are relayed: this hub's own, and those of nodes
 * that relay, as they report them.
 *
 * The relay itself decides that its line is full, and which pairs are to go another way
 * (relay/line.h). Here that is written down as what the hub's own node reports of itself, so that
 * its users are told as they are told of any other node, becomes events and findings, and explains
 * edges.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "health/line.h"
#include "hub/model/model.h"
#include "hub/watch/edge_events.h"

/** relay_lines_changed() - what @node says of its line was @before and is @now; either may be NULL.
 * Who is asked to go another way, and who is let back, becomes an event. */
void relay_lines_changed(struct edge_events *events, const struct model_node *node,
    const struct relay_line_report *before, const struct relay_line_report *now, int64_t wall_s);

/** relay_lines_facts() - of what @node says of its line, which is not NULL; lent. */
void relay_lines_facts(const struct model_node *node, struct line_facts *ret);

/** Most relays of a network of which is known whom they ask to go. */
#define RELAY_LINES_ASKING_MAX 16

/** The relays of a network that ask somebody to go another way. Borrowed. */
struct relay_lines_asking {
    const struct model_node *items[RELAY_LINES_ASKING_MAX];
    unsigned n;
};

/** relay_lines_asking() - a walk over all nodes. */
void relay_lines_asking(const struct model_network *net, struct relay_lines_asking *ret);

/** relay_lines_asks() - the relay that asks the two to go another way; NULL: none does. */
const struct model_node *relay_lines_asks(const struct relay_lines_asking *asking,
    const struct model_node *a, const struct model_node *b);

/*
 * The line of this hub's own relay, @line below; NULL: it does not relay.
 */

/** hub_line_take() - each second: what the hub's own node says of it in @net. True: nodes are to be
 * told. */
bool hub_line_take(const struct relay_line *line, const struct model_network *net,
    struct edge_events *events, int64_t wall_s);

/** hub_line_is_busy() - is something to be found of it? */
bool hub_line_is_busy(const struct relay_line *line);

/** hub_line_find() - add to @set what is found of it, by who uses it in @net. */
void hub_line_find(const struct model_network *net, struct findings *set, int64_t wall_s);
