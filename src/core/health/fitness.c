/* fitness.c - see fitness.h. */
#include "health/fitness.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

const char *const fitness_part_names[] = {"fabric", "nic", "gpu", "disk", "clock", "overlay"};
_Static_assert(
    sizeof(fitness_part_names) / sizeof(*fitness_part_names) == FITNESS_PART_N, "a name each");

const char *const fitness_verdict_names[] = {"not looked at", "ok", "warning", "failed"};
_Static_assert(sizeof(fitness_verdict_names) / sizeof(*fitness_verdict_names) == FITNESS_VERDICT_N,
    "a name each");

/* Which codes are about which part, by how they begin, the longer ones first; and the least
 * severity that fails it. What comes and goes with the load fails nothing: packets that find no
 * room are lost while much is sent. */
static const struct row {
    const char *begins;
    enum fitness_part part;
    enum finding_severity least; /* FINDING_SEVERITY_N: none */
} rows[] = {
    {"WEFT-FABRIC-", FITNESS_FABRIC, FINDING_WARNING},
    {"WEFT-NIC-002", FITNESS_NIC, FINDING_WARNING},
    {"WEFT-NIC-", FITNESS_NIC, FINDING_CRITICAL},
    {"WEFT-GPU-", FITNESS_GPU, FINDING_CRITICAL},
    {"WEFT-DISK-", FITNESS_DISK, FINDING_CRITICAL},
    {"WEFT-STATE-001", FITNESS_DISK, FINDING_CRITICAL},
    {"WEFT-STATE-002", FITNESS_DISK, FINDING_WARNING},
    {"WEFT-CLOCK-", FITNESS_CLOCK, FINDING_WARNING},
    {"WEFT-APPLY-001", FITNESS_OVERLAY, FINDING_CRITICAL},
    {"WEFT-NODE-004", FITNESS_OVERLAY, FINDING_CRITICAL},
    {"WEFT-NODE-005", FITNESS_OVERLAY, FINDING_CRITICAL},
    {"WEFT-LINK-001", FITNESS_OVERLAY, FINDING_CRITICAL},
    {"WEFT-ENGINE-001", FITNESS_OVERLAY, FINDING_CRITICAL},
    {"WEFT-LINE-", FITNESS_OVERLAY, FINDING_SEVERITY_N},
    {"WEFT-UDP-", FITNESS_OVERLAY, FINDING_SEVERITY_N},
};
#define N_ROWS (sizeof(rows) / sizeof(*rows))

/* NULL: it is about no part of a machine, or it is no code: it goes to the hook as it is. */
static const struct row *find_row(const char *code)
{
    if (code[strspn(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")] != '\0')
        return NULL;
    for (size_t i = 0; i < N_ROWS; i++)
        if (strncmp(code, rows[i].begins, strlen(rows[i].begins)) == 0)
            return &rows[i];
    return NULL;
}

/* A severity of another version is at least worth knowing. */
static enum finding_severity severity_of(const char *name)
{
    for (unsigned i = 0; i < FINDING_SEVERITY_N; i++)
        if (strcmp(name, finding_severity_names[i]) == 0)
            return (enum finding_severity)i;
    return FINDING_NOTE;
}

bool fitness_counts(const char *code)
{
    const struct row *row = find_row(code);

    for (unsigned i = 0; row && i < FINDING_CODE_N; i++)
        if (strcmp(finding_kinds[i].code, code) == 0)
            return finding_kinds[i].severity >= row->least;
    return false;
}

static const char *text_of(const json_t *finding, const char *field)
{
    const char *text = json_string_value(json_object_get(finding, field));

    return text ? text : "";
}

static void add_failed(struct fitness *f, const char *code, const char *text)
{
    size_t len = strlen(f->codes);

    if (len + strlen(code) + 2 <= sizeof(f->codes))
        (void)snprintf(f->codes + len, sizeof(f->codes) - len, "%s%s", len > 0 ? "," : "", code);
    if (f->reason[0] != '\0')
        return;
    len = (size_t)snprintf(f->reason, sizeof(f->reason), "%s: ", code);
    if (len < sizeof(f->reason)) {
        size_t n = text_cut(text, strlen(text), sizeof(f->reason) - len - 1);

        /* Sentences of others end with a stop, and this goes on. */
        if (n > 0 && text[n - 1] == '.')
            n--;
        memcpy(f->reason + len, text, n);
        f->reason[len + n] = '\0';
    }
    text_make_plain(f->reason, '?');
}

static void take_one(struct fitness *f, const json_t *finding)
{
    const char *code = text_of(finding, "code");
    const struct row *row = find_row(code);
    enum finding_severity severity = severity_of(text_of(finding, "severity"));
    enum fitness_verdict verdict;

    if (!row || severity == FINDING_NOTE)
        return;
    verdict = severity >= row->least ? FITNESS_FAILED : FITNESS_WARNED;
    if (verdict == FITNESS_FAILED)
        add_failed(f, code, text_of(finding, "text"));
    if (verdict <= f->parts[row->part])
        return;
    f->parts[row->part] = verdict;
    (void)snprintf(
        f->texts[row->part], sizeof(f->texts[0]), "%s: %s", code, text_of(finding, "text"));
    text_make_plain(f->texts[row->part], '?');
}

void fitness_take(struct fitness *ret, const json_t *findings, const char *node)
{
    const json_t *item;
    size_t i;

    *ret = (struct fitness){.codes = ""};
    for (unsigned k = 0; k < FINDING_CODE_N; k++) {
        const struct row *row = find_row(finding_kinds[k].code);

        if (row)
            ret->parts[row->part] = FITNESS_OK;
    }
    json_array_foreach(findings, i, item)
        if (strcmp(text_of(item, "about"), "node") == 0 &&
            strcmp(text_of(item, "subject"), node) == 0)
            take_one(ret, item);
}

enum fitness_verdict fitness_worst(const struct fitness *f)
{
    enum fitness_verdict worst = FITNESS_OK;

    for (unsigned i = 0; i < FITNESS_PART_N; i++)
        worst = f->parts[i] > worst ? f->parts[i] : worst;
    return worst;
}

/* ---- checks in a row ---------------------------------------------------------------------------
 */

static void count_up(uint32_t *n)
{
    *n += *n < UINT32_MAX;
}

void fitness_count_check(struct fitness_count *c, bool has_failed)
{
    count_up(has_failed ? &c->n_failed : &c->n_passed);
    if (has_failed)
        c->n_passed = 0;
    else
        c->n_failed = 0;
}

enum fitness_step fitness_step(const struct fitness_count *c, bool is_drained)
{
    if (c->n_failed >= FITNESS_CHECKS)
        return FITNESS_DRAIN;
    if (c->n_passed >= FITNESS_CHECKS && (is_drained || c->is_hooked))
        return FITNESS_UNDRAIN;
    return c->n_failed == 0 && c->is_reported ? FITNESS_REPORT : FITNESS_REST;
}

json_t *fitness_count_encode(const struct fitness_count *c)
{
    return json_pack("{s:I, s:I, s:b, s:b}", "failed", (json_int_t)c->n_failed, "passed",
        (json_int_t)c->n_passed, "reported", (int)c->is_reported, "hooked", (int)c->is_hooked);
}

static bool take_count(uint32_t *ret, const json_t *json, const char *field)
{
    const json_t *value = json_object_get(json, field);
    json_int_t n = json_integer_value(value);

    *ret = (uint32_t)n;
    return json_is_integer(value) && n >= 0 && n <= UINT32_MAX;
}

bool fitness_count_decode(struct fitness_count *ret, const json_t *json)
{
    struct fitness_count c = {.is_reported = json_is_true(json_object_get(json, "reported")),
        .is_hooked = json_is_true(json_object_get(json, "hooked"))};

    if (!take_count(&c.n_failed, json, "failed") || !take_count(&c.n_passed, json, "passed"))
        return false;
    *ret = c;
    return true;
}

/* ---- how many at once --------------------------------------------------------------------------
 */

bool fitness_share_allows(unsigned percent, size_t n_nodes, size_t n_drained)
{
    return (n_drained + 1) * 100 <= percent * n_nodes;
}
