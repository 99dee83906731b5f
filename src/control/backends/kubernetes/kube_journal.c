/* kube_journal.c - see kube_journal.h. */
#include "kube_journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "store/store_backend.h"

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

bool kube_is_leftover(const char *name, const struct kube_floor *f)
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

const char *kube_part_name(
    char buf[static KUBE_RECORD_NAME_MAX], const char *writer, uint64_t index)
{
    (void)snprintf(buf, KUBE_RECORD_NAME_MAX, "part-%s-%" PRIu64, writer, index);
    return buf;
}

const char *kube_state_name(char buf[static KUBE_RECORD_NAME_MAX], uint64_t next, uint64_t index)
{
    (void)snprintf(buf, KUBE_RECORD_NAME_MAX, "state-%016" PRIu64 "-%" PRIu64, next, index);
    return buf;
}

/* ---- the floor ------------------------------------------------------------------------------- */

char *kube_floor_encode(const struct kube_floor *f)
{
    json_t *json = json_pack("{s:i, s:I, s:I, s:I}", "layout", KUBE_LAYOUT, "first",
        (json_int_t)f->first, "next", (json_int_t)f->next, "parts", (json_int_t)f->parts);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

int kube_floor_decode(struct kube_floor *ret, const char *text, struct err *e)
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
    *ret = (struct kube_floor){
        .first = (uint64_t)first, .next = (uint64_t)next, .parts = (uint64_t)parts};
    return 0;
}

/* ---- commits --------------------------------------------------------------------------------- */

static json_t *op_encode(const struct store_op *op)
{
    json_int_t expect = op->expect == STORE_EXPECT_ANY ? -1 : (json_int_t)op->expect;

    return json_pack("[s, s, I, s, I, b]", op_names[op->kind], op->key, expect,
        op->value ? op->value : "", (json_int_t)op->ttl_seconds, (int)op->is_untold);
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
    int is_untold = 0;
    struct store_op op = {.key = NULL};
    int r = json_unpack(
        (json_t *)json, "[s, s, I, s, I, b]", &kind, &op.key, &expect, &op.value, &ttl, &is_untold);
    size_t k = 0;

    while (r == 0 && k < OP_N && strcmp(kind, op_names[k]) != 0)
        k++;
    if (r != 0 || k == OP_N || expect < -1 || ttl < 0 || ttl > UINT32_MAX ||
        strlen(op.value) > STORE_VALUE_MAX)
        return err_set(e, -EINVAL, "an entry has an operation that no hub has written");
    op.kind = (enum store_op_kind)k;
    op.expect = expect == -1 ? STORE_EXPECT_ANY : (uint64_t)expect;
    op.ttl_seconds = (uint32_t)ttl;
    op.is_untold = is_untold;
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

json_t *kube_item_encode(const struct store_item *item)
{
    return json_pack("[s, s, I, I]", item->key, item->value, (json_int_t)item->revision,
        (json_int_t)item->ttl_seconds);
}

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
