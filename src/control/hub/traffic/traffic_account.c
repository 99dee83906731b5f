/* traffic_account.c - see traffic_account.h. */
#include "hub/traffic/traffic_account.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hub/traffic/traffic_edges.h"

/* What one end has said of a flow. The names are those of the account, so that they can be compared
 * as pointers. */
struct claim {
    const struct account_name *to;
    const struct account_name *job;
    uint64_t meter; /* of who says it */
    uint64_t bytes;
    enum path_kind path;
    bool is_senders;
};

/* A node or a job. */
struct account_name {
    struct htab_link link;    /* in the account's names */
    struct list of_senders;   /* in the account's senders, if there are claims about it */
    struct list of_unsettled; /* in the account's unsettled, if they have grown */
    struct claim *claims;     /* owns; about what it has sent, in the order of compare() */
    size_t n;
    size_t cap;
    struct price_sum *sums; /* owns; of each budget, as it was settled last; NULL: it was not */
    uint32_t has_sent;      /* bit k: for budget k */
    char text[];            /* of at most NAME_MAX_LEN bytes */
};

_Static_assert(BUDGETS_MAX <= 32, "each budget has its bit");

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
        free(name->sums);
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
    return order != 0 ? order : (int)a->is_senders - (int)b->is_senders;
}

/* Where it is, or belongs. */
static size_t place_of(const struct account_name *sender, const struct claim *c, bool *ret_found)
{
    size_t low = 0;
    size_t high = sender->n;

    *ret_found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(&sender->claims[middle], c);

        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool insert(
    struct traffic_account *a, struct account_name *sender, size_t i, const struct claim *c)
{
    if (a->n_claims >= TRAFFIC_ACCOUNT_CLAIMS_MAX)
        return false;
    if (sender->n == sender->cap) {
        size_t cap = sender->cap ? 2 * sender->cap : 4;
        struct claim *claims = realloc(sender->claims, cap * sizeof(*claims));

        if (!claims)
            return false;
        sender->claims = claims;
        sender->cap = cap;
    }
    memmove(&sender->claims[i + 1], &sender->claims[i], (sender->n - i) * sizeof(*c));
    sender->claims[i] = *c;
    sender->n++;
    a->n_claims++;
    if (list_is_empty(&sender->of_senders))
        list_add_tail(&a->senders, &sender->of_senders);
    return true;
}

static void take_claim(struct traffic_account *a, const struct traffic_claim *told, uint64_t meter)
{
    struct account_name *sender = name_of(a, told->row.from);
    struct claim c = {.to = name_of(a, told->row.to),
        .job = name_of(a, told->row.job),
        .meter = meter,
        .path = told->row.path,
        .is_senders = told->is_senders,
        .bytes = told->row.bytes};
    bool found;
    size_t i;

    if (!sender || !c.to || !c.job) {
        a->n_left_out++;
        return;
    }
    i = place_of(sender, &c, &found);
    if (found && sender->claims[i].bytes >= c.bytes)
        return;
    if (!found && !insert(a, sender, i, &c)) {
        a->n_left_out++;
        return;
    }
    sender->claims[i].bytes = c.bytes;
    if (list_is_empty(&sender->of_unsettled))
        list_add_tail(&a->unsettled, &sender->of_unsettled);
}

void traffic_account_take(struct traffic_account *a, const char *node, const struct traffic_flow *f)
{
    struct traffic_claim claims[2];
    size_t n = traffic_claims_of(node, f, claims);

    for (size_t i = 0; i < n; i++)
        take_claim(a, &claims[i], f->meter);
}

/* ---- prices --------------------------------------------------------------------------------- */

static void price_row(struct account_name *sender, const struct price_facts *facts,
    const struct budgets *budgets, const struct traffic_row *row)
{
    for (unsigned k = 0; k < budgets->n; k++) {
        const char *job = budgets->items[k].job;

        if (job[0] && strcmp(job, row->job) != 0)
            continue;
        price_add(&sender->sums[k], facts, row->from, row->to, row->path, row->bytes);
        sender->has_sent |= UINT32_C(1) << k;
    }
}

/* Settle the claims about one sender, and price what it has sent. 0 or -ENOMEM. */
static int settle(
    struct account_name *sender, const struct price_facts *facts, const struct budgets *budgets)
{
    struct traffic_claim *claims = calloc(sender->n, sizeof(*claims));
    struct traffic_row *rows = calloc(sender->n, sizeof(*rows));
    struct price_sum *sums = realloc(sender->sums, BUDGETS_MAX * sizeof(*sums));
    size_t n = 0;

    if (sums)
        sender->sums = sums;
    if (!claims || !rows || !sums) {
        free(claims);
        free(rows);
        return -ENOMEM;
    }
    for (size_t i = 0; i < sender->n; i++) {
        const struct claim *c = &sender->claims[i];

        claims[i] = (struct traffic_claim){.row = {.from = sender->text,
                                               .to = c->to->text,
                                               .job = c->job->text,
                                               .path = c->path,
                                               .bytes = c->bytes},
            .is_senders = c->is_senders,
            .is_only = c->to->text[0] == '\0'};
    }
    n = traffic_claims_settle(claims, sender->n, rows);
    memset(sums, 0, BUDGETS_MAX * sizeof(*sums));
    sender->has_sent = 0;
    for (size_t i = 0; i < n; i++)
        price_row(sender, facts, budgets, &rows[i]);
    free(claims);
    free(rows);
    return 0;
}

void traffic_account_forget_prices(struct traffic_account *a)
{
    struct account_name *sender;

    list_foreach(sender, &a->senders, of_senders) {
        if (list_is_empty(&sender->of_unsettled))
            list_add_tail(&a->unsettled, &sender->of_unsettled);
    }
}

int traffic_account_price(struct traffic_account *a, const struct price_facts *facts,
    const struct budgets *budgets, struct price_sum ret[static BUDGETS_MAX])
{
    struct account_name *sender;
    struct account_name *tmp;

    list_foreach_safe(sender, tmp, &a->unsettled, of_unsettled) {
        int r = settle(sender, facts, budgets);

        if (r != 0)
            return r;
        list_remove(&sender->of_unsettled);
    }
    memset(ret, 0, BUDGETS_MAX * sizeof(*ret));
    list_foreach(sender, &a->senders, of_senders) {
        for (unsigned k = 0; k < budgets->n; k++)
            price_sum_add(&ret[k], &sender->sums[k]);
    }
    return 0;
}

bool traffic_account_has_sent(const struct traffic_account *a, const char *node, unsigned k)
{
    const struct account_name *name = find(a, node, hash_bytes(a->names.seed, node, strlen(node)));

    return name && (name->has_sent >> k & 1) != 0;
}
