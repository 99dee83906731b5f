/* traffic_book.c - see traffic_book.h. */
#include "hub/traffic/traffic_book.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "hub/model/model.h"
#include "store/store.h"

/* ---- keys of the records --------------------------------------------------------------------- */

const char *traffic_key_format(char buf[static RECORD_KEY_MAX], const char *network, int32_t day,
    const char *node, const char *hub)
{
    char text[TRAFFIC_DAY_TEXT_MAX] = "";

    if (day >= 0)
        (void)traffic_day_format(day, text);
    (void)snprintf(buf, RECORD_KEY_MAX, TRAFFIC_KEY_PREFIX "%.63s/%s%s%.63s%s%.63s", network, text,
        node[0] ? "/" : "", node, hub[0] ? "/" : "", hub);
    return buf;
}

bool traffic_key_parse(struct traffic_key *ret, const char *text)
{
    struct traffic_key key;
    char other[NAME_MAX_LEN + 1]; /* the network, and then the hub */
    char day[TRAFFIC_DAY_TEXT_MAX];
    size_t n = strlen(TRAFFIC_KEY_PREFIX);

    if (strncmp(text, TRAFFIC_KEY_PREFIX, n) != 0)
        return false;
    text = text_part(text + n, '/', other, sizeof(other));
    text = text_part(text, '/', day, sizeof(day));
    text = text_part(text, '/', key.node, sizeof(key.node));
    text = text_part(text, '/', other, sizeof(other));
    if (!text || text[0] || traffic_day_parse(&key.day, day, NULL) != 0)
        return false;
    *ret = key;
    return true;
}

bool traffic_record_decode(struct traffic *ret, const struct store_item *item)
{
    json_auto_t *json = seal_check(item->key, item->value, NULL) == 0
                            ? json_loads(item->value, JSON_REJECT_DUPLICATES, NULL)
                            : NULL;

    return json && traffic_decode(ret, json, "record", NULL) == 0;
}

/* ---- what is in memory ----------------------------------------------------------------------- */

/* Records in one commit. */
#define WRITE_AT_ONCE 256

/* A record of which nothing was heard for so long is let go of. */
#define IDLE (600 * NSEC_PER_SEC)

/* How often records that are too old are looked for, in each network. */
#define TRIM_EACH (600 * NSEC_PER_SEC)
#define TRIM_MAX  256

/* Longest flow of a record, with its comma; and what the record has besides, with its sum:
 *
 *     {"meter":...,"peer":"...","job":"...","path":"direct","sent":...,"received":...},
 *     {"day":"2026-11-23","flows":[],"sum":"0f1e2d3c4b5a6978"} */
#define FLOW_TEXT_MAX   (66 + 19 + 2 * NAME_MAX_LEN + 2 * 16)
#define RECORD_TEXT_MAX (64 + TRAFFIC_BOOK_FLOWS_MAX * FLOW_TEXT_MAX)

/* The store refuses the whole commit that has a longer one, and so the records of other nodes. */
_Static_assert(RECORD_TEXT_MAX <= STORE_VALUE_MAX, "a record fits a value");

/* What a network has in memory. */
struct traffic_share {
    struct keyed keyed; /* its name */
    size_t n_entries;
    size_t n_flows;
};

struct traffic_entry {
    struct keyed keyed;          /* the record's key */
    struct traffic_book *book;   /* pins */
    struct traffic_share *share; /* pins: its network's; the book owns it */
    struct traffic traffic;
    unsigned n_on_way; /* requests to the store that pin it */
    bool is_known;     /* what the store has is among @traffic */
    bool is_unsaved;
    uint64_t counted[PATH_KIND_N]; /* bytes sent that are in the network's counters */
    nsec_t used_at;
};

static struct traffic_entry *entry_at(const struct traffic_book *b, size_t i)
{
    return container_of(b->entries.items[i], struct traffic_entry, keyed);
}

static void free_entry(struct traffic_book *b, struct traffic_entry *entry)
{
    struct traffic_share *share = entry->share;

    if (share) {
        share->n_flows -= entry->traffic.n;
        if (--share->n_entries == 0)
            keys_free(&b->shares, &share->keyed);
    }
    traffic_deinit(&entry->traffic);
    keys_free(&b->entries, &entry->keyed);
}

void traffic_book_deinit(struct traffic_book *b)
{
    while (b->entries.n > 0)
        free_entry(b, entry_at(b, b->entries.n - 1));
    keys_deinit(&b->entries);
    keys_deinit(&b->shares);
}

/* Lends the entry of what @node tells of that day, made if it is not there; NULL: no memory. */
static struct traffic_entry *open_entry(
    struct traffic_book *b, const struct model_node *node, int32_t day)
{
    const char *network = node->net->spec.meta.name;
    char key[RECORD_KEY_MAX];
    struct traffic_entry *entry = keys_open(&b->entries,
        traffic_key_format(key, network, day, node->spec.meta.name, b->model->self),
        sizeof(*entry));

    if (!entry || entry->share)
        return entry;
    entry->share = keys_open(&b->shares, network, sizeof(*entry->share));
    if (!entry->share) {
        free_entry(b, entry);
        return NULL;
    }
    entry->share->n_entries++;
    entry->book = b;
    entry->traffic.day = day;
    return entry;
}

/* ---- counters ------------------------------------------------------------------------------- */

static void sum_paths(const struct traffic *t, uint64_t ret[static PATH_KIND_N])
{
    memset(ret, 0, PATH_KIND_N * sizeof(*ret));
    for (size_t i = 0; i < t->n; i++)
        ret[t->flows[i].path] += t->flows[i].sent;
}

/* Add what the entry has grown by to the network's counters. */
static void count(const struct model_network *net, struct traffic_entry *entry)
{
    uint64_t sums[PATH_KIND_N];

    sum_paths(&entry->traffic, sums);
    for (unsigned i = 0; net && i < PATH_KIND_N; i++)
        net->sent_bytes[i] += sums[i] - entry->counted[i];
    memcpy(entry->counted, sums, sizeof(sums));
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The record is there. One that cannot be understood is as none: it is written anew. */
static void merge_read(struct traffic_entry *entry, const struct store_item *item)
{
    struct traffic read;

    if (!traffic_record_decode(&read, item))
        return;
    sum_paths(&read, entry->counted);
    /* What was told meanwhile comes second, so that nothing that is written has no room. */
    if (traffic_merge(&read, &entry->traffic, TRAFFIC_BOOK_FLOWS_MAX) < 0) {
        traffic_deinit(&read);
        return;
    }
    entry->share->n_flows += read.n - entry->traffic.n;
    traffic_deinit(&entry->traffic);
    entry->traffic = read;
}

static void on_read(void *ctx, const struct store_answer *a)
{
    struct traffic_entry *entry = ctx;

    entry->n_on_way--;
    entry->book->n_on_way--;
    entry->is_known = a->r == 0 || a->r == STORE_E_ABSENT;
    if (a->r == 0)
        merge_read(entry, &a->items[0]);
    if (entry->is_known)
        count(model_find_network(entry->book->model, entry->share->keyed.key), entry);
    else
        entry->book->failure = *a->e;
}

/* Unless that is known, or on its way. */
static void read_entry(struct traffic_entry *entry)
{
    if (entry->is_known || entry->n_on_way > 0 ||
        store_get(entry->book->model->store, entry->keyed.key, on_read, entry, NULL) != 0)
        return;
    entry->n_on_way++;
    entry->book->n_on_way++;
}

/* ---- what nodes tell ------------------------------------------------------------------------ */

/* A node can tell of members, and of those that were. */
static bool is_admitted(
    const struct traffic_entry *entry, const struct model_node *node, const char *peer)
{
    if (peer[0] == '\0' || model_find_node(node->net, peer))
        return true;
    for (size_t i = 0; i < entry->traffic.n; i++)
        if (strcmp(entry->traffic.flows[i].peer, peer) == 0)
            return true;
    return false;
}

/* Counts flows that have no room, or may not be taken. */
static void take(
    struct traffic_entry *entry, const struct model_node *node, const struct traffic *t)
{
    struct traffic_book *b = entry->book;
    size_t used = entry->share->n_flows;
    size_t before = entry->traffic.n;
    size_t n_nodes = 0;
    size_t share; /* flows that a network may have in memory */
    size_t max;

    for (size_t i = 0; i < b->model->networks.n; i++)
        n_nodes += model_network_at(b->model, i)->nodes.n;
    share = n_nodes > 0 ? b->max_flows * node->net->nodes.n / n_nodes : 0;
    max = before + (share > used ? share - used : 0);
    if (max > TRAFFIC_BOOK_FLOWS_MAX)
        max = TRAFFIC_BOOK_FLOWS_MAX;
    for (size_t i = 0; i < t->n; i++)
        if (!is_admitted(entry, node, t->flows[i].peer) ||
            traffic_merge_flow(&entry->traffic, &t->flows[i], max) != 0)
            b->n_left_out++;
    entry->share->n_flows += entry->traffic.n - before;
}

void traffic_book_take(struct traffic_book *b, const struct model_node *node,
    const struct traffic *t, nsec_t now, int64_t wall_s)
{
    int32_t today = traffic_day(wall_s);
    bool is_taken =
        t->day <= today + 1 && t->day >= today - TRAFFIC_DAYS_KEPT && t->day > today - b->n_days;
    struct traffic_entry *entry = is_taken ? open_entry(b, node, t->day) : NULL;

    if (!entry) {
        b->n_left_out += t->n;
        return;
    }
    take(entry, node, t);
    entry->is_unsaved = true;
    entry->used_at = now;
    if (entry->is_known)
        count(node->net, entry);
    else
        read_entry(entry);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* A commit of records that is not answered yet. */
struct writing {
    struct traffic_book *book; /* pins, and so the entries */
    size_t n;
    struct traffic_entry *entries[WRITE_AT_ONCE];
};

static void on_written(void *ctx, const struct store_answer *a)
{
    struct writing *w = ctx;

    w->book->n_on_way--;
    for (size_t i = 0; i < w->n; i++) {
        w->entries[i]->n_on_way--;
        w->entries[i]->is_unsaved |= a->r != 0;
    }
    if (a->r != 0)
        w->book->failure = *a->e;
    free(w);
}

/* Write some, from the entry @at on, which then is the next one. */
static int write_some(
    struct traffic_book *b, const char *network, size_t *at, nsec_t now, struct err *e)
{
    struct writing *w = calloc(1, sizeof(*w));
    struct store_op ops[WRITE_AT_ONCE];
    char *values[WRITE_AT_ONCE];
    int r = w ? 0 : -ENOMEM;

    for (; r == 0 && w->n < WRITE_AT_ONCE && *at < b->entries.n; ++*at) {
        struct traffic_entry *entry = entry_at(b, *at);
        const char *of = entry->share->keyed.key;
        const struct model_network *net = model_find_network(b->model, of);
        json_auto_t *json = NULL;

        /* A network that is being removed gets no record: it would be left in the store. */
        if (!entry->is_unsaved || !entry->is_known || !net || net->leaving ||
            (network && strcmp(network, of) != 0))
            continue;
        json = traffic_encode(&entry->traffic);
        values[w->n] = json ? json_dumps(json, JSON_COMPACT) : NULL;
        if (!values[w->n]) {
            r = -ENOMEM;
            break;
        }
        ops[w->n] = (struct store_op){.kind = STORE_OP_PUT,
            .key = entry->keyed.key,
            .value = values[w->n],
            .expect = STORE_EXPECT_ANY,
            .is_unwatched = true};
        w->entries[w->n++] = entry;
    }
    if (r != 0)
        (void)err_set(e, r, "no memory for what nodes have moved");
    else if (w->n > 0)
        r = model_store(b->model, ops, w->n, now, on_written, w, e);
    for (size_t i = 0; w && i < w->n; i++)
        free(values[i]);
    if (r != 0 || w->n == 0) {
        free(w);
        return r;
    }
    w->book = b;
    b->n_on_way++;
    for (size_t i = 0; i < w->n; i++) {
        w->entries[i]->n_on_way++;
        w->entries[i]->is_unsaved = false;
    }
    return 0;
}

int traffic_book_write(struct traffic_book *b, const char *network, nsec_t now, struct err *e)
{
    int r = 0;

    for (size_t at = 0; r == 0 && at < b->entries.n;)
        r = write_some(b, network, &at, now, e);
    return r;
}

/* Let go of what is written and was not used for long, and of what is of no network any more. */
static void let_go(struct traffic_book *b, nsec_t now)
{
    for (size_t i = b->entries.n; i-- > 0;) {
        struct traffic_entry *entry = entry_at(b, i);
        bool is_gone = !model_find_network(b->model, entry->share->keyed.key);

        if (!is_gone)
            read_entry(entry);
        if (entry->n_on_way == 0 &&
            (is_gone || (!entry->is_unsaved && now - entry->used_at >= IDLE)))
            free_entry(b, entry);
    }
}

/* ---- what is too old ------------------------------------------------------------------------ */

static void on_trimmed(void *ctx, const struct store_answer *a)
{
    struct traffic_book *b = ctx;

    b->n_on_way--;
    if (a->r != 0)
        b->failure = *a->e;
    else
        b->trimmed_at = 0; /* There may be more. */
}

static void on_oldest(void *ctx, const struct store_answer *a)
{
    struct traffic_book *b = ctx;
    struct store_op ops[TRIM_MAX];
    struct traffic_key key;
    size_t n = 0;

    b->n_on_way--;
    for (size_t i = 0; a->r == 0 && i < a->n_items; i++)
        if (!traffic_key_parse(&key, a->items[i].key) || key.day < b->oldest)
            ops[n++] = (struct store_op){
                .kind = STORE_OP_DELETE, .key = a->items[i].key, .expect = STORE_EXPECT_ANY};
    if (a->r != 0)
        b->failure = *a->e;
    else if (n > 0 &&
             store_commit(b->model->store, ops, n, b->ticked_at, on_trimmed, b, &b->failure) == 0)
        b->n_on_way++;
}

int traffic_book_tick(struct traffic_book *b, nsec_t now, int64_t wall_s, struct err *e)
{
    int r = 0;

    b->ticked_at = now;
    b->oldest = traffic_day(wall_s) - b->n_days + 1;
    if (b->failure.code != 0) {
        r = err_set(e, -EIO, "%s", err_text(&b->failure));
        b->failure = (struct err)ERR_NULL;
        return r;
    }
    if (b->n_on_way > 0)
        return 0;
    /* A network that was removed may be made anew, and has moved nothing then. */
    if (now - b->flushed_at >= TRAFFIC_BOOK_FLUSH || b->n_networks != b->model->networks.n) {
        b->flushed_at = now;
        b->n_networks = b->model->networks.n;
        let_go(b, now);
        r = traffic_book_write(b, NULL, now, e);
    }
    if (r != 0 || (b->trimmed_at != 0 && now - b->trimmed_at < TRIM_EACH))
        return r;
    b->trimmed_at = now;
    for (size_t i = 0; r == 0 && i < b->model->networks.n; i++) {
        const char *network = model_network_at(b->model, i)->spec.meta.name;
        char prefix[RECORD_KEY_MAX];
        struct store_range range = {
            .prefix = traffic_key_format(prefix, network, -1, "", ""), .limit = TRIM_MAX};

        r = store_list(b->model->store, &range, on_oldest, b, e);
        b->n_on_way += r == 0;
    }
    return r;
}
