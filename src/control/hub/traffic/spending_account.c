/* spending_account.c - see spending_account.h. */
#include "hub/traffic/spending_account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/model/model.h"
#include "hub/traffic/traffic_account.h"
#include "hub/traffic/traffic_book.h"
#include "hub/traffic/traffic_key.h"
#include "hub/traffic/traffic_read.h"
#include "mesh/object/traffic.h"
#include "os/log.h"
#include "store/keys.h"
#include "store/store.h"

/* What a network with budgets has moved today. */
struct spending_account {
    struct list link;
    struct spending_accounts *s; /* pins */
    uint64_t number;             /* of all that there were: whoever reads for it finds it by this */
    char network[NAME_MAX_LEN + 1];
    struct x25519_public key; /* of this hub there: a network of the same name has another one */
    struct traffic_account sums;
    struct keys records; /* of struct seen_record: other hubs', as they were read */
    bool is_known;       /* all records of the day were read once */
    bool is_reading;
    bool was_read;          /* a read has ended, and spending_account_take_read() has not said so */
    nsec_t read_at;         /* when the last read was begun */
    struct budgets budgets; /* as they were priced last, like what follows */
    uint64_t islands_hash;
    uint64_t network_version; /* of the Network's object, whose prices they were */
    json_t *islands;          /* owns; {NODE: ISLAND} */
    json_t *hubs;             /* owns; the names of those of the network */
};

/* A record of another hub. */
struct seen_record {
    struct keyed keyed; /* "NODE/HUB" */
    uint64_t revision;
};

/* ---- accounts ------------------------------------------------------------------------------- */

static void forget_records(struct spending_account *a)
{
    for (size_t i = 0; i < a->records.n; i++) {
        struct seen_record *seen = container_of(a->records.items[i], struct seen_record, keyed);

        free(seen->keyed.key);
        free(seen);
    }
    keys_deinit(&a->records);
}

static void free_account(struct spending_account *a)
{
    list_remove(&a->link);
    traffic_account_deinit(&a->sums);
    forget_records(a);
    json_decref(a->islands);
    json_decref(a->hubs);
    free(a);
}

void spending_accounts_init(struct spending_accounts *s, struct model *model,
    struct traffic_book *book, const struct prices *prices, uint64_t seed)
{
    *s = (struct spending_accounts){.model = model, .book = book, .prices = prices, .seed = seed};
    list_init(&s->all);
}

void spending_accounts_deinit(struct spending_accounts *s)
{
    struct spending_account *a;
    struct spending_account *tmp;

    list_foreach_safe(a, tmp, &s->all, link)
        free_account(a);
}

static struct spending_account *find_account(const struct spending_accounts *s, const char *network)
{
    struct spending_account *a;

    list_foreach(a, &s->all, link) {
        if (strcmp(a->network, network) == 0)
            return a;
    }
    return NULL;
}

struct spending_account *spending_account_of(
    struct spending_accounts *s, const struct model_network *net, int32_t today)
{
    const char *name = net->pub.spec.meta.name;
    struct spending_account *a = find_account(s, name);

    if (a && a->sums.day == today)
        return a;
    if (a)
        free_account(a);
    a = calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    *a = (struct spending_account){.s = s, .number = ++s->n_made, .key = net->pub.public};
    (void)snprintf(a->network, sizeof(a->network), "%.63s", name);
    traffic_account_init(&a->sums, today, s->seed);
    list_add_tail(&s->all, &a->link);
    return a;
}

/* Let go of those of networks that are gone, or have no budget any more. */
static void drop(struct spending_accounts *s)
{
    struct spending_account *a;
    struct spending_account *tmp;

    list_foreach_safe(a, tmp, &s->all, link) {
        const struct model_network *net = model_find_network(s->model, a->network);

        if (!net || net->pub.spec.budgets.n == 0 || !x25519_public_equal(&net->pub.public, &a->key))
            free_account(a);
    }
}

static void on_news(void *ctx, const struct traffic_key *key, const struct traffic_flow *f)
{
    struct spending_account *a = find_account(ctx, key->network);

    if (a && a->sums.day == key->day)
        traffic_account_take(&a->sums, key->node, f);
}

void spending_accounts_follow(struct spending_accounts *s)
{
    traffic_book_news(s->book, on_news, s);
    drop(s);
}

/* ---- what prices depend on ------------------------------------------------------------------ */

static uint64_t hash_text(uint64_t seed, const char *text)
{
    return hash_bytes(seed, text, strlen(text) + 1);
}

/* Changes with the islands that nodes have, and with which nodes are hubs. */
static uint64_t hash_islands(const struct spending_accounts *s, const struct model_network *net)
{
    uint64_t hash = s->seed;

    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct node *node = &model_node_at(net, i)->pub.spec;

        if (node->island[0] || node->hub)
            hash = hash_u64(
                hash_text(hash_text(hash, node->meta.name), node->island), node->hub ? 1 : 0);
    }
    return hash;
}

static void read_islands(struct spending_account *a, const struct model_network *net)
{
    json_decref(a->islands);
    json_decref(a->hubs);
    a->islands = json_object();
    a->hubs = json_array();
    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct node *node = &model_node_at(net, i)->pub.spec;

        if (node->island[0])
            (void)json_object_set_new(a->islands, node->meta.name, json_string(node->island));
        if (node->hub)
            (void)json_array_append_new(a->hubs, json_string(node->meta.name));
    }
}

static bool is_same_budgets(const struct budgets *a, const struct budgets *b)
{
    for (unsigned k = 0; k < a->n && a->n == b->n; k++)
        if (strcmp(a->items[k].job, b->items[k].job) != 0)
            return false;
    return a->n == b->n;
}

static void learn_prices(struct spending_account *a, const struct model_network *net)
{
    const struct budgets *budgets = &net->pub.spec.budgets;
    uint64_t hash = hash_islands(a->s, net);

    if (!a->islands || hash != a->islands_hash) {
        read_islands(a, net);
        traffic_account_forget_prices(&a->sums);
    }
    /* Its table may be another one. */
    if (!is_same_budgets(&a->budgets, budgets) ||
        a->network_version != net->pub.spec.meta.resource_version)
        traffic_account_forget_prices(&a->sums);
    a->network_version = net->pub.spec.meta.resource_version;
    a->islands_hash = hash;
    a->budgets = *budgets;
}

static enum traffic_voice voice_of(
    const void *ctx, const char *node, uint64_t others[static TRAFFIC_END_N])
{
    return traffic_read_voice(ctx, node);
}

int spending_account_price(struct spending_account *a, const struct model_network *net, nsec_t now,
    struct traffic_spent ret[static BUDGETS_MAX])
{
    const struct prices *own = net->pub.spec.prices;
    struct price_facts facts = {.prices = own ? own : a->s->prices};
    struct traffic_facts ends = {.voice = voice_of, .ctx = net};
    struct traffic_prices by = {.facts = &facts, .budgets = &a->budgets, .ends = &ends, .now = now};

    learn_prices(a, net);
    facts.islands = a->islands;
    facts.hub = json_string_value(json_array_get(a->hubs, 0));
    facts.hubs = a->hubs;
    return traffic_account_price(&a->sums, &by, ret);
}

struct price_sum spending_account_own(
    const struct spending_account *a, const char *node, unsigned k)
{
    return traffic_account_own(&a->sums, node, k);
}

const struct traffic_dispute *spending_account_dispute(struct spending_account *a, nsec_t now)
{
    return traffic_disputes_due(&a->sums.disputes, now);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* An account whose records are being read. */
struct reading {
    struct spending_accounts *s; /* pins */
    uint64_t number;             /* the account's, which may be gone when it is answered */
};

static struct spending_account *account_read(const struct reading *rd)
{
    struct spending_account *a;

    list_foreach(a, &rd->s->all, link) {
        if (a->number == rd->number)
            return a;
    }
    return NULL;
}

/* What this hub has been told since its account is whole has come as news. */
static bool is_own_news(const struct spending_account *a, const struct traffic_key *key)
{
    const char *self = a->s->model->self;

    return a->is_known && strcmp(key->hub, self[0] ? self : HUB_NAME_DEFAULT) == 0;
}

static bool wants(void *ctx, const struct traffic_key *key, uint64_t revision)
{
    struct spending_account *a = account_read(ctx);
    char name[2 * (NAME_MAX_LEN + 1)];
    struct seen_record *seen;
    struct keyed *found;
    bool is_new;

    if (!a || is_own_news(a, key))
        return false;
    if (!store_is_shared(a->s->model->store))
        return true;
    (void)snprintf(name, sizeof(name), "%s/%s", key->node, key->hub);
    found = keys_find(&a->records, name);
    if (found) {
        seen = container_of(found, struct seen_record, keyed);
        is_new = seen->revision != revision;
        seen->revision = revision;
        return is_new;
    }
    /* Without memory for it, it is read again the next time. */
    seen = calloc(1, sizeof(*seen));
    if (!seen)
        return true;
    *seen = (struct seen_record){.keyed.key = strdup(name), .revision = revision};
    if (!seen->keyed.key || keys_add(&a->records, &seen->keyed) != 0) {
        free(seen->keyed.key);
        free(seen);
    }
    return true;
}

static void on_record(void *ctx, const struct traffic_key *key, const struct traffic *t)
{
    struct spending_account *a = account_read(ctx);

    for (size_t i = 0; a && i < t->n; i++)
        traffic_account_take(&a->sums, key->node, &t->flows[i]);
}

static void on_end(void *ctx, int r, const struct err *e)
{
    struct reading *rd = ctx;
    struct spending_account *a = account_read(rd);

    free(rd);
    if (!a)
        return;
    a->is_reading = false;
    if (r != 0) {
        log_warning("the budgets of network %s are not looked at: %s", a->network, err_text(e));
        return;
    }
    a->is_known = true;
    a->was_read = true;
}

void spending_account_read(struct spending_account *a, nsec_t now)
{
    bool has_others = store_is_shared(a->s->model->store);
    bool is_due = !a->is_known || (has_others && now - a->read_at >= SPENDING_OTHERS_EACH);
    struct reading *rd = is_due && !a->is_reading ? calloc(1, sizeof(*rd)) : NULL;
    struct traffic_reader reader = {
        .wants = wants, .on_record = on_record, .on_end = on_end, .ctx = rd};
    struct traffic_query query = {.since = a->sums.day, .until = a->sums.day};
    struct err e = ERR_NULL;

    if (!rd)
        return;
    *rd = (struct reading){.s = a->s, .number = a->number};
    memcpy(query.network, a->network, sizeof(query.network));
    a->is_reading = true;
    a->read_at = now;
    if (traffic_read(a->s->book, &query, &reader, now, &e) != 0)
        on_end(rd, -1, &e);
}

bool spending_account_is_whole(const struct spending_account *a)
{
    return a->is_known && !a->is_reading;
}

bool spending_account_take_read(struct spending_account *a)
{
    bool was_read = a->was_read;

    a->was_read = false;
    return was_read;
}
