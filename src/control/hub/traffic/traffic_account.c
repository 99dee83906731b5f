/* traffic_account.c - see traffic_account.h. */
#include "hub/traffic/traffic_account.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "hub/traffic/traffic_edges.h"

/* What one end has said of a flow. The names are those of the account, so that they can be compared
 * as pointers. One with @to "" and the receiver's end is what the node itself has received from all
 * others, and no claim about what it has sent. */
struct claim {
    const struct account_name *to;
    const struct account_name *job;
    uint64_t meter; /* of who says it */
    uint64_t bytes;
    enum path_kind path;
    enum traffic_end end;
};

/* A node or a job. */
struct account_name {
    struct htab_link link;    /* in the account's names */
    struct list of_senders;   /* in the account's senders, if there are claims about it */
    struct list of_unsettled; /* in the account's unsettled, if they have grown */
    struct claim *claims;     /* owns; about what it has sent, in the order of compare() */
    size_t n;
    size_t cap;
    struct traffic_spent *spent; /* owns; of each budget, as settled last; NULL: it was not */
    enum traffic_voice voice;    /* of a node; by what is known, as it was settled last */
    bool has_told;               /* something of this day */
    bool is_news;                /* what it bears out is another than when it was settled last */
    char text[];                 /* of at most NAME_MAX_LEN bytes */
};

void traffic_account_init(struct traffic_account *a, int32_t day, uint64_t seed)
{
    *a = (struct traffic_account){.day = day};
    htab_init(&a->names, seed);
    list_init(&a->senders);
    list_init(&a->unsettled);
}

void traffic_account_deinit(struct traffic_account *a)
{
    size_t cursor = 0;
    struct htab_link *l = htab_each(&a->names, &cursor, NULL);

    while (l) {
        struct account_name *name = container_of(l, struct account_name, link);

        l = htab_each(&a->names, &cursor, l);
        free(name->claims);
        free(name->spent);
        free(name);
    }
    htab_deinit(&a->names);
    traffic_account_init(a, 0, 0);
}

/* ---- names ---------------------------------------------------------------------------------- */

static struct account_name *find(const struct traffic_account *a, const char *text, uint64_t hash)
{
    for (struct htab_link *l = htab_first(&a->names, hash); l; l = htab_next(l, hash)) {
        struct account_name *name = container_of(l, struct account_name, link);

        if (strcmp(name->text, text) == 0)
            return name;
    }
    return NULL;
}

static const struct account_name *find_node(const struct traffic_account *a, const char *node)
{
    return find(a, node, hash_bytes(a->names.seed, node, strlen(node)));
}

/* It is made if it is not there. NULL: no memory. */
static struct account_name *name_of(struct traffic_account *a, const char *text)
{
    size_t len = strlen(text);
    uint64_t hash = hash_bytes(a->names.seed, text, len);
    struct account_name *name = find(a, text, hash);

    if (name)
        return name;
    name = calloc(1, sizeof(*name) + len + 1);
    if (!name || htab_add(&a->names, &name->link, hash) != 0) {
        free(name);
        return NULL;
    }
    memcpy(name->text, text, len);
    list_init(&name->of_senders);
    list_init(&name->of_unsettled);
    return name;
}

/* ---- claims --------------------------------------------------------------------------------- */

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare(const struct claim *a, const struct claim *b)
{
    int order = compare_u64((uintptr_t)a->to, (uintptr_t)b->to);

    if (order == 0)
        order = compare_u64((uintptr_t)a->job, (uintptr_t)b->job);
    if (order == 0)
        order = compare_u64(a->meter, b->meter);
    if (order == 0)
        order = (int)a->path - (int)b->path;
    return order != 0 ? order : (int)a->end - (int)b->end;
}

static int compare_items(const void *item, const void *wanted)
{
    return compare(item, wanted);
}

static bool insert(
    struct traffic_account *a, struct account_name *sender, size_t i, const struct claim *c)
{
    struct claim *claims;

    if (a->n_claims >= TRAFFIC_ACCOUNT_CLAIMS_MAX)
        return false;
    claims = sorted_open(sender->claims, sender->n, sizeof(*claims), i, &sender->cap);
    if (!claims)
        return false;
    sender->claims = claims;
    sender->claims[i] = *c;
    sender->n++;
    a->n_claims++;
    if (list_is_empty(&sender->of_senders))
        list_add_tail(&a->senders, &sender->of_senders);
    return true;
}

/* @f is what is claimed; its sums of all others are kept by job, too, since they are added.
 * Return: it was not known, or is greater than before. */
static bool take_claim(
    struct traffic_account *a, const struct traffic_claim *told, const struct traffic_flow *f)
{
    struct account_name *sender = name_of(a, told->from);
    struct claim c = {.to = name_of(a, told->to),
        .job = name_of(a, f->job),
        .meter = f->meter,
        .path = told->path,
        .end = told->end,
        .bytes = told->bytes};
    bool found = false;
    size_t i;

    if (!sender || !c.to || !c.job) {
        a->n_left_out++;
        return false;
    }
    i = sorted_place(sender->claims, sender->n, sizeof(c), compare_items, &c, &found);
    if (found && sender->claims[i].bytes >= c.bytes)
        return false;
    if (!found && !insert(a, sender, i, &c)) {
        a->n_left_out++;
        return false;
    }
    sender->claims[i].bytes = c.bytes;
    if (list_is_empty(&sender->of_unsettled))
        list_add_tail(&a->unsettled, &sender->of_unsettled);
    return true;
}

void traffic_account_take(struct traffic_account *a, const char *node, const struct traffic_flow *f)
{
    struct traffic_claim claims[2];
    size_t n = traffic_claims_of(node, f, claims);
    struct traffic_claim others = {.from = node,
        .to = "",
        .job = "",
        .path = f->path,
        .end = TRAFFIC_END_RECEIVER,
        .bytes = f->received};
    struct account_name *name = name_of(a, node);
    bool is_news = name && !name->has_told;

    for (size_t i = 0; i < n; i++)
        (void)take_claim(a, &claims[i], f);
    if (f->peer[0] == '\0' && f->received > 0 && take_claim(a, &others, f))
        is_news = true;
    if (!name || !is_news)
        return;
    name->has_told = true;
    name->is_news = true;
}

/* ---- who bears out what --------------------------------------------------------------------- */

static void unsettle(struct traffic_account *a, struct account_name *sender)
{
    if (list_is_empty(&sender->of_unsettled))
        list_add_tail(&a->unsettled, &sender->of_unsettled);
}

/* What nodes that have told nothing might tell may be another thing than before. */
static bool hear(struct traffic_account *a, const struct traffic_facts *facts)
{
    bool has_news = false;
    size_t cursor = 0;
    struct htab_link *l = NULL;

    while ((l = htab_each(&a->names, &cursor, l))) {
        struct account_name *name = container_of(l, struct account_name, link);
        uint64_t others[TRAFFIC_END_N] = {0, 0};
        enum traffic_voice voice = TRAFFIC_VOICE_TOLD;

        if (!name->has_told && name->text[0])
            voice = facts->voice(facts->ctx, name->text, others);
        if (voice != name->voice)
            name->is_news = true;
        name->voice = voice;
        has_news |= name->is_news;
    }
    return has_news;
}

/* Whoever has claims about one of whom there is news is settled anew. */
static void spread_news(struct traffic_account *a)
{
    struct account_name *sender;
    struct htab_link *l = NULL;
    size_t cursor = 0;

    list_foreach(sender, &a->senders, of_senders) {
        bool is_concerned = sender->is_news;

        for (size_t i = 0; i < sender->n && !is_concerned; i++)
            is_concerned = sender->claims[i].to->is_news;
        if (is_concerned)
            unsettle(a, sender);
    }
    while ((l = htab_each(&a->names, &cursor, l)))
        container_of(l, struct account_name, link)->is_news = false;
}

/* A struct traffic_facts of the account's. */
static enum traffic_voice voice_of(
    const void *ctx, const char *node, uint64_t others[static TRAFFIC_END_N])
{
    const struct traffic_account *a = ctx;
    const struct account_name *name = find_node(a, node);
    const struct claim first = {.to = find_node(a, "")};
    bool found;
    size_t i;

    if (!name)
        return TRAFFIC_VOICE_GONE;
    /* Those about all others are in a row. It is asked for each direction of a sender, which may
     * have thousands, so that its other claims cannot be walked each time. */
    i = sorted_place(name->claims, name->n, sizeof(first), compare_items, &first, &found);
    for (; i < name->n && name->claims[i].to == first.to; i++) {
        const struct claim *c = &name->claims[i];

        others[c->end] = traffic_total(others[c->end], c->bytes);
    }
    return name->voice;
}

/* ---- prices --------------------------------------------------------------------------------- */

static void price_row(struct account_name *sender, const struct price_facts *facts,
    const struct budgets *budgets, const struct traffic_row *row)
{
    bool is_own = row->teller && strcmp(row->teller, sender->text) == 0;

    for (unsigned k = 0; k < budgets->n; k++) {
        const char *job = budgets->items[k].job;
        struct price_sum sum = {.alone = row->word == TRAFFIC_WORD_BOTH ? 0 : row->bytes};

        if (row->word == TRAFFIC_WORD_WAITING || (job[0] && strcmp(job, row->job) != 0))
            continue;
        price_add(&sum, facts, row->from, row->to, row->path, row->bytes);
        price_sum_add(&sender->spent[k].all, &sum);
        if (row->word == TRAFFIC_WORD_BOTH)
            price_sum_add(&sender->spent[k].agreed, &sum);
        else if (is_own)
            price_sum_add(&sender->spent[k].own, &sum);
    }
}

/* Settle the claims about one sender. 0 or -ENOMEM. */
static int settle(
    struct traffic_account *a, const struct account_name *sender, struct traffic_edges *ret)
{
    struct traffic_facts facts = {.voice = voice_of, .ctx = a};
    struct traffic_claim *claims = calloc(sender->n, sizeof(*claims));
    size_t n = 0;
    int r;

    if (!claims)
        return -ENOMEM;
    for (size_t i = 0; i < sender->n; i++) {
        const struct claim *c = &sender->claims[i];

        if (c->to->text[0] == '\0' && c->end == TRAFFIC_END_RECEIVER)
            continue;
        claims[n++] = (struct traffic_claim){.from = sender->text,
            .to = c->to->text,
            .job = c->to->text[0] ? c->job->text : "",
            .path = c->path,
            .end = c->end,
            .bytes = c->bytes};
    }
    ret->n = 0;
    ret->n_disputes = 0;
    r = traffic_claims_settle(claims, n, &facts, ret);
    free(claims);
    return r;
}

/* Settle a sender, and price what it has sent. 0 or -ENOMEM. */
static int settle_and_price(struct traffic_account *a, struct account_name *sender,
    const struct traffic_prices *by, struct traffic_edges *edges)
{
    size_t size = (by->budgets->n + 1) * sizeof(struct traffic_spent);
    struct traffic_spent *spent = realloc(sender->spent, size);
    int r;

    if (!spent)
        return -ENOMEM;
    sender->spent = spent;
    memset(spent, 0, size);
    r = settle(a, sender, edges);
    for (size_t i = 0; r == 0 && i < edges->n; i++)
        price_row(sender, by->facts, by->budgets, &edges->rows[i]);
    if (r == 0)
        traffic_disputes_set(
            &a->disputes, sender->text, edges->disputes, edges->n_disputes, by->now);
    return r;
}

void traffic_account_forget_prices(struct traffic_account *a)
{
    struct account_name *sender;

    list_foreach(sender, &a->senders, of_senders)
        unsettle(a, sender);
}

int traffic_account_price(struct traffic_account *a, const struct traffic_prices *by,
    struct traffic_spent ret[static BUDGETS_MAX])
{
    struct traffic_edges *edges = calloc(1, sizeof(*edges));
    struct account_name *sender;
    struct account_name *tmp;
    int r = edges ? 0 : -ENOMEM;

    if (hear(a, by->ends))
        spread_news(a);
    list_foreach_safe(sender, tmp, &a->unsettled, of_unsettled) {
        if (r == 0)
            r = settle_and_price(a, sender, by, edges);
        if (r == 0)
            list_remove(&sender->of_unsettled);
    }
    traffic_edges_free(edges);
    memset(ret, 0, BUDGETS_MAX * sizeof(*ret));
    list_foreach(sender, &a->senders, of_senders) {
        for (unsigned k = 0; r == 0 && k < by->budgets->n; k++) {
            price_sum_add(&ret[k].all, &sender->spent[k].all);
            price_sum_add(&ret[k].agreed, &sender->spent[k].agreed);
        }
    }
    return r;
}

struct price_sum traffic_account_own(const struct traffic_account *a, const char *node, unsigned k)
{
    const struct account_name *name = find_node(a, node);

    return name && name->spent ? name->spent[k].own : (struct price_sum){.bytes = 0};
}
