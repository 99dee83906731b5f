/*
 * hub_set.h - the hubs of the network, as this node uses them.
 *
 * Theory of operation. There is a session with each hub: WireGuard's, whose endpoint is looked
 * after (hub_health.h), by UDP or in TLS (hub_transport_io.h), so that each hub can relay for this
 * node; and a link to its API (hub_link.h) for this node's reports, which go to all hubs. One of
 * them is the serving hub (hub_choice.h): its link also has the stream of events. When another hub
 * becomes the serving hub, the stream is opened there, and nothing else changes.
 *
 * The owner tells what the engine shows of the hubs, after each poll and when it is due, and does
 * what is to be done. It gets what the links hear by its own listener, whose ctx is the struct
 * agent_hub.
 *
 * There is always a serving hub: where the network has no hub, it is one without a name, which is
 * not known to be anywhere.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/hublink/hub_choice.h"
#include "agent/hublink/hub_health.h"
#include "agent/hublink/hub_link.h"
#include "agent/hublink/hub_transport_io.h"
#include "agent/node_report.h"
#include "agent/paths/socket/stun_socket.h"
#include "agent/reconcile/observe.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "wire/member_proof.h"

/** One hub. */
struct agent_hub {
    void *owner; /* pins: the ctx of hub_set_init(), for who gets this as a listener's ctx */
    char name[NAME_MAX_LEN + 1]; /* "": the network has no hub */
    struct x25519_public key;
    struct state_hub_api hub_api; /* of its public API */
    struct hub_health health;
    struct hub_transport_io transport;
    struct member_proof_signer signer;
    struct hub_link *link; /* owns */
    struct node_report report;
    struct err refused;      /* why its last event was not believed; code 0: it was */
    uint64_t boot;           /* of its last snapshot; 0: it has sent none */
    nsec_t report_lost_at;   /* time when a report to it was lost; 0: the last one was taken */
    bool has_moved;          /* packets to it go another way: to be greeted after the next pass */
    struct observation seen; /* what the engine showed last, if @is_seen */
    bool is_seen;
};

struct hub_set {
    struct uv_loop_s *loop;                  /* pins */
    const struct state *state;               /* pins: who this node is */
    struct hub_link_listener listener;       /* its ctx is each hub's owner */
    struct agent_hub *items[HUB_CHOICE_MAX]; /* owns; sorted by name */
    unsigned n;
    struct agent_hub
        *gone[HUB_CHOICE_MAX]; /* owns; no hubs any more, until hub_set_release_gone() */
    unsigned n_gone;
    struct agent_hub *serving; /* borrows: one of @items */
    struct hub_choice choice;
    struct udp_probe probe; /* pings the serving hub */
    nsec_t choose_at;       /* time of the next choice */
};

#define HUB_SET_NULL                                                                               \
    {                                                                                              \
        .choose_at = NSEC_NEVER                                                                    \
    }

/** What the owner sees. Borrowed for the call. */
struct hub_set_facts {
    const struct snapshot *snapshot;
    const struct observe *seen; /* of all peers, as of the last poll */
    bool has_engine;
    const char *lockout;   /* as for struct hub_transport_view */
    uint16_t listen_port;  /* WireGuard's, host order; 0: not known yet */
    hub_path_fn has_route; /* is there a route to that address? */
    void *has_route_ctx;
    nsec_t now;
};

/** What is to be done. */
struct hub_set_actions {
    bool serving_changed; /* @serving is another one: what goes through a hub goes through that one
                           */
    bool pass_soon;       /* an endpoint is another one: have a pass */
    bool pass_at_once;    /* and one now, with hub_set_on_moved() after it */
};

/**
 * hub_set_init() - there is no hub yet
 * @state:	pinned
 * @listener:	copied; its on_... get a struct agent_hub as ctx
 */
void hub_set_init(struct hub_set *hs, struct uv_loop_s *loop, const struct state *state,
    const struct hub_link_listener *listener);

/** hub_set_stop() - its handles close in the loop's next turns. Idempotent. */
void hub_set_stop(struct hub_set *hs);

/**
 * hub_set_take() - the hubs of that snapshot, and which is the serving hub
 * @actions:	added to
 *
 * Not from a link's callback, since links may be ended. hub_set_on_applied() has to be called
 * before anything is sent to a new one.
 *
 * Return: 0 or negative errno with words; then the hubs before that one were taken.
 */
int hub_set_take(struct hub_set *hs, const struct hub_set_facts *facts,
    struct hub_set_actions *actions, struct err *e);

/** hub_set_release_gone() - after hub_set_take(), when nobody uses the links in @gone any more. */
void hub_set_release_gone(struct hub_set *hs);

/** hub_set_on_key() - this node has another key: what it asks hubs is proven by that from now on.
 */
void hub_set_on_key(struct hub_set *hs);

/** hub_set_find() - lends the hub of that name; NULL: there is none. */
struct agent_hub *hub_set_find(const struct hub_set *hs, const char *name);

/** hub_set_poll() - after each poll of the engine. @actions: added to. */
void hub_set_poll(
    struct hub_set *hs, const struct hub_set_facts *facts, struct hub_set_actions *actions);

/** hub_set_run() - when it is due. @actions: added to. */
void hub_set_run(
    struct hub_set *hs, const struct hub_set_facts *facts, struct hub_set_actions *actions);

/** hub_set_due() - time of the next hub_set_run(); NSEC_NEVER: after the next event. */
nsec_t hub_set_due(const struct hub_set *hs);

/** hub_set_on_applied() - a pass has succeeded: the hubs of @s can be reached where they are. */
void hub_set_on_applied(struct hub_set *hs, const struct snapshot *s, nsec_t now);

/** hub_set_on_moved() - after the pass that hub_set_actions.pass_at_once asks for. */
void hub_set_on_moved(struct hub_set *hs, nsec_t now);

/** hub_set_on_heard() - the stream of that hub has brought an event. */
void hub_set_on_heard(struct hub_set *hs, const struct agent_hub *hub, nsec_t now);

/** hub_set_on_lost() - the stream of that hub has ended. */
void hub_set_on_lost(struct hub_set *hs, const struct agent_hub *hub);

/** hub_set_on_self() - the addresses at which this node can be reached have changed: tell all hubs.
 * hub_set_on_edges() - the path to a peer has changed, or which edges can be applied. */
void hub_set_on_self(struct hub_set *hs);
void hub_set_on_edges(struct hub_set *hs);

/** hub_set_takes_report() - can that hub be sent a report now? */
bool hub_set_takes_report(const struct hub_set *hs, const struct agent_hub *hub, nsec_t now);

/** hub_set_report_within() - how soon to look again whether a report is due, ns. */
nsec_t hub_set_report_within(const struct hub_set *hs, nsec_t now);

/** hub_set_has_changes() - is there something that a hub that takes reports has not been told? */
bool hub_set_has_changes(const struct hub_set *hs, nsec_t now);

/** hub_set_is_settled() - nothing is asked or waited for, of any hub. */
bool hub_set_is_settled(struct hub_set *hs, nsec_t now);

/**
 * hub_set_next_handshake() - a hub with which a handshake is to be begun now
 *
 * After a pass, again and again. Return: lends; NULL: there is none more.
 */
struct agent_hub *hub_set_next_handshake(struct hub_set *hs);

/** hub_set_paths() - where each hub is, in order of names; into @ret of at least HUB_CHOICE_MAX. */
size_t hub_set_paths(const struct hub_set *hs, struct render_path *ret);
