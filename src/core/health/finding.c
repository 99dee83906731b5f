/* finding.c - see finding.h. */
#include "health/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/text.h"

const char *const finding_severity_names[] = {"note", "warning", "critical"};
_Static_assert(
    sizeof(finding_severity_names) / sizeof(*finding_severity_names) == FINDING_SEVERITY_N,
    "a name each");

const struct finding_kind finding_kinds[] = {
#define X(id, code, subject, severity, title, means, fix, provoke)                                 \
    [FINDING_##id] = {code, FINDING_OF_##subject, FINDING_##severity, title, means, fix, provoke},
    FINDING_CODES(X)
#undef X
};

const char *finding_name_pair(char buf[static FINDING_SUBJECT_MAX], const char *a, const char *b)
{
    bool is_sorted = strcmp(a, b) <= 0;

    (void)snprintf(buf, FINDING_SUBJECT_MAX, "%.63s--%.63s", is_sorted ? a : b, is_sorted ? b : a);
    return buf;
}

/* ---- the set -------------------------------------------------------------------------------- */

struct wanted {
    const char *subject;
    enum finding_code code;
};

static int compare_key(const void *item, const void *wanted)
{
    const struct finding *const *f = item;
    const struct wanted *w = wanted;
    int r = strcmp((*f)->subject, w->subject);

    return r != 0 ? r : ((*f)->code > w->code) - ((*f)->code < w->code);
}

static size_t place_of(
    const struct findings *f, enum finding_code code, const char *subject, bool *ret_found)
{
    *ret_found = false;
    return sorted_place(f->items, f->n, sizeof(struct finding *), compare_key,
        &(struct wanted){subject, code}, ret_found);
}

/* The first finding of @subject, or where it belongs. */
static size_t first_of(const struct findings *f, const char *subject)
{
    bool found;

    return place_of(f, (enum finding_code)0, subject, &found);
}

/* @subject: NULL: any. */
static bool is_of(const struct findings *f, size_t i, const char *subject)
{
    return i < f->n && (!subject || strcmp(f->items[i]->subject, subject) == 0);
}

void findings_deinit(struct findings *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->items[i]);
    free(f->items);
    *f = (struct findings){.n = 0};
}

const struct finding *findings_find(
    const struct findings *f, enum finding_code code, const char *subject)
{
    bool found;
    size_t i = place_of(f, code, subject, &found);

    return found ? f->items[i] : NULL;
}

bool findings_has(const struct findings *f, const char *subject, enum finding_severity least)
{
    for (size_t i = first_of(f, subject); is_of(f, i, subject); i++)
        if (finding_kinds[f->items[i]->code].severity >= least)
            return true;
    return false;
}

bool findings_are_alike(const struct findings *a, const struct findings *b)
{
    for (size_t i = 0; i < a->n && i < b->n; i++)
        if (a->items[i]->code != b->items[i]->code ||
            strcmp(a->items[i]->subject, b->items[i]->subject) != 0)
            return false;
    return a->n == b->n;
}

void findings_look(struct findings *f, const char *subject)
{
    for (size_t i = subject ? first_of(f, subject) : 0; is_of(f, i, subject); i++)
        f->items[i]->is_old = true;
}

void findings_look_as(struct findings *f, enum finding_subject about, const char *subject)
{
    for (size_t i = first_of(f, subject); is_of(f, i, subject); i++)
        if (finding_kinds[f->items[i]->code].subject == about)
            f->items[i]->is_old = true;
}

/* A new finding in its place; NULL: no room or no memory. */
static struct finding *insert(struct findings *f, size_t place)
{
    struct finding **items;
    struct finding *item;

    if (f->n >= FINDINGS_MAX)
        return NULL;
    item = calloc(1, sizeof(*item));
    items = item ? sorted_open(f->items, f->n, sizeof(*items), place, &f->cap) : NULL;
    if (!items) {
        free(item);
        return NULL;
    }
    f->items = items;
    f->items[place] = item;
    f->n++;
    return item;
}

struct finding *findings_add(struct findings *f, enum finding_code code, const char *subject,
    int64_t at, const char *fmt, ...)
{
    bool found;
    size_t place = place_of(f, code, subject, &found);
    struct finding *item = found ? f->items[place] : insert(f, place);
    va_list args;

    if (!item) {
        f->n_left_out++;
        return NULL;
    }
    if (!found) {
        item->code = code;
        item->since = at;
        item->is_new = true;
        (void)snprintf(item->subject, sizeof(item->subject), "%s", subject);
    }
    item->is_old = false;
    va_start(args, fmt);
    (void)vsnprintf(item->text, sizeof(item->text), fmt, args);
    va_end(args);
    text_make_plain(item->text, '?');
    finding_set_fix(item, "%s", finding_kinds[code].fix);
    return item;
}

void finding_set_fix(struct finding *f, const char *fmt, ...)
{
    va_list args;

    if (!f)
        return;
    va_start(args, fmt);
    (void)vsnprintf(f->fix, sizeof(f->fix), fmt, args);
    va_end(args);
    text_make_plain(f->fix, '?');
}

/* Of those from @begin to before @end, what is old is forgotten. */
static void settle(
    struct findings *f, size_t begin, size_t end, finding_changed_fn changed, void *arg)
{
    size_t kept = begin;

    for (size_t i = begin; i < end; i++) {
        struct finding *item = f->items[i];

        if (changed && (item->is_new || item->is_old))
            changed(arg, item, item->is_old);
        item->is_new = false;
        if (!item->is_old) {
            f->items[kept++] = item;
            continue;
        }
        free(item);
    }
    if (kept == end)
        return;
    memmove(&f->items[kept], &f->items[end], (f->n - end) * sizeof(*f->items));
    f->n -= end - kept;
}

void findings_done(struct findings *f, const char *subject, finding_changed_fn changed, void *arg)
{
    size_t begin = subject ? first_of(f, subject) : 0;
    size_t end = begin;

    while (is_of(f, end, subject))
        end++;
    settle(f, begin, end, changed, arg);
}

static bool is_about(const struct finding *f, unsigned kinds)
{
    return (kinds & 1u << finding_kinds[f->code].subject) != 0;
}

void findings_take(struct findings *f, const struct findings *from, unsigned kinds,
    finding_changed_fn changed, void *arg)
{
    for (size_t i = 0; i < f->n; i++)
        if (is_about(f->items[i], kinds))
            f->items[i]->is_old = true;
    for (size_t i = 0; from && i < from->n; i++) {
        const struct finding *theirs = from->items[i];

        if (is_about(theirs, kinds))
            finding_set_fix(
                findings_add(f, theirs->code, theirs->subject, theirs->since, "%s", theirs->text),
                "%s", theirs->fix);
    }
    findings_done(f, NULL, changed, arg);
}

/* ---- as JSON -------------------------------------------------------------------------------- */

static const char *const subject_names[] = {"hub", "node", "pair", "way", "job", "rank", "budget"};
_Static_assert(sizeof(subject_names) / sizeof(*subject_names) == FINDING_SUBJECT_N, "a name each");

json_t *finding_encode(const struct finding *f, int64_t at)
{
    const struct finding_kind *kind = &finding_kinds[f->code];

    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:s}", "code", kind->code,
        "severity", finding_severity_names[kind->severity], "about", subject_names[kind->subject],
        "subject", f->subject, "title", kind->title, "since", (json_int_t)f->since, "forSeconds",
        (json_int_t)(at > f->since ? at - f->since : 0), "text", f->text, "fix", f->fix);
}

/* The gravest first, then the oldest; what is left goes by name, so that lists can be compared. */
static int compare_shown(const void *a, const void *b)
{
    const struct finding *const *x = a;
    const struct finding *const *y = b;
    enum finding_severity sx = finding_kinds[(*x)->code].severity;
    enum finding_severity sy = finding_kinds[(*y)->code].severity;
    int r = (sx < sy) - (sx > sy);

    if (r == 0)
        r = ((*x)->since > (*y)->since) - ((*x)->since < (*y)->since);
    return r != 0 ? r : strcmp((*x)->subject, (*y)->subject);
}

const struct finding **findings_sorted(const struct findings *f)
{
    const struct finding **sorted = calloc(f->n + 1, sizeof(*sorted));

    if (sorted && f->n > 0) {
        memcpy(sorted, f->items, f->n * sizeof(*sorted));
        qsort(sorted, f->n, sizeof(*sorted), compare_shown);
    }
    return sorted;
}

json_t *findings_encode(const struct findings *f, int64_t at)
{
    _cleanup_(freep) const struct finding **sorted = findings_sorted(f);
    json_t *list = sorted ? json_array() : NULL;

    for (size_t i = 0; list && i < f->n; i++)
        (void)json_array_append_new(list, finding_encode(sorted[i], at));
    return json_pack("{s:o, s:I}", "findings", list, "leftOut", (json_int_t)f->n_left_out);
}

int findings_worst(const struct findings *f)
{
    int worst = 0;

    for (size_t i = 0; i < f->n; i++) {
        int severity = (int)finding_kinds[f->items[i]->code].severity;

        worst = severity > worst ? severity : worst;
    }
    return worst;
}
