/* node_names.c - see node_names.h. */
#include "agent/node_names.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/hosts_helper.h"
#include "agent/resolver.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "mesh/names/hosts.h"
#include "mesh/object/fields.h"
#include "mesh/snapshot/snapshot.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/hosts_file.h"
#include "os/worker.h"

/* ---- names that mean something else --------------------------------------------------------- */

#define PATIENCE     (2 * NSEC_PER_SEC) /* without an answer for this time it counts as silent */
#define PERIOD       (60 * NSEC_PER_SEC)
#define PERIOD_EACH  (NSEC_PER_SEC / 10) /* the period is at least this for each name */
#define SILENCE_TIME (30 * NSEC_PER_SEC)

struct entry {
    struct name_query query; /* its name is @name */
    char name[NAME_MAX_LEN + 1];
    enum name_verdict verdict;
    struct ip_addr where;
    nsec_t due_at; /* time of the next question; 0: at once */
};

struct name_check {
    struct worker *worker; /* the owner's; asks */
    name_lookup_fn lookup; /* immutable */

    pthread_mutex_t lock;
    /* guarded by lock: */
    struct entry *entries; /* owns; sorted by name */
    size_t n;
    nsec_t asking_since; /* a question is under way since then; 0: none is */
    bool is_silent;      /* the last question had no answer */
};

static void check_release(void *ctx)
{
    struct name_check *c = ctx;

    (void)pthread_mutex_destroy(&c->lock);
    free(c->entries);
    free(c);
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static int compare_name(const void *name, const void *entry)
{
    return strcmp(name, ((const struct entry *)entry)->name);
}

static struct entry *check_find(const struct name_check *c, const char *name)
{
    if (c->n == 0)
        return NULL;
    return bsearch(name, c->entries, c->n, sizeof(*c->entries), compare_name);
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Takes what was found out about @name, if it is still wanted. */
static void check_take(
    struct name_check *c, const char *name, enum name_found found, const struct ip_addr *where)
{
    struct entry *e;

    (void)pthread_mutex_lock(&c->lock);
    e = check_find(c, name);
    c->asking_since = 0;
    c->is_silent = found == NAME_FOUND_SILENT;
    if (e)
        e->due_at = clock_now() +
                    (c->is_silent ? SILENCE_TIME : nsec_max(PERIOD, (nsec_t)c->n * PERIOD_EACH));
    /* A verdict stays while the resolver is silent. */
    if (e && (!c->is_silent || e->verdict == NAME_VERDICT_PENDING)) {
        e->verdict = found == NAME_FOUND_SOMEBODY ? NAME_VERDICT_ELSEWHERE : NAME_VERDICT_FREE;
        e->where = *where;
    }
    (void)pthread_mutex_unlock(&c->lock);
}

/* Is a name due? Then it is being asked for from now on; else @ret_due_at is when one will be. */
static bool check_next(struct name_check *c, struct entry *ret, nsec_t *ret_due_at)
{
    const struct entry *next = NULL;
    nsec_t now = clock_now();

    (void)pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->n; i++)
        if (!next || c->entries[i].due_at < next->due_at)
            next = &c->entries[i];
    *ret_due_at = next ? next->due_at : NSEC_NEVER;
    if (*ret_due_at <= now) {
        *ret = *next;
        ret->query.name = ret->name;
        c->asking_since = now;
    }
    (void)pthread_mutex_unlock(&c->lock);
    return *ret_due_at <= now;
}

static void check_run(struct worker *w, void *ctx)
{
    struct name_check *c = ctx;

    while (!worker_is_ending(w)) {
        struct ip_addr where = {0};
        enum name_found found;
        struct entry next;
        nsec_t due_at;

        if (!check_next(c, &next, &due_at)) {
            worker_wait(w, due_at);
            continue;
        }
        found = c->lookup(&next.query, &where);
        check_take(c, next.name, found, &where);
    }
}

/* ---- the loop's ----------------------------------------------------------------------------- */

int name_check_new(struct name_check **ret, name_lookup_fn lookup, struct err *e)
{
    struct name_check *c = calloc(1, sizeof(*c));
    struct worker_config config = {
        .name = "name-check", .loop = check_run, .release = check_release, .ctx = c};
    int r;

    if (!c)
        return err_set(e, -ENOMEM, "no memory for looking names up");
    c->lookup = lookup;
    (void)pthread_mutex_init(&c->lock, NULL);
    r = worker_start(&c->worker, &config);
    if (r < 0) {
        check_release(c);
        return err_set(e, r, "no thread to look names up in: %s", strerror(-r));
    }
    *ret = c;
    return 0;
}

bool name_check_want(struct name_check *c, const struct name_query *queries, size_t n)
{
    struct entry *entries = calloc(n + 1, sizeof(*entries));
    struct entry *old;

    if (!entries)
        return false;
    for (size_t i = 0; i < n; i++) {
        entries[i].query = queries[i];
        (void)snprintf(
            entries[i].name, sizeof(entries[i].name), "%.*s", NAME_MAX_LEN, queries[i].name);
    }
    qsort(entries, n, sizeof(*entries), compare_entries);
    (void)pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < n; i++) {
        const struct entry *known = check_find(c, entries[i].name);

        if (known && ip_addr_equal(&known->query.address4, &entries[i].query.address4) &&
            ip_addr_equal(&known->query.address6, &entries[i].query.address6)) {
            entries[i].verdict = known->verdict;
            entries[i].where = known->where;
            entries[i].due_at = known->due_at;
        }
    }
    old = c->entries;
    c->entries = entries;
    c->n = n;
    (void)pthread_mutex_unlock(&c->lock);
    worker_wake(c->worker);
    free(old);
    return true;
}

enum name_verdict name_check_ask(
    struct name_check *c, const char *name, nsec_t now, struct ip_addr *ret_where)
{
    enum name_verdict verdict = NAME_VERDICT_PENDING;
    const struct entry *e;

    (void)pthread_mutex_lock(&c->lock);
    e = check_find(c, name);
    if (e)
        verdict = e->verdict;
    if (verdict == NAME_VERDICT_ELSEWHERE)
        *ret_where = e->where;
    if (e && verdict == NAME_VERDICT_PENDING &&
        (c->is_silent || (c->asking_since != 0 && now - c->asking_since > PATIENCE)))
        verdict = NAME_VERDICT_FREE;
    (void)pthread_mutex_unlock(&c->lock);
    return verdict;
}

struct name_check *name_check_free(struct name_check *c)
{
    if (c)
        (void)worker_leave(c->worker);
    return NULL;
}

/* ---- the hosts file ------------------------------------------------------------------------- */

#define NAMES_PERIOD   (10 * NSEC_PER_SEC)
#define PENDING_PERIOD (NSEC_PER_SEC / 4) /* while the resolver is being asked */

/* Most names that the status lists. */
#define LISTED_MAX 64

static const char *owner_of(
    const struct node_names *nn, const struct snapshot *s, char buf[static HOSTS_OWNER_MAX])
{
    return hosts_owner(nn->opt.born ? nn->opt.born : s, buf);
}

/* The names that are not in the file, for `weft status`. This node's own are not listed, because
 * this machine's names lead to it anyway. */
static json_t *encode_left_out(
    const struct snapshot *s, const struct hosts_extra *extras, size_t n_extras)
{
    json_t *list = json_array();
    char why[128];

    for (size_t i = 0; list && i < n_extras && json_array_size(list) < LISTED_MAX; i++) {
        const struct node *node = &s->nodes.items[extras[i].node]->node;

        if (extras[i].verdict == HOSTS_KEPT || extras[i].verdict == HOSTS_PENDING ||
            strcmp(node->meta.name, s->self) == 0)
            continue;
        fields_append(&list, json_pack("{s:s, s:s, s:s}", "name", extras[i].name, "node",
                                 node->meta.name, "why", hosts_describe(&extras[i], why)));
    }
    return list;
}

/* Logs each name once, when it begins to be left out. */
static void log_left_out(const json_t *before, const json_t *now)
{
    const json_t *item;
    size_t i;

    json_array_foreach(now, i, item) {
        const json_t *old = NULL;
        bool is_old = false;
        size_t j;

        json_array_foreach(before, j, old)
            is_old |= json_equal(old, item) != 0;
        if (!is_old)
            log_info("the name \"%s\" of node %s is not in " HOSTS_FILE_DEFAULT ": %s",
                json_string_value(json_object_get(item, "name")),
                json_string_value(json_object_get(item, "node")),
                json_string_value(json_object_get(item, "why")));
    }
}

/* The names besides the qualified ones, each with its verdict. NULL: none, or no memory. */
static struct hosts_extra *choose_extras(
    const char *name, const struct snapshot *s, const char *owner, size_t *ret_n)
{
    _cleanup_(freep) struct hosts_extra *extras = hosts_list_extras(s, ret_n);
    _cleanup_(freep) char *file = NULL;
    size_t len = 0;

    /* A file that cannot be read now cannot be written either, which is logged then. */
    if (extras && statefile_read(name, HOSTS_FILE_MAX, &file, &len, NULL) == 0 &&
        !hosts_mark_taken(extras, *ret_n, file, len, owner))
        *ret_n = 0;
    return TAKE_PTR(extras);
}

/* Is the resolver to be asked for that name? Not for this machine's own, which lead to it anyway.
 */
static bool is_checked(const struct snapshot *s, const struct hosts_extra *x)
{
    return x->verdict == HOSTS_KEPT &&
           strcmp(s->nodes.items[x->node]->node.meta.name, s->self) != 0;
}

/* Has the resolver asked for those names that nothing else speaks against. */
static void want_extras(struct node_names *nn, const struct snapshot *s,
    const struct hosts_extra *extras, size_t n_extras)
{
    _cleanup_(freep) struct name_query *queries = calloc(n_extras + 1, sizeof(*queries));
    size_t n = 0;

    for (size_t i = 0; queries && i < n_extras; i++) {
        const struct node *node = &s->nodes.items[extras[i].node]->node;

        if (is_checked(s, &extras[i]))
            queries[n++] = (struct name_query){.name = extras[i].name,
                .address4 = node->address4,
                .address6 = node->address6,
                .ours = {s->network.cidr4, s->network.cidr6}};
    }
    if (queries)
        (void)name_check_want(nn->check, queries, n);
}

/* Fills in the verdicts of the resolver. Return: true while some name is still being asked for. */
static bool check_extras(struct node_names *nn, const struct snapshot *s,
    struct hosts_extra *extras, size_t n_extras, nsec_t now)
{
    bool is_pending = false;
    struct err e = ERR_NULL;

    if (n_extras > 0 && !nn->check && name_check_new(&nn->check, nn->opt.lookup, &e) < 0)
        log_limited(
            &nn->limit, now, LOG_LEVEL_WARNING, "only qualified names are given: %s", err_text(&e));
    if (nn->check)
        want_extras(nn, s, extras, n_extras);
    for (size_t i = 0; i < n_extras; i++) {
        enum name_verdict verdict = NAME_VERDICT_PENDING;

        if (!is_checked(s, &extras[i]))
            continue;
        if (nn->check)
            verdict = name_check_ask(nn->check, extras[i].name, now, &extras[i].elsewhere);
        if (verdict == NAME_VERDICT_ELSEWHERE)
            extras[i].verdict = HOSTS_ELSEWHERE;
        if (verdict == NAME_VERDICT_PENDING)
            extras[i].verdict = HOSTS_PENDING;
        is_pending |= verdict == NAME_VERDICT_PENDING;
    }
    return is_pending;
}

/* An agent that gave up being root has a helper that writes the file. */
static int names_put(const struct node_names *nn, const char *owner, const char *block,
    bool *ret_changed, struct err *e)
{
    if (nn->opt.helper)
        return hosts_helper_put(nn->opt.helper, owner, block, ret_changed, e);
    return hosts_file_put(nn->opt.file, owner, block, ret_changed, e);
}

/* The resolver answers by the lines that the file has, or would have. */
static void set_resolver(
    struct node_names *nn, const struct snapshot *s, bool lacks_v6, const char *lines)
{
    const struct node *self = snapshot_self(s);
    struct resolver_place place = {.network = s->network.meta.name,
        .blocks = {s->network.cidr4, s->network.cidr6},
        .address4 = self->address4};

    if (!lacks_v6)
        place.address6 = self->address6;
    (void)resolver_set(nn->opt.resolver, &place, lines);
    /* Root's side believes only what the interface has, and that it listens says so. */
    if (nn->opt.link_file && resolver_is_listening(nn->opt.resolver))
        resolved_link_write(nn->opt.link_file, nn->opt.interface, &place, &nn->written);
}

void node_names_deinit(struct node_names *nn)
{
    json_decref(nn->left_out);
    nn->left_out = NULL;
    nn->check = name_check_free(nn->check);
}

void node_names_request(struct node_names *nn, nsec_t at)
{
    nn->due_at = nsec_min(nn->due_at, at);
}

void node_names_update(struct node_names *nn, const struct snapshot *s, bool lacks_v6, nsec_t now)
{
    _cleanup_(str_deinit) struct str block = STR_NULL;
    _cleanup_(freep) struct hosts_extra *extras = NULL;
    char owner[HOSTS_OWNER_MAX];
    struct err e = ERR_NULL;
    json_t *left_out;
    bool is_pending;
    bool changed = false;
    size_t n_extras = 0;
    int r;

    nn->due_at = NSEC_NEVER;
    if (!nn->opt.is_on && !nn->opt.resolver)
        return;
    extras = choose_extras(nn->opt.file, s, owner_of(nn, s, owner), &n_extras);
    is_pending = check_extras(nn, s, extras, n_extras, now);
    hosts_add_block(&block, s, extras, n_extras, !lacks_v6);
    r = block.failed ? err_set(&e, -ENOMEM, "no memory for %zu names", s->nodes.n) : 0;
    if (r == 0 && nn->opt.resolver)
        set_resolver(nn, s, lacks_v6, str_text(&block));
    if (r == 0 && nn->opt.is_on)
        r = names_put(nn, owner, str_text(&block), &changed, &e);
    if (r < 0)
        log_limited(&nn->limit, now, LOG_LEVEL_WARNING,
            "the nodes' names are not kept, trying again: %s", err_text(&e));
    else if (changed)
        log_info("%zu names are in " HOSTS_FILE_DEFAULT, s->nodes.n);
    if (r == 0) {
        left_out = encode_left_out(s, extras, n_extras);
        log_left_out(nn->left_out, left_out);
        json_decref(nn->left_out);
        nn->left_out = left_out;
    }
    nn->failure = r < 0 ? e : (struct err)ERR_NULL;
    nn->is_settled = r < 0 || !is_pending;
    nn->due_at = now + (is_pending ? PENDING_PERIOD : NAMES_PERIOD);
}

bool node_names_is_pending(const struct node_names *nn)
{
    return nn->opt.is_on && !nn->is_settled;
}

int node_names_remove(const struct node_names *nn, const struct snapshot *s, struct err *e)
{
    char owner[HOSTS_OWNER_MAX];
    bool changed;

    /* What systemd-resolved was told goes with the interface. */
    if (nn->opt.link_file)
        (void)unlink(nn->opt.link_file);
    if (!nn->opt.is_on)
        return 0;
    return names_put(nn, owner_of(nn, s, owner), NULL, &changed, e);
}
