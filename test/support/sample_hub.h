/*
 * sample_hub.h - a whole hub in this process, for tests: its store, its API, its agents' ears.
 *
 * Requests go to the real handlers by the real table of routes. Members listen
 * as agents do: what their watches are told goes through the agents' decoder
 * into a snapshot. There are no sockets and no clock: @now goes on only by
 * sample_hub_wait().
 *
 * What must never be is checked all the time, and ends the process with the seed:
 * a refusal without a sentence, an answer of 500, an event that an agent would
 * not take, and a view that is another one than a fresh snapshot has. What a stock
 * WireGuard in a member's place would be told is compared as well.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "api/content/route.h"
#include "base/text.h"
#include "hub/hub_internal.h"
#include "mesh/snapshot/snapshot.h"

#define SAMPLE_HUB_EARS_MAX 4

/** A member that listens. */
struct sample_ear {
    struct stream *stream; /* pins; NULL: free */
    struct snapshot held;  /* as an agent has it */
    char network[NAME_MAX_LEN + 1];
    char name[NAME_MAX_LEN + 1]; /* of the node */
    struct str part;             /* of a line that is not whole yet */
    bool is_removed;             /* it was told so */
    size_t n_events;
};

struct sample_hub {
    uv_loop_t loop;
    struct hub *hub; /* owns */
    struct hub_config config;
    char dir[64];
    char url[96];
    bool has_begun; /* what is in the directory is kept from one hub to the next */
    nsec_t now;
    struct store *store; /* given to the hub; NULL: that of the directory */
    bool may_fail;       /* an answer of 500 or 503 is no surprise: the store loses some */
    struct sample_ear ears[SAMPLE_HUB_EARS_MAX];
};

/** sample_hub_seed() - what is printed when something must not be. */
void sample_hub_seed(uint64_t seed);

/** sample_hub_fail() - print the sentence and the seed, and abort. */
void sample_hub_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/** sample_hub_make_dir() - an empty state directory, and a store in memory or in a file. */
void sample_hub_make_dir(struct sample_hub *s, bool on_disk);

/** sample_hub_remove_dir() - with all that is in it. */
void sample_hub_remove_dir(struct sample_hub *s);

/** sample_hub_open() - load what is in the directory; without a network one is made. */
void sample_hub_open(struct sample_hub *s);

/** sample_hub_close() - as a hub that is told to end. */
void sample_hub_close(struct sample_hub *s);

/** sample_hub_begin(), sample_hub_end() - one on the store in memory, with its directory, from its
 * making to its end. */
void sample_hub_begin(struct sample_hub *s);
void sample_hub_end(struct sample_hub *s);

/** sample_hub_ask() - by @access, for @member (overlay); @path may have a query; @body
 * may be NULL. The status. */
int sample_hub_ask(struct sample_hub *s, enum api_access access, struct model_node *member,
    const char *method, const char *path, const char *body, json_t **ret);

/** sample_hub_insist() - an administrator asks, and the status has to be @status; the answer, a new
 * reference. */
json_t *sample_hub_insist(
    struct sample_hub *s, const char *method, const char *path, const char *body, int status);

/** sample_hub_write() - another hub of the store writes that, and this one has heard of it; @value:
 * NULL removes it. */
void sample_hub_write(struct sample_hub *s, const char *key, const char *value);

/** sample_hub_turn_edge_off() - an administrator has these two, in byte order, not talk. */
void sample_hub_turn_edge_off(struct sample_hub *s, const char *a, const char *b);

/** sample_hub_query_value() - for struct request; the query is its texts "a=1", and an empty one.
 */
const char *sample_hub_query_value(const void *query, const char *name);

/** sample_hub_ask_text() - GET @path as @member; an answer that is text, for the caller to free();
 * NULL: there was none. */
char *sample_hub_ask_text(struct sample_hub *s, struct model_node *member, const char *path);

/** sample_hub_network() - lends the network that sample_hub_open() has made. */
struct model_network *sample_hub_network(struct sample_hub *s);

/** sample_hub_node() - lends its node of that name, which is there. */
struct model_node *sample_hub_node(struct sample_hub *s, const char *name);

/** sample_hub_add_node() - a node of that name, by a key that begins with 0, its first letter, 1,
 * and its second one. */
void sample_hub_add_node(struct sample_hub *s, const char *name);

/** What an administrator asks. */
struct sample_question {
    const char *method;
    const char *path;
    const char *body; /* NULL: none */
};

/** sample_hub_ask_both() - two questions, the second before the first is answered; the statuses. */
void sample_hub_ask_both(struct sample_hub *s, const struct sample_question questions[static 2],
    int ret_statuses[static 2]);

/** sample_hub_listen() - have @member listen, if there is room for one more ear. */
void sample_hub_listen(struct sample_hub *s, struct model_node *member);

/** sample_hub_hear() - all ears take what is there. */
void sample_hub_hear(struct sample_hub *s);

/** sample_hub_wait() - @seconds go by. */
void sample_hub_wait(struct sample_hub *s, unsigned seconds);

/** sample_hub_compare() - each ear holds what a fresh snapshot says. */
void sample_hub_compare(struct sample_hub *s);

/** sample_hub_show() - all that the API shows of what is stored; a new reference. */
json_t *sample_hub_show(struct sample_hub *s);
