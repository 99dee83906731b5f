/* kube_log.c - the journal of a store in Kubernetes; see kubernetes_internal.h. What it does not
 * need any more kubernetes.c removes. */
#include "backends/kubernetes/kubernetes_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "os/clock.h"

/* ---- entries and states, as text ------------------------------------------------------------- */

static const char *const op_names[] = {
    [STORE_OP_PUT] = "put",
    [STORE_OP_DELETE] = "delete",
    [STORE_OP_CHECK] = "check",
};

#define OP_N (sizeof(op_names) / sizeof(*op_names))

/* ---- names ----------------------------------------------------------------------------------- */

const char *kube_entry_name(char buf[static KUBE_RECORD_NAME_MAX], uint64_t seq)
{
    (void)snprintf(buf, KUBE_RECORD_NAME_MAX, "entry-%016" PRIu64, seq);
    return buf;
}

uint64_t kube_entry_seq(const char *name)
{
    char *end;
    uint64_t seq;

    if (strncmp(name, "entry-", 6) != 0 || strlen(name) != 22)
        return 0;
    seq = strtoull(name + 6, &end, 10);
    return *end == '\0' ? seq : 0;
}

const char *kube_writer(char buf[static KUBE_WRITER_MAX], uint64_t run, uint64_t n, uint64_t last)
{
    (void)snprintf(buf, KUBE_WRITER_MAX, "%016" PRIx64 "-%" PRIu64 "-%" PRIu64, run, n, last);
    return buf;
}

/* The number in decimal at @text, of which @end is the byte behind it; what follows that, or NULL.
 */
static const char *take_number(uint64_t *ret, const char *text, char end)
{
    const char *stop = strchr(text, end);
    char digits[24];

    if (!stop || (size_t)(stop - text) >= sizeof(digits))
        return NULL;
    (void)snprintf(digits, sizeof(digits), "%.*s", (int)(stop - text), text);
    if (parse_u64(ret, digits, 0, UINT64_MAX, "number", NULL) < 0)
        return NULL;
    return end == '\0' ? stop : stop + 1;
}

bool kube_is_orphan(const char *name, const struct kube_checkpoint *f)
{
    static const char state[] = "state-", part[] = "part-";
    const size_t run_digits = 16;
    uint64_t number, ignored;
    const char *at;

    if (strncmp(name, state, strlen(state)) == 0) {
        at = take_number(&number, name + strlen(state), '-');
        return at && take_number(&ignored, at, '\0') && number < f->next;
    }
    if (strncmp(name, part, strlen(part)) != 0)
        return false;
    at = name + strlen(part);
    if (strspn(at, "0123456789abcdef") != run_digits || at[run_digits] != '-')
        return false;
    /* Older hubs left the last number out: such a name says too little. */
    at = take_number(&ignored, at + run_digits + 1, '-');
    at = at ? take_number(&number, at, '-') : NULL;
    if (!at || !take_number(&ignored, at, '\0'))
        return false;
    return number < UINT64_MAX - KUBE_PARTS_LAG && number + KUBE_PARTS_LAG < f->first;
}

const char *kube_piece_name(
    char buf[static KUBE_RECORD_NAME_MAX], const char *writer, uint64_t next, uint64_t index)
{
    if (writer)
        (void)snprintf(buf, KUBE_RECORD_NAME_MAX, "part-%s-%" PRIu64, writer, index);
    else
        (void)snprintf(buf, KUBE_RECORD_NAME_MAX, "state-%016" PRIu64 "-%" PRIu64, next, index);
    return buf;
}

/* ---- the checkpoint -------------------------------------------------------------------------- */

char *kube_checkpoint_encode(const struct kube_checkpoint *f)
{
    json_t *json = json_pack("{s:i, s:I, s:I, s:I}", "layout", KUBE_LAYOUT, "first",
        (json_int_t)f->first, "next", (json_int_t)f->next, "parts", (json_int_t)f->parts);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

int kube_checkpoint_decode(struct kube_checkpoint *ret, const char *text, struct err *e)
{
    json_t *json = json_loads(text, 0, NULL);
    json_int_t layout = 0;
    json_int_t first = 0;
    json_int_t next = 0;
    json_int_t parts = 0;
    int r = json_unpack(json, "{s:I, s:I, s:I, s:I}", "layout", &layout, "first", &first, "next",
        &next, "parts", &parts);

    json_decref(json);
    if (r != 0 || first < 1 || next < first || parts < 0 || parts > KUBE_PARTS_MAX)
        return err_set(
            e, -EINVAL, "the record \"floor\" holds \"%.80s\", which no hub has written", text);
    if (layout != KUBE_LAYOUT)
        return err_set(e, -EINVAL,
            "the records have the layout %lld, and this version knows %d: run a newer one",
            (long long)layout, KUBE_LAYOUT);
    *ret = (struct kube_checkpoint){
        .first = (uint64_t)first, .next = (uint64_t)next, .parts = (uint64_t)parts};
    return 0;
}

/* ---- commits --------------------------------------------------------------------------------- */

static json_t *op_encode(const struct store_op *op)
{
    json_int_t expect = op->expect == STORE_EXPECT_ANY ? -1 : (json_int_t)op->expect;

    return json_pack("[s, s, I, s, I, b]", op_names[op->kind], op->key, expect,
        op->value ? op->value : "", (json_int_t)op->ttl_seconds, (int)op->is_unwatched);
}

json_t *kube_commit_encode(const struct store_job *job)
{
    json_t *json = json_array();

    for (size_t i = 0; json && i < job->n_ops; i++)
        if (json_array_append_new(json, op_encode(&job->ops[i])) != 0) {
            json_decref(json);
            return NULL;
        }
    return json;
}

static int op_decode(struct store_op *ret, const json_t *json, struct err *e)
{
    const char *kind = NULL;
    json_int_t expect = 0;
    json_int_t ttl = 0;
    int is_unwatched = 0;
    struct store_op op = {.key = NULL};
    int r = json_unpack((json_t *)json, "[s, s, I, s, I, b]", &kind, &op.key, &expect, &op.value,
        &ttl, &is_unwatched);
    size_t k = 0;

    while (r == 0 && k < OP_N && strcmp(kind, op_names[k]) != 0)
        k++;
    if (r != 0 || k == OP_N || expect < -1 || ttl < 0 || ttl > UINT32_MAX ||
        strlen(op.value) > STORE_VALUE_MAX)
        return err_set(e, -EINVAL, "an entry has an operation that no hub has written");
    op.kind = (enum store_op_kind)k;
    op.expect = expect == -1 ? STORE_EXPECT_ANY : (uint64_t)expect;
    op.ttl_seconds = (uint32_t)ttl;
    op.is_unwatched = is_unwatched;
    r = store__check_key(op.key, 1, e);
    if (r == 0)
        *ret = op;
    return r;
}

int kube_commit_decode(struct store_job **ret, const json_t *json, struct err *e)
{
    size_t n = json_array_size(json);
    struct store_op *ops;
    struct store_job *job;
    int r = 0;

    if (n < 1 || n > STORE_OPS_MAX)
        return err_set(e, -EINVAL, "an entry has a commit of %zu operations", n);
    ops = calloc(n, sizeof(*ops));
    job = store_job_new(STORE_JOB_COMMIT);
    for (size_t i = 0; ops && r == 0 && i < n; i++)
        r = op_decode(&ops[i], json_array_get(json, i), e);
    if (r == 0 && (!ops || !job || store_job_set_ops(job, ops, n) != 0))
        r = err_set(e, -ENOMEM, "no memory for a commit");
    free(ops);
    if (r != 0) {
        store_job_free(job);
        return r;
    }
    *ret = job;
    return 0;
}

/* ---- the state ------------------------------------------------------------------------------- */

int kube_item_decode(struct store_item *ret, const json_t *json, struct err *e)
{
    struct store_item item = {.key = NULL};
    json_int_t revision = 0;
    json_int_t ttl = 0;
    int r = json_unpack((json_t *)json, "[s, s, I, I]", &item.key, &item.value, &revision, &ttl);

    if (r != 0 || revision < 1 || ttl < 0 || ttl > UINT32_MAX ||
        strlen(item.value) > STORE_VALUE_MAX)
        return err_set(e, -EINVAL, "a state has an item that no hub has written");
    item.revision = (uint64_t)revision;
    item.ttl_seconds = (uint32_t)ttl;
    item.value_len = strlen(item.value);
    r = store__check_key(item.key, 1, e);
    if (r == 0)
        *ret = item;
    return r;
}

size_t kube_cut(const char *text)
{
    size_t bytes = 0; /* in JSON's form */
    size_t i = 0;

    for (; text[i] != '\0'; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_inside = (c & 0xc0) == 0x80;

        if (!is_inside && bytes + 8 > KUBE_RECORD_MAX)
            break;
        bytes += c == '"' || c == '\\' ? 2 : c < 0x20 ? 6 : 1;
    }
    return i;
}

/* ---- the journal ----------------------------------------------------------------------------- */

/* After each entry whose number is a multiple of this, a state is written. */
#define STATE_EVERY 512

/* How long writing it waits for an answer. */
#define STATE_NS (2 * NSEC_PER_SEC)

/* Entries that are read before they are done. */
#define READ_MAX 32

/* How often a load begins anew. */
#define LOADS_MAX 8

/* ---- reading --------------------------------------------------------------------------------- */

static json_t *parse(const char *text, const char *name, struct err *e)
{
    json_t *json = json_loads(text, 0, NULL);

    if (!json)
        (void)err_set(e, -EINVAL, "the record \"%s\" is not JSON", name);
    return json;
}

/* A text that was cut into @n Records; @writer, @next: see kube_piece_name(). */
static int read_parts(struct kubernetes *q, const char *writer, uint64_t next, uint64_t n,
    nsec_t until, json_t **ret, struct err *e)
{
    char name[KUBE_RECORD_NAME_MAX];
    struct str text = STR_NULL;
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < n; i++) {
        struct kube_record record = KUBE_RECORD_NULL;

        r = kube_client_read(&q->client, kube_piece_name(name, writer, next, i), until, &record, e);
        if (r == 0)
            str_add(&text, record.data);
        kube_record_deinit(&record);
    }
    if (r == 0 && text.failed)
        r = err_set(e, -ENOMEM, "no memory for a record of %" PRIu64 " parts", n);
    if (r == 0) {
        *ret = parse(str_text(&text), name, e);
        r = *ret ? 0 : -EINVAL;
    }
    str_deinit(&text);
    return r;
}

/* An entry with its commits, wherever they are. */
static int read_entry(struct kubernetes *q, uint64_t seq, nsec_t until, json_t **ret, struct err *e)
{
    struct kube_record record = KUBE_RECORD_NULL;
    char name[KUBE_RECORD_NAME_MAX];
    const char *writer;
    json_int_t parts;
    json_t *json;
    int r = kube_client_read(&q->client, kube_entry_name(name, seq), until, &record, e);

    if (r != 0)
        return r;
    json = parse(record.data, name, e);
    kube_record_deinit(&record);
    if (!json)
        return -EINVAL;
    writer = json_string_value(json_object_get(json, "by"));
    parts = json_integer_value(json_object_get(json, "parts"));
    if (!writer || strlen(writer) >= KUBE_WRITER_MAX || parts < 0 || parts > KUBE_PARTS_MAX)
        r = err_set(e, -EINVAL, "the record \"%s\" is none that a hub has written", name);
    else if (parts > 0) {
        json_t *whole = NULL;

        r = read_parts(q, writer, 0, (uint64_t)parts, until, &whole, e);
        json_decref(json);
        json = whole;
    }
    if (r == 0)
        *ret = json;
    else
        json_decref(json);
    return r;
}

/* KUBE_E_ABSENT: there is none. */
static int find_checkpoint(
    struct kubernetes *q, nsec_t until, struct kube_record *ret_record, struct err *e)
{
    struct kube_record record = KUBE_RECORD_NULL;
    int r = kube_client_read(&q->client, "floor", until, &record, e);

    if (r == 0)
        r = kube_checkpoint_decode(&q->checkpoint, record.data, e);
    if (r == 0 && ret_record) {
        *ret_record = record;
        return 0;
    }
    kube_record_deinit(&record);
    return r;
}

/* The same of a journal in use, whose checkpoint has to be there: without it nobody could say which
 * entries count. */
static int read_checkpoint(
    struct kubernetes *q, nsec_t until, struct kube_record *ret_record, struct err *e)
{
    int r = find_checkpoint(q, until, ret_record, e);

    return r == KUBE_E_ABSENT
               ? err_set(e, -EIO, "the record \"floor\" is gone: somebody has deleted the records")
               : r;
}

/* ---- telling how the keys in memory differ from those before --------------------------------- */

static int tell_change(struct kubernetes *q, const struct store_op *op, uint64_t revision)
{
    struct store_job *job = store_job_new(STORE_JOB_COMMIT);

    if (!job || store_job_set_ops(job, op, 1) != 0) {
        store_job_free(job);
        return -ENOMEM;
    }
    job->took_effect[0] = true;
    job->is_unasked = true;
    job->asked_at = clock_now();
    job->revision = revision;
    store__finish(&q->base, job);
    return 0;
}

/* Two states of the store, of which the first one's keys are walked through. */
struct difference {
    struct kubernetes *q;
    struct store *other;
    uint64_t revision; /* of the newer one */
};

static int tell_gone(void *ctx, const struct store_item *item)
{
    const struct difference *d = ctx;
    struct store_op op = {.kind = STORE_OP_DELETE, .key = item->key};

    return memory_revision_of(d->other, item->key) ? 0 : tell_change(d->q, &op, d->revision);
}

static int tell_new(void *ctx, const struct store_item *item)
{
    const struct difference *d = ctx;
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = item->key,
        .value = item->value,
        .ttl_seconds = item->ttl_seconds};

    return memory_revision_of(d->other, item->key) == item->revision
               ? 0
               : tell_change(d->q, &op, item->revision);
}

static int tell_differences(struct kubernetes *q, struct store *before)
{
    struct difference d = {.q = q, .other = q->mirror, .revision = memory_revision(q->mirror)};
    int r = memory_walk(before, tell_gone, &d);

    d.other = before;
    return r == 0 ? memory_walk(q->mirror, tell_new, &d) : r;
}

/* ---- doing ----------------------------------------------------------------------------------- */

static bool has_effect(const struct store_job *job)
{
    for (size_t i = 0; i < job->n_ops; i++)
        if (job->took_effect[i])
            return true;
    return false;
}

/* Do a commit of another hub, or one of ours whose answer was lost. */
static int do_others(struct kubernetes *q, const json_t *commit, struct err *e)
{
    struct store_job *job = NULL;
    int r = kube_commit_decode(&job, commit, e);

    if (r != 0)
        return r;
    memory_run(q->mirror, job);
    if (job->r != 0 || !has_effect(job) || q->is_loading) {
        store_job_free(job);
        return 0;
    }
    job->is_unasked = true;
    job->asked_at = clock_now();
    store__finish(&q->base, job);
    return 0;
}

static void do_own(struct kubernetes *q)
{
    struct store_job *job;

    while ((job = list_first(q->own, struct store_job, link))) {
        list_remove(&job->link);
        memory_run(q->mirror, job);
        store__finish(&q->base, job);
    }
}

static int do_entry(struct kubernetes *q, const json_t *entry, struct err *e)
{
    const char *writer = json_string_value(json_object_get(entry, "by"));
    const json_t *commits = json_object_get(entry, "commits");
    size_t i;
    json_t *commit;
    int r = 0;

    /* When all is loaded anew, what became of ours is not found out: see find_whose(). */
    if (q->own && !q->is_loading && writer && strcmp(writer, q->writer) == 0) {
        do_own(q);
    } else {
        json_array_foreach((json_t *)commits, i, commit) {
            r = do_others(q, commit, e);
            if (r != 0)
                return err_prefix(e, "entry %" PRIu64, q->seq + 1);
        }
    }
    q->seq++;
    return 0;
}

/* Do the entries that are there, as far as they are read at once. 0; KUBE_E_ABSENT: no more are
 * there; KUBE_E_EXISTS: they are too old, and everything is to be loaded. */
static int follow_some(struct kubernetes *q, nsec_t until, struct err *e)
{
    json_t *entries[READ_MAX];
    unsigned n = 0;
    bool is_end;
    int r = 0;

    while (r == 0 && n < READ_MAX) {
        r = read_entry(q, q->seq + 1 + n, until, &entries[n], e);
        n += r == 0;
    }
    is_end = r == KUBE_E_ABSENT;
    /* What was read is of the journal only if it was not removed from it before. */
    if (r == 0 || is_end)
        r = read_checkpoint(q, until, NULL, e);
    if (r == 0 && q->checkpoint.first > q->seq + 1)
        r = KUBE_E_EXISTS;
    for (unsigned i = 0; i < n; i++) {
        if (r == 0)
            r = do_entry(q, entries[i], e);
        json_decref(entries[i]);
    }
    return r == 0 && is_end ? KUBE_E_ABSENT : r;
}

/* ---- loading --------------------------------------------------------------------------------- */

static int take_state(struct kubernetes *q, const json_t *json, struct err *e)
{
    const json_t *items = json_object_get(json, "items");
    struct store_item item;
    json_t *one;
    size_t i;
    int r = 0;

    json_array_foreach((json_t *)items, i, one) {
        r = kube_item_decode(&item, one, e);
        if (r == 0 && memory_restore(q->mirror, &item) != 0)
            r = err_set(e, -ENOMEM, "no memory for the store");
        if (r != 0)
            return r;
    }
    memory_set_revision(q->mirror, (uint64_t)json_integer_value(json_object_get(json, "revision")));
    return 0;
}

/* The first hub makes the checkpoint. */
static int make_checkpoint(struct kubernetes *q, nsec_t until, struct err *e)
{
    struct kube_checkpoint checkpoint = {.first = 1, .next = 1};
    char *text = kube_checkpoint_encode(&checkpoint);
    int r = text ? kube_client_write(&q->client, "floor", text, NULL, until, e) : -ENOMEM;

    free(text);
    return r == KUBE_E_EXISTS ? 0 : r;
}

/* Into an empty mirror. KUBE_E_ABSENT, KUBE_E_EXISTS: something was removed meanwhile. */
static int load_once(struct kubernetes *q, nsec_t until, struct err *e)
{
    json_t *state = NULL;
    uint64_t next;
    int r = find_checkpoint(q, until, NULL, e);

    if (r == KUBE_E_ABSENT) {
        r = make_checkpoint(q, until, e);
        if (r == 0)
            r = read_checkpoint(q, until, NULL, e);
    }
    if (r != 0)
        return r;
    next = q->checkpoint.next;
    if (q->checkpoint.parts > 0) {
        r = read_parts(q, NULL, next, q->checkpoint.parts, until, &state, e);
        if (r == 0)
            r = take_state(q, state, e);
        json_decref(state);
        if (r != 0)
            return r;
    }
    q->seq = next - 1;
    do
        r = follow_some(q, until, e);
    while (r == 0);
    return r == KUBE_E_ABSENT ? 0 : r;
}

/* Look for what hubs have left that died. */
static void begin_clearing(struct kubernetes *q)
{
    free(q->clear_from);
    q->clear_from = NULL;
    q->is_clearing = true;
}

int kube_log__load(struct kubernetes *q, nsec_t until, struct err *e)
{
    int r = KUBE_E_EXISTS;

    q->is_loading = true;
    q->n_loads++;
    for (unsigned n = 0; n < LOADS_MAX && (r == KUBE_E_EXISTS || r == KUBE_E_ABSENT); n++) {
        q->mirror = store_free(q->mirror);
        r = memory_open(&q->mirror, "", 0, e);
        if (r == 0)
            r = load_once(q, until, e);
    }
    q->is_loading = false;
    if (r == KUBE_E_EXISTS || r == KUBE_E_ABSENT)
        r = err_set(e, -EIO, "the records change faster than they can be read");
    /* Also remove entries that a hub which ended has left. */
    q->trim_end = q->checkpoint.first;
    q->trim_next = q->trim_end > 2 * STATE_EVERY ? q->trim_end - 2 * STATE_EVERY : 1;
    begin_clearing(q);
    return r;
}

/* ---- after a long absence -------------------------------------------------------------------- */

/* Too much was removed meanwhile: everything is loaded, and what is different is told. */
static int begin_anew(struct kubernetes *q, nsec_t until, struct err *e)
{
    struct store *before = q->mirror;
    uint64_t seq = q->seq;
    int r;

    q->mirror = NULL;
    r = kube_log__load(q, until, e);
    if (r != 0) {
        store_free(q->mirror);
        q->mirror = before;
        q->seq = seq;
        return r;
    }
    r = tell_differences(q, before);
    store_free(before);
    return r == 0 ? 0 : err_set(e, r, "no memory for the store");
}

int kube_log__follow(struct kubernetes *q, nsec_t until, struct err *e)
{
    int r;

    do {
        r = follow_some(q, until, e);
        if (r == KUBE_E_EXISTS)
            r = begin_anew(q, until, e);
    } while (r == 0);
    return r == KUBE_E_ABSENT ? 0 : r;
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* Make Records of the pieces of @text. */
static int make_parts(struct kubernetes *q, const char *writer, uint64_t next, const char *text,
    nsec_t until, uint64_t *ret_n, struct err *e)
{
    char name[KUBE_RECORD_NAME_MAX];
    uint64_t n = 0;
    size_t len;
    int r = 0;

    while (r == 0 && (len = kube_cut(text)) > 0) {
        char *piece = strndup(text, len);

        if (!piece)
            return err_set(e, -ENOMEM, "no memory for a record");
        r = kube_client_write(
            &q->client, kube_piece_name(name, writer, next, n), piece, NULL, until, e);
        /* The same piece, made by a request whose answer was lost. */
        if (r == KUBE_E_EXISTS)
            r = 0;
        free(piece);
        text += len;
        n++;
    }
    *ret_n = n;
    return r;
}

/* The text of an entry with these commits; its parts, if it has any, are made. */
static int make_text(
    struct kubernetes *q, const struct list *jobs, nsec_t until, char **ret, struct err *e)
{
    const struct store_job *job;
    json_t *commits = json_array();
    json_t *json;
    uint64_t n = 0;
    char *text;
    int r;

    list_foreach(job, jobs, link)
        (void)json_array_append_new(commits, kube_commit_encode(job));
    json = json_pack("{s:s, s:o}", "by", q->writer, "commits", commits);
    text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!text)
        return err_set(e, -ENOMEM, "no memory for a commit");
    if (kube_cut(text) == strlen(text)) {
        *ret = text;
        return 0;
    }
    r = make_parts(q, q->writer, 0, text, until, &n, e);
    free(text);
    if (r != 0)
        return r;
    if (asprintf(ret, "{\"by\":\"%s\",\"parts\":%" PRIu64 "}", q->writer, n) < 0)
        return err_set(e, -ENOMEM, "no memory for a commit");
    return 0;
}

/* The journal was cut while an entry was to be made: a request for it whose answer was lost may
 * have made it before that, and then it has counted. */
static int is_cut(struct err *e)
{
    return err_set(e, KUBE_E_LOST, "other hubs have written much meanwhile");
}

/* We have made the entry behind the last one. Do it, unless it lies before the checkpoint and so
 * does not count. 0; KUBE_E_LOST. */
static int count_entry(struct kubernetes *q, nsec_t until, struct err *e)
{
    char name[KUBE_RECORD_NAME_MAX];

    if (read_checkpoint(q, until, NULL, e) != 0)
        return KUBE_E_LOST;
    if (q->checkpoint.first > q->seq + 1) {
        if (kube_client_remove(&q->client, kube_entry_name(name, q->seq + 1), until, e) != 0 ||
            begin_anew(q, until, e) != 0)
            return KUBE_E_LOST;
        return is_cut(e);
    }
    do_own(q);
    q->seq++;
    return 0;
}

/* There is an entry behind the last one: another hub's, or ours, if an answer was lost. Do it. 0;
 * KUBE_E_LOST: it may be ours. */
static int find_whose(struct kubernetes *q, nsec_t until, struct err *e)
{
    uint64_t n_loads = q->n_loads;
    int r = kube_log__follow(q, until, e);

    if (list_is_empty(q->own))
        return r;
    if (r != 0)
        return KUBE_E_LOST;
    return q->n_loads == n_loads ? 0 : is_cut(e);
}

static int append_text(struct kubernetes *q, const char *text, nsec_t until, struct err *e)
{
    uint64_t last = q->seq;
    char name[KUBE_RECORD_NAME_MAX];
    int r = 0;

    while (r == 0 && !list_is_empty(q->own)) {
        /* Later than that its parts count as left over; see kube_is_orphan(). */
        if (q->seq - last >= KUBE_PARTS_LAG)
            return err_set(e, -EAGAIN, "other hubs write all the time: try again");
        r = kube_client_write(&q->client, kube_entry_name(name, q->seq + 1), text, NULL, until, e);
        if (r == 0)
            r = count_entry(q, until, e);
        else if (r == KUBE_E_EXISTS)
            r = find_whose(q, until, e);
    }
    return r;
}

/* ---- keeping it short ------------------------------------------------------------------------ */

static int add_item(void *ctx, const struct store_item *item)
{
    json_t *json = json_pack("[s, s, I, I]", item->key, item->value, (json_int_t)item->revision,
        (json_int_t)item->ttl_seconds);

    return json_array_append_new(ctx, json) == 0 ? 0 : -ENOMEM;
}

/* All keys as a text to be cut; NULL: no memory. */
static char *state_text(struct kubernetes *q)
{
    json_t *items = json_array();
    int r = items ? memory_walk(q->mirror, add_item, items) : -ENOMEM;
    json_t *json =
        json_pack("{s:I, s:o}", "revision", (json_int_t)memory_revision(q->mirror), "items", items);
    char *text = r == 0 && json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

/* Let the checkpoint point to the state before the entry @next, and have the older entries removed.
 */
static int move_checkpoint(
    struct kubernetes *q, uint64_t next, uint64_t parts, nsec_t until, struct err *e)
{
    struct kube_record record = KUBE_RECORD_NULL;
    struct kube_checkpoint moved = {.next = next, .parts = parts};
    struct kube_checkpoint old;
    char *text;
    int r = read_checkpoint(q, until, &record, e);

    if (r != 0)
        return r;
    old = q->checkpoint;
    /* Keep the entries since the state before, for a hub that is a little behind. */
    moved.first = old.next;
    text = kube_checkpoint_encode(&moved);
    if (old.next >= next)
        r = err_set(e, -ESTALE, "another hub was quicker");
    else
        r = text ? kube_client_write(&q->client, "floor", text, record.version, until, e) : -ENOMEM;
    free(text);
    kube_record_deinit(&record);
    if (r != 0)
        return r;
    q->checkpoint = moved;
    q->trim_end = moved.first;
    q->old_state = old;
    begin_clearing(q);
    return 0;
}

static int save_state(struct kubernetes *q, nsec_t until, struct err *e)
{
    uint64_t next = q->seq + 1;
    uint64_t parts = 0;
    char *text = state_text(q);
    int r;

    if (!text)
        return err_set(e, -ENOMEM, "no memory for the store's state");
    r = make_parts(q, NULL, next, text, until, &parts, e);
    free(text);
    return r == 0 ? move_checkpoint(q, next, parts, until, e) : r;
}

/* ---- a commit -------------------------------------------------------------------------------- */

int kube_log__append(struct kubernetes *q, struct list *jobs, nsec_t until, struct err *e)
{
    char *text = NULL;
    struct err saving = ERR_NULL;
    int r;

    (void)kube_writer(q->writer, q->run, ++q->n_batches, q->seq);
    q->own = jobs;
    r = make_text(q, jobs, until, &text, e);
    if (r == 0)
        r = append_text(q, text, until, e);
    free(text);
    q->own = NULL;
    q->writer[0] = '\0';
    /* If the state cannot be written, the journal only stays longer, and the next state is tried
     * STATE_EVERY entries later. */
    if (r == 0 && q->seq % STATE_EVERY == 0)
        (void)save_state(q, clock_now() + STATE_NS, &saving);
    return r;
}
