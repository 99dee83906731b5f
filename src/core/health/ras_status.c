/* ras_status.c - see ras_status.h. */
#include "health/ras_status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/object/fields.h"

/* Communicators of a job, ranks of one, and kinds of operations that are looked at. */
#define COMMUNICATORS_MAX 65536
#define N_RANKS_MAX       1000000
#define KINDS_MAX         64

/* Longest name of a machine; where NCCL does not know its address it is "unknown". */
#define HOST_MAX 255

/* ---- the conversation ----------------------------------------------------------------------- */

/* The next line of the answer, without its newline; false: there is none. */
static bool next_line(const char **at, const char *end, const char **ret, size_t *ret_len)
{
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));

    if (!newline)
        return false;
    *ret = *at;
    *ret_len = (size_t)(newline - *at);
    *at = newline + 1;
    return true;
}

static bool begins_with(const char *line, size_t len, const char *words)
{
    return len >= strlen(words) && memcmp(line, words, strlen(words)) == 0;
}

/* Where the object begins; NULL: NCCL has not said yes to all that it was asked before. */
static const char *skip_lines(const char *bytes, size_t len, struct err *e)
{
    static const char *const wanted[] = {"SERVER PROTOCOL ", "OK", "OK"};
    const char *at = bytes;

    for (unsigned i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        const char *line;
        size_t n;

        if (!next_line(&at, bytes + len, &line, &n)) {
            (void)err_set(e, -EINVAL, "NCCL's RAS has closed before it had answered");
            return NULL;
        }
        if (!begins_with(line, n, wanted[i])) {
            (void)err_set(e, -EINVAL, "NCCL's RAS answers \"%.*s\" in place of \"%s\"",
                (int)(n < 80 ? n : 80), line, wanted[i]);
            return NULL;
        }
    }
    return at;
}

/* Versions up to 2.30 leave out a comma between two members of a rank that is missing. There each
 * member has a line, and what ends a line without a comma is followed by a bracket. */
static void add_commas(char *text, size_t len)
{
    for (size_t i = 1; i + 1 < len; i++) {
        size_t next = i + 1;

        if (text[i] != '\n' || !strchr("0123456789\"el", text[i - 1]))
            continue;
        while (next < len && text[next] == ' ')
            next++;
        if (next < len && text[next] == '"')
            text[i] = ',';
    }
}

static json_t *parse(const char *text, size_t len, struct err *e)
{
    char *copy = malloc(len + 1);
    json_error_t why;
    json_t *json;

    if (!copy) {
        (void)err_set(e, -ENOMEM, "no memory for an answer of NCCL's RAS");
        return NULL;
    }
    memcpy(copy, text, len);
    add_commas(copy, len);
    json = json_loadb(copy, len, 0, &why);
    free(copy);
    if (!json)
        (void)err_set(e, -EINVAL, "NCCL's RAS answers no JSON: %s", why.text);
    return json;
}

/* ---- a communicator ------------------------------------------------------------------------- */

/** What is found of a job. */
struct search {
    struct ras_status status;
    ras_own_fn is_own;
    const void *arg;
    uint32_t n_greatest; /* ranks of the greatest communicator so far */
    uint32_t n_named;    /* ranks of the one whose ranks are named; 0: none are */
};

/** A rank, as it is written. */
struct rank {
    const json_t *json; /* borrowed */
    uint32_t rank;
    uint32_t pid; /* 0: not known */
    struct ip_addr address;
    bool is_silent; /* it is missing, and its process does not answer */
};

static struct rank read_rank(const json_t *json, bool is_missing, struct fields *all)
{
    struct fields f = fields_make(json, "a rank", all->e);
    json_int_t pid = json_integer_value(json_object_get(json, "pid"));
    struct rank r = {.json = json, .pid = pid > 0 && pid <= INT32_MAX ? (uint32_t)pid : 0};
    const char *host = fields_string(&f, "host", FIELDS_OPTIONAL, 0, HOST_MAX);
    const json_t *status = fields_object(&f, "status", FIELDS_OPTIONAL);

    fields_int(&f, "rank", FIELDS_REQUIRED, 0, N_RANKS_MAX, &r.rank);
    if (!is_missing)
        (void)fields_object(&f, "collective_counts", FIELDS_REQUIRED);
    r.is_silent = is_missing && (json_is_true(json_object_get(status, "unresponsive")) ||
                                    json_is_true(json_object_get(status, "considered_dead")));
    if (host)
        (void)ip_addr_parse(&r.address, host, NULL);
    all->failed = fields_end(&f);
    return r;
}

static uint64_t count_of(const json_t *rank, const char *kind)
{
    const json_t *counts = json_object_get(rank, "collective_counts");
    json_int_t n = json_integer_value(json_object_get(counts, kind));

    return n > 0 ? (uint64_t)n : 0;
}

static void add_counts(struct search *s, const json_t *rank)
{
    json_t *counts = json_object_get(rank, "collective_counts");
    const char *kind;
    const json_t *n;

    json_object_foreach(counts, kind, n)
        s->status.n_started += (uint64_t)json_integer_value(n);
}

/* Names are words of letters. What two ranks send each other is no collective. */
static bool is_collective(const char *kind)
{
    size_t len = strspn(kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");

    return len > 0 && len < RAS_OPERATION_MAX && kind[len] == '\0' &&
           strncmp(kind, "Send", 4) != 0 && strncmp(kind, "Recv", 4) != 0;
}

/* How many ranks have started the fewest, @ret_least, while all others have started more. */
static size_t count_behind(const json_t *ranks, const char *kind, uint64_t *ret_least)
{
    const json_t *rank;
    size_t behind = 0;
    size_t i;

    *ret_least = UINT64_MAX;
    json_array_foreach(ranks, i, rank) {
        uint64_t n = count_of(rank, kind);

        if (n < *ret_least) {
            *ret_least = n;
            behind = 0;
        }
        behind += n == *ret_least;
    }
    return behind;
}

/* Names a rank; NULL: enough are named. */
static struct ras_rank *name_rank(struct ras_ranks *ret, const struct rank *r, uint32_t n_ranks)
{
    struct ras_rank *one = ret->n < RAS_RANKS_MAX ? &ret->items[ret->n++] : NULL;

    if (one)
        *one = (struct ras_rank){
            .rank = r->rank, .n_ranks = n_ranks, .pid = r->pid, .address = r->address};
    return one;
}

/* Those that have not started what all others have; where these are fewer, it is not they that are
 * missed. */
static void name_behind(
    struct ras_ranks *ret, const json_t *ranks, uint32_t n_ranks, struct fields *all)
{
    json_t *kinds = json_object_get(json_array_get(ranks, 0), "collective_counts");
    unsigned n_kinds = 0;
    const char *kind;
    const json_t *any;

    json_object_foreach(kinds, kind, any) {
        size_t n = json_array_size(ranks);
        uint64_t least = 0;
        size_t behind = is_collective(kind) ? count_behind(ranks, kind, &least) : 0;
        const json_t *rank;
        size_t i;

        if (ret->n > 0 || n_kinds++ == KINDS_MAX)
            return;
        if (behind == 0 || 2 * behind > n)
            continue;
        json_array_foreach(ranks, i, rank) {
            struct rank r = read_rank(rank, false, all);
            uint64_t started = count_of(rank, kind);
            struct ras_rank *one = started == least ? name_rank(ret, &r, n_ranks) : NULL;

            if (!one)
                continue;
            memcpy(one->operation, kind, strlen(kind) + 1);
            one->n_started = started;
            one->n_waiting = (uint32_t)(n - behind);
        }
    }
}

static void take_communicator(struct search *s, const json_t *json, struct fields *all)
{
    struct fields f = fields_make(json, "a communicator", all->e);
    struct ras_ranks named = {.n = 0};
    uint32_t lowest = UINT32_MAX;
    bool is_first = false;
    uint32_t n_ranks = 0;
    const json_t *ranks;
    const json_t *missing;

    fields_int(&f, "size", FIELDS_REQUIRED, 1, N_RANKS_MAX, &n_ranks);
    ranks = fields_array(&f, "ranks", FIELDS_REQUIRED, 0, N_RANKS_MAX);
    missing = fields_array(&f, "missing_ranks", FIELDS_OPTIONAL, 0, N_RANKS_MAX);
    for (size_t i = 0; f.failed == 0 && i < json_array_size(ranks); i++) {
        struct rank r = read_rank(json_array_get(ranks, i), false, &f);
        bool is_own = f.failed == 0 && r.pid != 0 && s->is_own(s->arg, r.pid);

        s->status.is_ours |= is_own;
        if (r.rank < lowest) {
            lowest = r.rank;
            is_first = is_own;
        }
        add_counts(s, r.json);
    }
    for (size_t i = 0; f.failed == 0 && i < json_array_size(missing); i++) {
        struct rank r = read_rank(json_array_get(missing, i), true, &f);

        if (f.failed == 0 && r.is_silent)
            (void)name_rank(&named, &r, n_ranks);
    }
    if (f.failed == 0 && named.n == 0)
        name_behind(&named, ranks, n_ranks, &f);
    all->failed = fields_end(&f);
    if (n_ranks > s->n_greatest) {
        s->n_greatest = n_ranks;
        s->status.is_first = is_first;
    }
    if (named.n > 0 && n_ranks > s->n_named) {
        s->n_named = n_ranks;
        s->status.ranks = named;
    }
}

int ras_status_decode(struct ras_status *ret, const char *bytes, size_t len, ras_own_fn is_own,
    const void *arg, struct err *e)
{
    struct search s = {.is_own = is_own, .arg = arg};
    struct err why = ERR_NULL;
    const char *text = skip_lines(bytes, len, &why);
    json_auto_t *json = text ? parse(text, len - (size_t)(text - bytes), &why) : NULL;
    const json_t *all;
    struct fields f;

    if (!json)
        return err_set(e, why.code, "%s", why.text);
    f = fields_make(json, "an answer of NCCL's RAS", e);
    all = fields_array(&f, "communicators", FIELDS_REQUIRED, 0, COMMUNICATORS_MAX);
    for (size_t i = 0; f.failed == 0 && i < json_array_size(all); i++)
        take_communicator(&s, json_array_get(all, i), &f);
    return fields_give(&f, ret, &s.status, sizeof(*ret));
}

/* ---- as JSON -------------------------------------------------------------------------------- */

static json_t *encode_rank(const struct ras_rank *r)
{
    char address[IP_ADDR_TEXT_MAX];
    json_t *json = json_pack("{s:I, s:I, s:s*}", "rank", (json_int_t)r->rank, "ofRanks",
        (json_int_t)r->n_ranks, "address",
        ip_addr_is_none(&r->address) ? NULL : ip_addr_format(&r->address, address));

    if (r->pid != 0)
        fields_set(&json, "process", json_integer((json_int_t)r->pid));
    if (r->operation[0] == '\0')
        return json;
    fields_set(&json, "operation", json_string(r->operation));
    fields_set(&json, "started", json_integer((json_int_t)r->n_started));
    fields_set(&json, "waiting", json_integer((json_int_t)r->n_waiting));
    return json;
}

json_t *ras_ranks_encode(const struct ras_ranks *r)
{
    json_t *list = r->is_known ? json_array() : NULL;

    for (unsigned i = 0; list && i < r->n; i++)
        fields_append(&list, encode_rank(&r->items[i]));
    return list ? json_pack(
                      "{s:I, s:o}", "stillMilliseconds", (json_int_t)r->still_ms, "ranks", list)
                : NULL;
}

static void read_one(struct ras_rank *ret, const json_t *json, struct fields *all)
{
    struct fields f = fields_make(json, "an entry of \"ranks\"", all->e);
    const char *address = fields_string(&f, "address", FIELDS_OPTIONAL, 1, IP_ADDR_TEXT_MAX);

    if (address && ip_addr_parse(&ret->address, address, NULL) != 0)
        fields_fail(&f, "\"address\" \"%.60s\" is no IP address", address);
    fields_int(&f, "rank", FIELDS_REQUIRED, 0, N_RANKS_MAX, &ret->rank);
    fields_int(&f, "ofRanks", FIELDS_REQUIRED, 1, N_RANKS_MAX, &ret->n_ranks);
    fields_int(&f, "process", FIELDS_OPTIONAL, 1, INT32_MAX, &ret->pid);
    fields_text(&f, "operation", FIELDS_OPTIONAL, 1, sizeof(ret->operation), ret->operation);
    fields_u64(&f, "started", FIELDS_OPTIONAL, 0, INT64_MAX, &ret->n_started);
    fields_int(&f, "waiting", FIELDS_OPTIONAL, 0, N_RANKS_MAX, &ret->n_waiting);
    all->failed = fields_end(&f);
}

void ras_ranks_read(struct ras_ranks *ret, struct fields *fields, const char *name)
{
    const json_t *json = fields_object(fields, name, FIELDS_OPTIONAL);
    struct ras_ranks r = {.is_known = true};
    const json_t *list;
    struct fields f;

    if (!json)
        return;
    f = fields_make(json, "\"ras\"", fields->e);
    fields_int(&f, "stillMilliseconds", FIELDS_REQUIRED, 0, RAS_STILL_MAX, &r.still_ms);
    list = fields_array(&f, "ranks", FIELDS_REQUIRED, 0, RAS_RANKS_MAX);
    for (size_t i = 0; f.failed == 0 && i < json_array_size(list); i++)
        read_one(&r.items[r.n++], json_array_get(list, i), &f);
    fields->failed = fields_end(&f);
    if (fields->failed == 0)
        *ret = r;
}
