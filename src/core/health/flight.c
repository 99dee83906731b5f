/* flight.c - see flight.h. */
#include "health/flight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "health/pickle.h"
#include "mesh/object/fields.h"

/* Entries that are looked at: the last ones; groups of a rank; and tensors of an operation, and
 * dimensions of a tensor. */
#define ENTRIES_MAX    65536
#define FOUND_MAX      64
#define TENSORS_MAX    65536
#define DIMENSIONS_MAX 64

#define N_RANKS_MAX (FLIGHT_RANK_MAX + 1)

/* ---- texts and numbers of a pickle ---------------------------------------------------------- */

static bool is_text(const struct pickle_value *v, const char *text)
{
    return v && v->kind == PICKLE_TEXT && v->len == strlen(text) &&
           memcmp(v->text, text, v->len) == 0;
}

static bool is_same_text(const struct pickle_value *a, const struct pickle_value *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static bool has(const struct pickle_value *v, const char *word)
{
    return v->len >= strlen(word) && memmem(v->text, v->len, word, strlen(word));
}

/* Copies what can be printed, as far as it fits. */
static void copy(char *ret, size_t cap, const struct pickle_value *v, size_t from)
{
    size_t n = 0;

    for (size_t i = from; v && i < v->len && n + 1 < cap; i++)
        ret[n++] = v->text[i] >= ' ' && v->text[i] <= '~' ? v->text[i] : '?';
    ret[n] = '\0';
}

static const struct pickle_value *find_text(
    const struct pickle *p, const struct pickle_value *dict, const char *key)
{
    const struct pickle_value *v = pickle_find(p, dict, key);

    return v && v->kind == PICKLE_TEXT ? v : NULL;
}

/* The first text of a list; NULL: there is none. */
static const struct pickle_value *first_text(const struct pickle *p, const struct pickle_value *v)
{
    uint32_t at = pickle_begin(v);
    const struct pickle_value *first = pickle_next(p, &at);

    return first && first->kind == PICKLE_TEXT ? first : NULL;
}

/* A number from 0 on; false: it is none. */
static bool read_count(
    const struct pickle *p, const struct pickle_value *dict, const char *key, uint64_t *ret)
{
    const struct pickle_value *v = pickle_find(p, dict, key);

    if (!v || v->kind != PICKLE_INT || v->integer < 0)
        return false;
    *ret = (uint64_t)v->integer;
    return true;
}

/* ---- groups --------------------------------------------------------------------------------- */

/** A process group, as the entries of a rank show it. */
struct group {
    const struct pickle_value *name; /* texts that the pickle has */
    const struct pickle_value *description;
    uint64_t entered;
    uint64_t completed;
    uint64_t waits_in;                /* 0: in none */
    const struct pickle_value *entry; /* the operation that this is */
    size_t last;                      /* number of its last entry */
};

struct groups {
    const struct pickle *p;
    struct group items[FOUND_MAX];
    unsigned n;
};

/** An entry that is looked at. */
struct entry {
    const struct pickle_value *dict;
    struct group *group;
    uint64_t number;
    bool is_completed;
};

static struct group *find_group(struct groups *all, const struct pickle_value *group)
{
    uint32_t at = pickle_begin(group);
    const struct pickle_value *name = pickle_next(all->p, &at);
    const struct pickle_value *description = pickle_next(all->p, &at);

    if (!name || name->kind != PICKLE_TEXT || !description || description->kind != PICKLE_TEXT)
        return NULL;
    for (unsigned i = 0; i < all->n; i++)
        if (is_same_text(all->items[i].name, name))
            return &all->items[i];
    if (all->n == FOUND_MAX)
        return NULL;
    all->items[all->n] = (struct group){.name = name, .description = description};
    return &all->items[all->n++];
}

/* False: it is no collective operation of a group that is looked at. */
static bool read_entry(struct groups *all, const struct pickle_value *dict, struct entry *ret)
{
    const struct pickle_value *name = find_text(all->p, dict, "profiling_name");
    const struct pickle_value *paired = pickle_find(all->p, dict, "is_p2p");

    if (!name || has(name, "send") || has(name, "recv") ||
        (paired && paired->kind == PICKLE_BOOL && paired->integer))
        return false;
    ret->dict = dict;
    ret->is_completed = is_text(pickle_find(all->p, dict, "state"), "completed");
    return read_count(all->p, dict, "collective_seq_id", &ret->number) && ret->number > 0 &&
           (ret->group = find_group(all, pickle_find(all->p, dict, "process_group")));
}

/** What is done with an entry, the @i-th of the record. */
typedef void (*entry_fn)(const struct entry *one, size_t i);

/* Calls @fn for the last entries. */
static void each_entry(
    struct groups *all, const struct pickle_value *entries, size_t n_entries, entry_fn fn)
{
    uint32_t at = pickle_begin(entries);

    for (size_t i = 0; i < n_entries; i++) {
        const struct pickle_value *dict = pickle_next(all->p, &at);
        struct entry one;

        if (i + ENTRIES_MAX >= n_entries && read_entry(all, dict, &one))
            fn(&one, i);
    }
}

static void note_number(const struct entry *one, size_t i)
{
    struct group *g = one->group;

    g->last = i;
    if (one->number > g->entered)
        g->entered = one->number;
    if (one->is_completed && one->number > g->completed)
        g->completed = one->number;
}

static void note_wait(const struct entry *one, size_t i)
{
    struct group *g = one->group;

    if (one->number > g->completed && (g->waits_in == 0 || one->number < g->waits_in)) {
        g->waits_in = one->number;
        g->entry = one->dict;
    }
}

/* The FNV-1a of 64 bits, of which a JSON integer holds 63. */
static uint64_t add_to_key(uint64_t key, const struct pickle_value *text)
{
    for (size_t i = 0; text && i < text->len; i++)
        key = (key ^ (uint8_t)text->text[i]) * 0x100000001b3;
    return (key ^ 0xff) * 0x100000001b3;
}

/* "[0, 1, 2]": how many these are. */
static uint32_t count_ranks(const struct pickle_value *ranks)
{
    uint32_t n = 0;
    bool is_in = false;

    for (size_t i = 0; ranks && i < ranks->len; i++) {
        bool is_digit = ranks->text[i] >= '0' && ranks->text[i] <= '9';

        n += is_digit && !is_in;
        is_in = is_digit;
    }
    return n < N_RANKS_MAX ? n : N_RANKS_MAX;
}

/* Elements of all tensors together; more than a JSON integer holds is as much as that. */
static uint64_t count_elements(const struct pickle *p, const struct pickle_value *sizes)
{
    uint32_t at = pickle_begin(sizes);
    uint64_t sum = 0;
    const struct pickle_value *tensor;

    for (unsigned i = 0; i < TENSORS_MAX && (tensor = pickle_next(p, &at)); i++) {
        uint32_t of = pickle_begin(tensor);
        const struct pickle_value *size;
        uint64_t n = 1;

        for (unsigned k = 0; k < DIMENSIONS_MAX && (size = pickle_next(p, &of)); k++)
            if (size->kind != PICKLE_INT || size->integer < 0 ||
                __builtin_mul_overflow(n, (uint64_t)size->integer, &n))
                n = INT64_MAX;
        if (__builtin_add_overflow(sum, n, &sum) || sum > INT64_MAX)
            return INT64_MAX;
    }
    return sum;
}

/* How long ago it was asked for, at @at, ns since 1970; ms. */
static uint32_t waited(const struct pickle *p, const struct pickle_value *entry, int64_t at)
{
    uint64_t from = 0;

    if (!read_count(p, entry, "time_created_ns", &from) || at <= 0 || from == 0 ||
        (uint64_t)at <= from)
        return 0;
    from = ((uint64_t)at - from) / 1000000;
    return from < FLIGHT_MS_MAX ? (uint32_t)from : FLIGHT_MS_MAX;
}

static struct flight_place make_place(
    const struct pickle *p, const struct group *g, uint32_t rank, int64_t at)
{
    struct flight_place place = {
        .rank = rank, .entered = g->entered < INT64_MAX ? g->entered : INT64_MAX};
    const struct pickle_value *groups = pickle_find(p, pickle_root(p), "pg_config");
    const struct pickle_value *ranks = NULL;
    const struct pickle_value *name;
    char key[64];

    copy(key, sizeof(key), g->name, 0);
    ranks = find_text(p, pickle_find(p, groups, key), "ranks");
    place.key = add_to_key(add_to_key(0xcbf29ce484222325, g->name), ranks) & INT64_MAX;
    place.n_ranks = count_ranks(ranks);
    copy(place.group, sizeof(place.group),
        g->description->len == 0 || is_text(g->description, "undefined") ? g->name : g->description,
        0);
    if (g->waits_in == 0)
        return place;
    place.waits_in = g->waits_in < INT64_MAX ? g->waits_in : INT64_MAX;
    place.wait_ms = waited(p, g->entry, at);
    place.elements = count_elements(p, pickle_find(p, g->entry, "input_sizes"));
    name = find_text(p, g->entry, "profiling_name");
    copy(place.operation, sizeof(place.operation), name,
        name && has(name, "nccl:") && memcmp(name->text, "nccl:", 5) == 0 ? 5 : 0);
    copy(
        place.type, sizeof(place.type), first_text(p, pickle_find(p, g->entry, "input_dtypes")), 0);
    return place;
}

/* Those in which it waits first, and those used last. */
static int compare_groups(const void *a, const void *b)
{
    const struct group *x = a;
    const struct group *y = b;

    if ((x->waits_in > 0) != (y->waits_in > 0))
        return x->waits_in > 0 ? -1 : 1;
    return (x->last < y->last) - (x->last > y->last);
}

int flight_decode(struct flight_record *ret, const void *bytes, size_t len, uint32_t rank,
    int64_t at, struct err *e)
{
    struct pickle p = {.n_values = 0};
    struct flight_record record = {.n = 0};
    struct groups all = {.p = &p};
    const struct pickle_value *entries;
    size_t n_entries = 0;
    int r = pickle_read(&p, bytes, len, e);

    if (r != 0)
        return r;
    entries = pickle_find(&p, pickle_root(&p), "entries");
    if (!entries || entries->kind != PICKLE_LIST) {
        pickle_deinit(&p);
        return err_set(e, -EINVAL, "the record of a flight recorder has no list \"entries\"");
    }
    /* A list that is in itself has an end all the same: its cells are those of one list. */
    for (uint32_t cell = pickle_begin(entries); pickle_next(&p, &cell);)
        n_entries++;
    each_entry(&all, entries, n_entries, note_number);
    each_entry(&all, entries, n_entries, note_wait);
    qsort(all.items, all.n, sizeof(all.items[0]), compare_groups);
    while (record.n < all.n && record.n < FLIGHT_GROUPS_MAX) {
        record.items[record.n] = make_place(&p, &all.items[record.n], rank, at);
        record.n++;
    }
    pickle_deinit(&p);
    *ret = record;
    return 0;
}

/* ---- as JSON -------------------------------------------------------------------------------- */

static json_t *encode_place(const struct flight_place *p)
{
    json_t *json = json_pack("{s:I, s:s, s:I, s:I, s:I}", "rank", (json_int_t)p->rank, "group",
        p->group, "key", (json_int_t)p->key, "ageMilliseconds", (json_int_t)p->age_ms, "entered",
        (json_int_t)p->entered);

    if (p->n_ranks > 0)
        fields_set(&json, "ofRanks", json_integer((json_int_t)p->n_ranks));
    if (p->waits_in == 0)
        return json;
    fields_set(&json, "waitsIn", json_integer((json_int_t)p->waits_in));
    fields_set(&json, "waitMilliseconds", json_integer((json_int_t)p->wait_ms));
    fields_set(&json, "operation", json_string(p->operation));
    fields_set(&json, "elements", json_integer((json_int_t)p->elements));
    fields_set(&json, "type", json_string(p->type));
    return json;
}

json_t *flight_places_encode(const struct flight_places *p)
{
    json_t *list = p->is_known ? json_array() : NULL;

    for (unsigned i = 0; list && i < p->n; i++)
        fields_append(&list, encode_place(&p->items[i]));
    return list ? json_pack("{s:o}", "places", list) : NULL;
}

static void read_place(struct flight_place *ret, const json_t *json, struct fields *all)
{
    struct fields f = fields_make(json, "an entry of \"places\"", all->e);

    fields_int(&f, "rank", FIELDS_REQUIRED, 0, FLIGHT_RANK_MAX, &ret->rank);
    fields_int(&f, "ofRanks", FIELDS_OPTIONAL, 1, N_RANKS_MAX, &ret->n_ranks);
    fields_text(&f, "group", FIELDS_REQUIRED, 0, sizeof(ret->group), ret->group);
    fields_u64(&f, "key", FIELDS_REQUIRED, 0, INT64_MAX, &ret->key);
    fields_int(&f, "ageMilliseconds", FIELDS_REQUIRED, 0, FLIGHT_MS_MAX, &ret->age_ms);
    fields_u64(&f, "entered", FIELDS_REQUIRED, 0, INT64_MAX, &ret->entered);
    fields_u64(&f, "waitsIn", FIELDS_OPTIONAL, 1, INT64_MAX, &ret->waits_in);
    fields_int(&f, "waitMilliseconds", FIELDS_OPTIONAL, 0, FLIGHT_MS_MAX, &ret->wait_ms);
    fields_text(&f, "operation", FIELDS_OPTIONAL, 0, sizeof(ret->operation), ret->operation);
    fields_u64(&f, "elements", FIELDS_OPTIONAL, 0, INT64_MAX, &ret->elements);
    fields_text(&f, "type", FIELDS_OPTIONAL, 0, sizeof(ret->type), ret->type);
    if (ret->waits_in > ret->entered)
        fields_fail(&f, "it waits in number %llu, and has entered number %llu at most",
            (unsigned long long)ret->waits_in, (unsigned long long)ret->entered);
    all->failed = fields_end(&f);
}

void flight_places_read(struct flight_places *ret, struct fields *fields, const char *name)
{
    const json_t *json = fields_object(fields, name, FIELDS_OPTIONAL);
    struct fields f;
    const json_t *list;

    if (!json)
        return;
    f = fields_make(json, "\"flight\"", fields->e);
    list = fields_array(&f, "places", FIELDS_REQUIRED, 0, FLIGHT_PLACES_MAX);
    for (size_t i = 0; f.failed == 0 && i < json_array_size(list); i++)
        read_place(&ret->items[ret->n++], json_array_get(list, i), &f);
    fields->failed = fields_end(&f);
    ret->is_known = fields->failed == 0;
}
