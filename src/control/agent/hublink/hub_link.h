/*
 * hub_link.h - the agent's connection to a hub: one call of its members' API, and the link that
 * keeps a stream of events and sends reports.
 *
 * Threads: the loop's, where nothing else is said.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/client/client.h"
#include "base/addr.h"
#include "base/clock.h"
#include "monitor/edge_report.h"

struct hub_link;
struct stun_transaction;
struct watch_event;

/* ---- one call -------------------------------------------------------------------------------- */

/*
 * One call to the hub's members' API, proven to come from this node.
 *
 * Each request is signed (wire/member_proof.h). A hub that refuses a signature's stamp says which
 * one it takes. So the first request of an agent, and the first after the hub was started anew, is
 * sent twice.
 *
 * Threads: hub_ask_learn() any.
 */

/** Longest path. */
#define HUB_ASK_PATH_MAX 159

/** hub_ask_cancel() - end hub_link_ask()'s call without @done. NULL is fine. Always NULL. */
struct hub_ask *hub_ask_cancel(struct hub_ask *ask);

/**
 * hub_ask_learn() - was the request refused only for its stamp?
 * @result, @answer:	as client_done_fn has them
 *
 * Return: true if it was; then @signer knows the stamp that the hub takes.
 */
bool hub_ask_learn(
    struct member_proof_signer *signer, int result, const struct client_answer *answer);

/* ---- the link -------------------------------------------------------------------------------- */

/*
 * The agent's connection to the hub, over the overlay.
 *
 * One stream of events (docs/API.md, "Members' API") that is opened again
 * whenever it ends, later and later while the hub is away, at moments that many
 * agents do not choose alike; and the node's reports to the hub. To a hub that
 * does not serve this node there is no stream, only reports.
 *
 * Time is an argument. What comes from the loop (a line, an answer, a timer) reads the clock once,
 * and hands that time to the listener.
 */

/** The hub counts as away after this time without a line: three heartbeats. */
#define HUB_LINK_SILENCE (30 * NSEC_PER_SEC)

/** Who is told. All are called from the loop. */
struct hub_link_listener {
    /*
     * What is known already: the run of this link's hub, and the revision of its last event. The
     * hub then tells what has changed since, if it can. Returns false when a snapshot is needed.
     * NULL: always.
     */
    bool (*known)(void *ctx, uint64_t *ret_boot, uint64_t *ret_revision);

    /*
     * An event has come at @now. Takes what @ev holds. Returns 0, or negative errno with words: the
     * stream is then opened anew, which begins with a snapshot.
     */
    int (*on_event)(void *ctx, struct watch_event *ev, nsec_t now, struct err *e);

    /* The hub answers again, or has stopped answering; @why is a clause for the second, else "". */
    void (*on_change)(void *ctx, bool heard, const char *why, nsec_t now);

    /* The last report's answer has come, or will not come. @body: of the answer; NULL: none, or the
     * report was not taken. */
    void (*on_reported)(void *ctx, enum edge_report_result result, const json_t *body);

    void *ctx; /* pinned */
};

/**
 * hub_link_new() - nothing is opened yet
 * @interface:	pinned; the overlay's: the hub is asked through no other
 * @signer:	pinned; signs all requests
 * @listener:	copied
 *
 * Return: 0 or negative errno with words.
 */
int hub_link_new(struct hub_link **ret, struct uv_loop_s *loop, const char *interface,
    struct member_proof_signer *signer, const struct hub_link_listener *listener, struct err *e);

/**
 * hub_link_free() - end everything, silently
 *
 * Its handles close in the loop's next turns. Not
 * from one of its own callbacks.
 */
struct hub_link *hub_link_free(struct hub_link *hl);

/** hub_link_set_target() - where the hub's API is on the overlay; starts, or moves, the stream. */
void hub_link_set_target(struct hub_link *hl, const struct endpoint *api, nsec_t now);

/**
 * hub_link_set_standby() - keep no stream, or one again
 *
 * A new link keeps one. The listener is not told of a stream that is left for this reason.
 */
void hub_link_set_standby(struct hub_link *hl, bool is_standby, nsec_t now);

/**
 * hub_link_poke() - there is reason to believe that the hub can be reached just now
 *
 * While the next try is waited for, the stream is opened at once; a stream that
 * has missed a heartbeat is opened anew.
 */
void hub_link_poke(struct hub_link *hl, nsec_t now);

/** hub_link_restart() - the hub seems to have been started anew: open the stream again, at once. */
void hub_link_restart(struct hub_link *hl, nsec_t now);

/**
 * hub_link_clock_ahead() - by how many s this machine's clock is ahead of the hub's; negative:
 * behind
 *
 * As of the last report that the hub answered, and wrong by a second, and by how long the answer
 * took.
 *
 * Return: false: it has not said what time it is.
 */
bool hub_link_clock_ahead(const struct hub_link *hl, int64_t *ret_s);

/** hub_link_is_heard() - the stream is open and not silent. */
bool hub_link_is_heard(const struct hub_link *hl);

/**
 * Longest silence of a hub that is there: its kernel answers a TCP keepalive after 4 s, and if that
 * is lost the ones after 5 and 6 s. Of a hub whose heartbeats come slower see hub_link_view.
 */
#define HUB_LINK_QUIET_MAX (7 * NSEC_PER_SEC)

/** How the hub is seen. */
struct hub_link_view {
    bool is_heard;     /* as hub_link_is_heard() */
    nsec_t silent_for; /* since it was last heard; NSEC_NEVER: never since the start. The answers of
                          its kernel count as well. If a heartbeat is missing only lines count,
                          because a kernel answers for a hub that hangs. */
    nsec_t quiet_max;  /* the longest silence of this hub, as long as it is there */
    uint64_t store_behind_s; /* for so long it has not heard what changes in its store, as its last
                                heartbeat said; 0: it hears it, or nothing is known of that */
};

/** hub_link_view() - as it is at @now. */
struct hub_link_view hub_link_view(const struct hub_link *hl, nsec_t now);

/**
 * hub_link_unheard() - does the hub hear what this node sends? To be asked about each second
 *
 * If it does not, its kernel repeats segments that this machine has acknowledged already, and no
 * heartbeat comes.
 *
 * @ret_is_late: the heartbeat is all that speaks for it: perhaps nothing arrives; NULL: not wanted
 *
 * Return: the time since which it seems not to; 0: it does, or nothing is known.
 */
nsec_t hub_link_unheard(struct hub_link *hl, bool *ret_is_late, nsec_t now);

/**
 * hub_link_heard_fn - what the hub says to hub_link_ask_heard()
 * @from:	where the request came from, as the hub saw it; NULL: it did not come
 *
 * Not called when the hub does not say: it is away, or too old to be asked.
 */
typedef void (*hub_link_heard_fn)(void *ctx, const struct endpoint *from);

/**
 * hub_link_ask_heard() - GET /v1/heard/TRANSACTION
 *
 * While a question is on its way, another one is dropped.
 *
 * Return: it was sent.
 */
bool hub_link_ask_heard(
    struct hub_link *hl, const struct stun_transaction *id, hub_link_heard_fn fn, void *ctx);

/**
 * hub_link_report() - PUT /v1/status
 * @body:	taken
 *
 * While a report is on its way, or the hub is away, this one is dropped.
 *
 * Return: it was sent, and the listener's on_reported() will say what has become of it.
 */
bool hub_link_report(struct hub_link *hl, json_t *body);

/** hub_link_is_reporting() - is a report on its way? */
bool hub_link_is_reporting(const struct hub_link *hl);

/**
 * hub_link_ask() - any other call of the members' API
 * @body:	borrowed; NULL: none
 * @done, @ctx:	as client_start() has them
 * @ret:	the call, until @done; may not be NULL
 *
 * To be cancelled before hub_link_free().
 *
 * Return: 0; -ENOTCONN: no hub is known yet; or another negative errno with words. After a failure
 * @done is not called.
 */
int hub_link_ask(struct hub_link *hl, const char *method, const char *path, json_t *body,
    unsigned timeout_ms, client_done_fn done, void *ctx, struct hub_ask **ret, struct err *e);
