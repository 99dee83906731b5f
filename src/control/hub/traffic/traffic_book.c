/* traffic_book.c - see traffic_book.h. */
#include "hub/traffic/traffic_book.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/model/model.h"
#include "store/store.h"

/* ---- keys of the records --------------------------------------------------------------------- */

const char *traffic_key_network(char buf[static RECORD_KEY_MAX], const char *network)
{
    (void)snprintf(buf, RECORD_KEY_MAX, TRAFFIC_KEY_PREFIX "%.63s/", network);
    return buf;
}

const char *traffic_key_day(char buf[static RECORD_KEY_MAX], const char *network, int32_t day)
{
    char text[TRAFFIC_DAY_TEXT_MAX];

    (void)snprintf(
        buf, RECORD_KEY_MAX, TRAFFIC_KEY_PREFIX "%.63s/%s", network, traffic_day_format(day, text));
    return buf;
}

const char *traffic_key_format(char buf[static RECORD_KEY_MAX], const struct traffic_key *key)
{
    char day[TRAFFIC_DAY_TEXT_MAX];

    (void)snprintf(buf, RECORD_KEY_MAX, TRAFFIC_KEY_PREFIX "%.63s/%s/%.63s/%.63s", key->network,
        traffic_day_format(key->day, day), key->node, key->hub);
    return buf;
}

/* The text up to the next slash, or to the end; NULL: it is empty or too long. */
static const char *take_part(const char *text, size_t cap, char *ret)
{
    size_t n = text ? strcspn(text, "/") : 0;

    if (n == 0 || n >= cap)
        return NULL;
    memcpy(ret, text, n);
    ret[n] = '\0';
    return text + n + (text[n] == '/');
}

bool traffic_key_parse(struct traffic_key *ret, const char *text)
{
    struct traffic_key key;
    char day[TRAFFIC_DAY_TEXT_MAX];
    size_t n = strlen(TRAFFIC_KEY_PREFIX);

    if (strncmp(text, TRAFFIC_KEY_PREFIX, n) != 0)
        return false;
    text = take_part(text + n, sizeof(key.network), key.network);
    text = take_part(text, sizeof(day), day);
    text = take_part(text, sizeof(key.node), key.node);
    text = take_part(text, sizeof(key.hub), key.hub);
    if (!text || text[0] || traffic_day_parse(&key.day, day, NULL) != 0)
        return false;
    *ret = key;
    return true;
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

enum entry_state {
    ENTRY_UNREAD,  /* what the store has is not known */
    ENTRY_READING, /* it is being read */
    ENTRY_KNOWN,
};

/* What a network has in memory. */
struct traffic_share {
    struct keyed keyed; /* its name */
    size_t n_entries;
    size_t n_flows;
};

struct traffic_entry {
    struct keyed keyed;          /* the record's key */
    struct traffic_share *share; /* pins; the book owns it */
    struct traffic traffic;
    enum entry_state state;
    bool is_unsaved;
    uint64_t counted[PATH_KIND_N]; /* bytes sent that are in the network's counters */
    nsec_t used_at;
};

void traffic_book_init(struct traffic_book *b, struct model *model)
{
    *b = (struct traffic_book){
        .model = model, .n_days = TRAFFIC_BOOK_DAYS, .max_flows = TRAFFIC_BOOK_MEMORY_MAX};
}

static struct traffic_entry *entry_at(const struct traffic_book *b, size_t i)
{
    return container_of(b->entries.items[i], struct traffic_entry, keyed);
}

static struct traffic_share *join_share(struct traffic_book *b, const char *network)
{
    struct keyed *found = keys_find(&b->shares, network);
    struct traffic_share *share =
        found ? container_of(found, struct traffic_share, keyed) : calloc(1, sizeof(*share));

    if (!found && share)
        share->keyed.key = strdup(network);
    if (!found && (!share || !share->keyed.key || keys_add(&b->shares, &share->keyed) != 0)) {
        if (share)
            free(share->keyed.key);
        free(share);
        return NULL;
    }
    share->n_entries++;
    return share;
}

static void leave_share(struct traffic_book *b, struct traffic_share *share)
{
    if (--share->n_entries > 0)
        return;
    keys_remove(&b->shares, &share->keyed);
    free(share->keyed.key);
    free(share);
}

static void free_entry(struct traffic_book *b, struct traffic_entry *entry)
{
    entry->share->n_flows -= entry->traffic.n;
    leave_share(b, entry->share);
    keys_remove(&b->entries, &entry->keyed);
    traffic_deinit(&entry->traffic);
    free(entry->keyed.key);
    free(entry);
}

void traffic_book_deinit(struct traffic_book *b)
{
    while (b->entries.n > 0)
        free_entry(b, entry_at(b, b->entries.n - 1));
    keys_deinit(&b->entries);
    keys_deinit(&b->shares);
}

static struct traffic_entry *find_entry(const struct traffic_book *b, const char *key)
{
    struct keyed *found = keys_find(&b->entries, key);

    return found ? container_of(found, struct traffic_entry, keyed) : NULL;
}

static struct traffic_entry *add_entry(
    struct traffic_book *b, const char *key, const struct traffic_key *parts)
{
    struct traffic_entry *entry = calloc(1, sizeof(*entry));
    struct traffic_share *share = entry ? join_share(b, parts->network) : NULL;

    if (share)
        entry->keyed.key = strdup(key);
    if (!share || !entry->keyed.key || keys_add(&b->entries, &entry->keyed) != 0) {
        if (share) {
            leave_share(b, share);
            free(entry->keyed.key);
        }
        free(entry);
        return NULL;
    }
    entry->share = share;
    entry->traffic.day = parts->day;
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
static void count(struct model_network *net, struct traffic_entry *entry)
{
    uint64_t sums[PATH_KIND_N];

    sum_paths(&entry->traffic, sums);
    for (unsigned i = 0; net && i < PATH_KIND_N; i++)
        net->sent_bytes[i] += sums[i] - entry->counted[i];
    memcpy(entry->counted, sums, sizeof(sums));
}

/* ---- reading -------------------------------------------------------------------------------- */

/* A record that is being read. */
struct reading {
    struct traffic_book *book; /* pins */
    char key[RECORD_KEY_MAX];
};

/* The record is there. One that cannot be understood is as none: it is written anew. */
static void merge_read(struct traffic_entry *entry, const struct store_item *item)
{
    json_t *json = seal_check(entry->keyed.key, item->value, NULL) == 0
                       ? json_loads(item->value, JSON_REJECT_DUPLICATES, NULL)
                       : NULL;
    struct traffic read;

    if (!json || traffic_decode(&read, json, "record", NULL) != 0) {
        json_decref(json);
        return;
    }
    json_decref(json);
    sum_paths(&read, entry->counted);
    entry->share->n_flows -= entry->traffic.n;
    /* What was told meanwhile comes second, so that nothing that is written has no room. */
    if (traffic_merge(&read, &entry->traffic, TRAFFIC_BOOK_FLOWS_MAX) >= 0) {
        traffic_deinit(&entry->traffic);
        entry->traffic = read;
    } else {
        traffic_deinit(&read);
    }
    entry->share->n_flows += entry->traffic.n;
}

static void on_read(void *ctx, const struct store_answer *a)
{
    struct reading *rd = ctx;
    struct traffic_book *b = rd->book;
    struct traffic_entry *entry = find_entry(b, rd->key);
    struct traffic_key key;

    b->n_on_way--;
    if (entry && (a->r == 0 || a->r == STORE_E_ABSENT)) {
        if (a->r == 0)
            merge_read(entry, &a->items[0]);
        entry->state = ENTRY_KNOWN;
        if (traffic_key_parse(&key, rd->key))
            count(model_find_network(b->model, key.network), entry);
    } else if (entry) {
        entry->state = ENTRY_UNREAD;
        b->failure = *a->e;
    }
    free(rd);
}

static void read_entry(struct traffic_book *b, struct traffic_entry *entry)
{
    struct reading *rd = calloc(1, sizeof(*rd));

    if (!rd)
        return;
    rd->book = b;
    (void)snprintf(rd->key, sizeof(rd->key), "%s", entry->keyed.key);
    if (store_get(b->model->store, rd->key, on_read, rd, NULL) != 0) {
        free(rd);
        return;
    }
    b->n_on_way++;
    entry->state = ENTRY_READING;
}

/* ---- what nodes tell ------------------------------------------------------------------------ */

static bool has_peer(const struct traffic *t, const char *peer)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->flows[i].peer, peer) == 0)
            return true;
    return false;
}

/* Put into @ret what may be taken: a node can tell of members, and of those that were. The names
 * are borrowed from @t. Return: flows that may not be taken. */
static size_t admit(const struct traffic_entry *entry, const struct model_node *node,
    const struct traffic *t, struct traffic *ret)
{
    size_t n = 0;

    *ret = (struct traffic){.day = t->day, .flows = calloc(t->n + 1, sizeof(*t->flows))};
    for (size_t i = 0; ret->flows && i < t->n; i++) {
        const struct traffic_flow *f = &t->flows[i];
        bool is_known = f->peer[0] == '\0' || model_find_node(node->net, f->peer) ||
                        has_peer(&entry->traffic, f->peer);

        if (is_known)
            ret->flows[ret->n++] = *f;
        else
            n++;
    }
    return ret->flows ? n : t->n;
}

/* Flows that a network may have in memory. */
static size_t share_of(const struct traffic_book *b, const struct model_network *net)
{
    size_t n_nodes = 0;

    for (size_t i = 0; i < b->model->networks.n; i++)
        n_nodes += model_network_at(b->model, i)->nodes.n;
    return n_nodes > 0 ? b->max_flows * net->nodes.n / n_nodes : 0;
}

static void take(struct traffic_book *b, struct model_node *node, struct traffic_entry *entry,
    const struct traffic *t)
{
    size_t share = share_of(b, node->net);
    size_t used = entry->share->n_flows;
    size_t max = entry->traffic.n + (share > used ? share - used : 0);
    size_t before = entry->traffic.n;
    struct traffic admitted;
    int r;

    b->n_left_out += admit(entry, node, t, &admitted);
    r = traffic_merge(
        &entry->traffic, &admitted, max < TRAFFIC_BOOK_FLOWS_MAX ? max : TRAFFIC_BOOK_FLOWS_MAX);
    /* The names are borrowed. */
    free(admitted.flows);
    entry->share->n_flows += entry->traffic.n - before;
    b->n_left_out += r > 0 ? (size_t)r : 0;
}

void traffic_book_take(struct traffic_book *b, struct model_node *node, const struct traffic *t,
    nsec_t now, int64_t wall_s)
{
    int32_t today = traffic_day(wall_s);
    struct traffic_key key = {.day = t->day};
    struct traffic_entry *entry;
    char text[RECORD_KEY_MAX];

    if (t->day > today + 1 || t->day < today - TRAFFIC_BOOK_DAYS_BACK ||
        t->day <= today - b->n_days) {
        b->n_left_out += t->n;
        return;
    }
    (void)snprintf(key.network, sizeof(key.network), "%.63s", node->net->pub.spec.meta.name);
    (void)snprintf(key.node, sizeof(key.node), "%.63s", node->pub.spec.meta.name);
    (void)snprintf(
        key.hub, sizeof(key.hub), "%.63s", b->model->self[0] ? b->model->self : HUB_NAME_DEFAULT);
    entry = find_entry(b, traffic_key_format(text, &key));
    if (!entry)
        entry = add_entry(b, text, &key);
    if (!entry) {
        b->n_left_out += t->n;
        return;
    }
    take(b, node, entry, t);
    entry->is_unsaved = true;
    entry->used_at = now;
    if (entry->state == ENTRY_KNOWN)
        count(node->net, entry);
    else if (entry->state == ENTRY_UNREAD)
        read_entry(b, entry);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* A commit of records that is not answered yet. */
struct writing {
    struct traffic_book *book; /* pins */
    size_t n;
    char keys[WRITE_AT_ONCE][RECORD_KEY_MAX];
    char *values[WRITE_AT_ONCE]; /* owns, until it is committed */
};

static void put_back(struct writing *w)
{
    for (size_t i = 0; i < w->n; i++) {
        struct traffic_entry *entry = find_entry(w->book, w->keys[i]);

        if (entry)
            entry->is_unsaved = true;
    }
}

static void on_written(void *ctx, const struct store_answer *a)
{
    struct writing *w = ctx;

    w->book->n_on_way--;
    if (a->r != 0) {
        put_back(w);
        w->book->failure = *a->e;
    }
    free(w);
}

/* @w: taken. */
static int commit(struct writing *w, nsec_t now, struct err *e)
{
    struct traffic_book *b = w->book;
    struct store_op ops[WRITE_AT_ONCE];
    int r = 0;

    for (size_t i = 0; i < w->n; i++)
        ops[i] = (struct store_op){.kind = STORE_OP_PUT,
            .key = w->keys[i],
            .value = w->values[i],
            .expect = STORE_EXPECT_ANY,
            .is_untold = true};
    if (w->n > 0)
        r = model_store(b->model, ops, w->n, now, on_written, w, e);
    for (size_t i = 0; i < w->n; i++)
        free(w->values[i]);
    if (w->n > 0 && r == 0) {
        b->n_on_way++;
        return 0;
    }
    put_back(w);
    free(w);
    return r;
}

static char *encode(const struct traffic *t)
{
    json_t *json = traffic_encode(t);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

/* A network that is being removed gets no record: it would be left in the store. */
static bool is_to_be_written(
    const struct traffic_book *b, const struct traffic_entry *entry, const char *network)
{
    struct traffic_key key;
    const struct model_network *net;

    if (!entry->is_unsaved || entry->state != ENTRY_KNOWN ||
        !traffic_key_parse(&key, entry->keyed.key) ||
        (network && strcmp(network, key.network) != 0))
        return false;
    net = model_find_network(b->model, key.network);
    return net && !net->leaving;
}

int traffic_book_write(struct traffic_book *b, const char *network, nsec_t now, struct err *e)
{
    struct writing *w = NULL;
    int r = 0;

    for (size_t i = 0; r == 0 && i < b->entries.n; i++) {
        struct traffic_entry *entry = entry_at(b, i);

        if (!is_to_be_written(b, entry, network))
            continue;
        if (!w)
            w = calloc(1, sizeof(*w));
        if (w)
            w->values[w->n] = encode(&entry->traffic);
        if (!w || !w->values[w->n]) {
            r = err_set(e, -ENOMEM, "no memory for what nodes have moved");
            break;
        }
        w->book = b;
        (void)snprintf(w->keys[w->n++], RECORD_KEY_MAX, "%s", entry->keyed.key);
        entry->is_unsaved = false;
        if (w->n == WRITE_AT_ONCE) {
            r = commit(w, now, e);
            w = NULL;
        }
    }
    if (w && w->n > 0 && r == 0)
        return commit(w, now, e);
    if (w) {
        put_back(w);
        for (size_t i = 0; i < w->n; i++)
            free(w->values[i]);
    }
    free(w);
    return r;
}

/* Let go of what is written and was not used for long, and of what is of no network any more. */
static void let_go(struct traffic_book *b, nsec_t now)
{
    for (size_t i = b->entries.n; i-- > 0;) {
        struct traffic_entry *entry = entry_at(b, i);
        struct traffic_key key;
        bool is_gone = !traffic_key_parse(&key, entry->keyed.key) ||
                       !model_find_network(b->model, key.network);

        if (entry->state == ENTRY_UNREAD && !is_gone)
            read_entry(b, entry);
        if (entry->state != ENTRY_READING &&
            (is_gone || (!entry->is_unsaved && now - entry->used_at >= IDLE)))
            free_entry(b, entry);
    }
}

/* ---- what is too old ------------------------------------------------------------------------ */

/* Records of one network that are being looked for. */
struct trim {
    struct traffic_book *book; /* pins */
    int32_t oldest;            /* day that is kept */
    nsec_t now;
};

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
    struct trim *t = ctx;
    struct traffic_book *b = t->book;
    struct store_op ops[TRIM_MAX];
    struct traffic_key key;
    size_t n = 0;

    b->n_on_way--;
    for (size_t i = 0; a->r == 0 && i < a->n_items; i++)
        if (!traffic_key_parse(&key, a->items[i].key) || key.day < t->oldest)
            ops[n++] = (struct store_op){
                .kind = STORE_OP_DELETE, .key = a->items[i].key, .expect = STORE_EXPECT_ANY};
    if (a->r != 0)
        b->failure = *a->e;
    else if (n > 0 &&
             store_commit(b->model->store, ops, n, t->now, on_trimmed, b, &b->failure) == 0)
        b->n_on_way++;
    free(t);
}

static int trim(
    struct traffic_book *b, const char *network, nsec_t now, int64_t wall_s, struct err *e)
{
    char prefix[RECORD_KEY_MAX];
    struct store_range range = {.prefix = traffic_key_network(prefix, network), .limit = TRIM_MAX};
    struct trim *t = calloc(1, sizeof(*t));
    int r;

    if (!t)
        return err_set(e, -ENOMEM, "no memory for what nodes have moved");
    *t = (struct trim){.book = b, .oldest = traffic_day(wall_s) - b->n_days + 1, .now = now};
    r = store_list(b->model->store, &range, on_oldest, t, e);
    if (r != 0)
        free(t);
    else
        b->n_on_way++;
    return r;
}

int traffic_book_tick(struct traffic_book *b, nsec_t now, int64_t wall_s, struct err *e)
{
    int r = 0;

    if (b->failure.code != 0) {
        struct err failure = b->failure;

        b->failure = (struct err)ERR_NULL;
        return err_set(e, -EIO, "%s", err_text(&failure));
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
    for (size_t i = 0; r == 0 && i < b->model->networks.n; i++)
        r = trim(b, model_network_at(b->model, i)->pub.spec.meta.name, now, wall_s, e);
    return r;
}
