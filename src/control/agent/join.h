/*
 * join.h - how a machine becomes a node.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/state/state.h"
#include "api/content/token.h"
#include "base/clock.h"
#include "crypto/x25519.h"

struct join_options;

/* ---- asking the hubs ------------------------------------------------------------------------- */

/*
 * Asks the hubs of a token to take this machine in, for join_enrol().
 *
 * The request can be repeated: a hub that has taken the key in already answers with the same node,
 * and takes no further use from the token. So a hub that does not answer, or whose answer was lost,
 * is asked again for a while, as is one that says itself that it cannot answer now. What would be
 * the same a second time, a refusal or a wrong key of the hub, ends it at once.
 *
 * Threads: any; waits for the answer.
 */

/**
 * join_ask() - ask until a hub answers
 * @options:	its token, what is said about the machine, and its on_wait
 * @secret:	of the node's key @public; signs the request
 * @patience:	no request begins later than that; one that has begun ends by its own time-out
 * @ret:	client_answer_deinit() after use, also on failure
 * @ret_key:	WireGuard key of the hub that has answered; borrowed from the token
 *
 * Return: as client_call(), with words.
 */
int join_ask(const struct join_options *options, const struct x25519_secret *secret,
    const struct x25519_public *public, nsec_t patience, struct client_answer *ret,
    const struct x25519_public **ret_key, struct err *e);

/* ---- the join -------------------------------------------------------------------------------- */

/*
 * The key is made here, and is on the disk before the hub hears of it. So a join whose answer was
 * lost can be repeated with the same key, and the hub answers with the same node. Interfaces and
 * routes are not touched here; the agent makes them.
 */

/** The options of the join. Borrowed. */
struct join_options {
    const struct token *token;
    const char *name; /* NULL: the host's name; if that is taken, the hub chooses one */
    const struct label *labels;
    size_t n_labels;
    enum engine_kind engine;
    /* The next six are those of struct state. */
    bool keeps_hosts;
    bool answers_dns;
    bool wants_relay;             /* needs the userspace engine */
    const struct subnets *routes; /* asked of the hub; NULL: none */
    bool keeps_sources;
    enum subnets_accept accepts;
    const char *proxy; /* see client.h; NULL: as the environment says; "none": none */
    const char *interface;
    uint16_t listen_port;         /* 0: any */
    const struct endpoint *given; /* where others reach this machine, as the operator says */
    unsigned n_given;             /* at most STATE_GIVEN_MAX */
    const char *state_dir;

    bool is_dry_run; /* the hub is asked what would become of it, and takes nobody in */

    /* Called at most once for each question: the hub could not be asked, as @e says, and is asked
     * again for up to so many seconds. NULL: nobody is told. */
    void (*on_wait)(void *ctx, unsigned for_s, const struct err *e);
    /* A hub was reached without @proxy, which failed as @e says. NULL: nobody is told. */
    void (*on_proxy_passed_over)(void *ctx, const struct err *e);
    void *ctx; /* pins */
};

/**
 * join_enrol() - ask the hub, check its answer, and keep it
 * @ret:	what was written to node.json; to be released with state_deinit()
 *
 * A hub that does not answer is asked again for 20 s.
 *
 * Refuses when this machine has joined already, when an interface of that name
 * exists, and when a part of the network's blocks is in use here.
 *
 * Return: 0; or non-zero with words.
 */
int join_enrol(const struct join_options *options, struct state *ret, struct err *e);
