/* metrics.c - see metrics.h. */
#include "base/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_NAME_MAX 32
#define VALUE_TEXT_MAX 40

static const char *const type_names[] = {"counter", "gauge", "histogram"};

static const struct {
    const char *name;
    enum { COUNTER, GAUGE, HISTOGRAM } type;
    const char *labels; /* "network, path" */
    const char *help;
} rows[METRIC_N] = {
#define X(NAME, name, type, unit, labels, help) [METRIC_##NAME] = {name, type, labels, help},
    METRICS(X)
#undef X
};

/* ---- samples -------------------------------------------------------------------------------- */

/* The next of the names in "network, path"; false at the end. */
static bool next_label(const char **names, char ret[static LABEL_NAME_MAX])
{
    size_t n = 0;

    while (**names == ',' || **names == ' ')
        (*names)++;
    while (**names != '\0' && **names != ',' && n + 1 < LABEL_NAME_MAX)
        ret[n++] = *(*names)++;
    ret[n] = '\0';
    return n > 0;
}

static void add_label(struct str *out, const char *before, const char *name, const char *value)
{
    str_add(out, before);
    str_add(out, name);
    str_add(out, "=\"");
    for (;;) {
        size_t plain = strcspn(value, "\n\"\\");

        str_add_bytes(out, value, plain);
        value += plain;
        if (*value == '\0')
            break;
        str_add(out, "\\");
        str_add_bytes(out, *value == '\n' ? "n" : value, 1);
        value++;
    }
    str_add(out, "\"");
}

/* " 12\n": in as few digits as give the same number again. Most are small and whole, and those are
 * written without that being tried. */
static void format_value(char ret[static VALUE_TEXT_MAX], double value)
{
    if (value >= 0 && value < 1e15 && value == (double)(uint64_t)value) {
        (void)snprintf(ret, VALUE_TEXT_MAX, " %" PRIu64 "\n", (uint64_t)value);
        return;
    }
    (void)snprintf(ret, VALUE_TEXT_MAX, " %.15g\n", value);
    if (strtod(ret, NULL) != value)
        (void)snprintf(ret, VALUE_TEXT_MAX, " %.17g\n", value);
}

/* @le: the bound of a histogram's bucket, or NULL. */
static void add_sample(struct metrics *m, enum metric which, const char *suffix,
    const char *const *labels, const char *le, double value)
{
    struct str *out = &m->samples[which];
    const char *names = rows[which].labels;
    const char *before = "{";
    char name[LABEL_NAME_MAX];
    char text[VALUE_TEXT_MAX];

    str_add(out, rows[which].name);
    str_add(out, suffix);
    for (; next_label(&names, name); before = ",") {
        assert(labels && *labels);
        add_label(out, before, name, *labels++);
    }
    assert(!labels || !*labels);
    if (le)
        add_label(out, before, "le", le);
    if (le || rows[which].labels[0] != '\0')
        str_add(out, "}");
    format_value(text, value);
    str_add(out, text);
}

void metrics_add_labelled(
    struct metrics *m, enum metric which, const char *const *labels, double value)
{
    assert(rows[which].type != HISTOGRAM);
    add_sample(m, which, "", labels, NULL, value);
}

void metrics_add(struct metrics *m, enum metric which, double value)
{
    metrics_add_labelled(m, which, NULL, value);
}

void metrics_add_histogram(struct metrics *m, enum metric which, const char *const *labels,
    const struct metrics_histogram *h)
{
    uint64_t n = 0;
    char bound[32];

    assert(rows[which].type == HISTOGRAM);
    for (size_t i = 0; i < h->n_bounds; i++) {
        n += h->n[i];
        (void)snprintf(bound, sizeof(bound), "%g", h->bounds[i]);
        add_sample(m, which, "_bucket", labels, bound, (double)n);
    }
    n += h->n[h->n_bounds];
    add_sample(m, which, "_bucket", labels, "+Inf", (double)n);
    add_sample(m, which, "_sum", labels, NULL, h->sum);
    add_sample(m, which, "_count", labels, NULL, (double)n);
}

char *metrics_take(struct metrics *m)
{
    struct str out = STR_NULL;

    for (unsigned i = 0; i < METRIC_N; i++) {
        out.failed |= m->samples[i].failed;
        if (m->samples[i].len > 0)
            str_addf(&out, "# HELP %s %s\n# TYPE %s %s\n%s", rows[i].name, rows[i].help,
                rows[i].name, type_names[rows[i].type], str_text(&m->samples[i]));
        str_deinit(&m->samples[i]);
    }
    return str_take(&out, NULL);
}
