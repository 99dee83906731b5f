/* tune_text.c - see tune.h: a plan as JSON and as text, and the files. */
#include "tune/tune.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "mesh/object/fields.h"

/* Room for a device's name and what of it is set: "eth0 ring-rx". */
#define ROW_NAME_MAX 64

/* ---- rows ------------------------------------------------------------------------------------ */

/* A setting of the kernel, or of a device, as it is shown and kept. */
struct row {
    char name[ROW_NAME_MAX];
    const char *now;
    const struct tune_item *item;
};

#define ROWS_MAX (TUNE_SETTING_N + TUNE_DEVICES_MAX * TUNE_KNOB_N)

static void name_knob(char name[static ROW_NAME_MAX], const char *device, unsigned knob)
{
    (void)snprintf(name, ROW_NAME_MAX, "%s %s", device, tune_knob_names[knob]);
}

/* All of a plan; of a device only what it has. Return: how many. */
static size_t list_rows(
    const struct tune_plan *p, const struct tune_facts *f, struct row rows[static ROWS_MAX])
{
    size_t n = 0;

    for (unsigned s = 0; s < TUNE_SETTING_N; s++) {
        rows[n] = (struct row){.now = f->now[s], .item = &p->items[s]};
        (void)snprintf(rows[n++].name, ROW_NAME_MAX, "%s", tune_names[s]);
    }
    for (size_t d = 0; d < f->n_devices; d++)
        for (unsigned k = 0; k < TUNE_KNOB_N; k++) {
            if (f->devices[d].now[k][0] == '\0')
                continue;
            rows[n] = (struct row){.now = f->devices[d].now[k], .item = &p->devices[d][k]};
            name_knob(rows[n++].name, f->devices[d].name, k);
        }
    return n;
}

/* Calls @take for each value that is kept of before. */
static void list_saved(const struct tune_saved *s,
    void (*take)(void *arg, const char *name, const char *before), void *arg)
{
    char name[ROW_NAME_MAX];

    for (unsigned i = 0; i < TUNE_SETTING_N; i++)
        if (s->has[i])
            take(arg, tune_names[i], s->before[i]);
    for (size_t d = 0; d < s->n_devices; d++)
        for (unsigned k = 0; k < TUNE_KNOB_N; k++) {
            if (s->devices[d].now[k][0] == '\0')
                continue;
            name_knob(name, s->devices[d].name, k);
            take(arg, name, s->devices[d].now[k]);
        }
}

/* And for each that is kept for the next boot. */
static void list_wanted(const struct tune_saved *s,
    void (*take)(void *arg, const char *name, const char *wanted), void *arg)
{
    char name[ROW_NAME_MAX];

    for (size_t d = 0; d < s->n_devices; d++)
        for (unsigned k = 0; k < TUNE_KNOB_N; k++) {
            if (s->wanted[d][k][0] == '\0')
                continue;
            name_knob(name, s->devices[d].name, k);
            take(arg, name, s->wanted[d][k]);
        }
}

/* ---- a plan ---------------------------------------------------------------------------------- */

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? json_string(text) : json_null();
}

json_t *tune_encode(const struct tune_plan *p, const struct tune_facts *f)
{
    bool is_known = f->rate_bps > 0 && f->rtt_s > 0;
    json_t *settings = json_array();
    struct row rows[ROWS_MAX];
    size_t n = list_rows(p, f, rows);

    for (size_t i = 0; i < n; i++)
        fields_append(
            &settings, json_pack("{s:s, s:o, s:o, s:b, s:s}", "name", rows[i].name, "now",
                           text_or_null(rows[i].now), "wanted", text_or_null(rows[i].item->wanted),
                           "changes", (int)rows[i].item->changes, "why", rows[i].item->why));
    return json_pack("{s:o, s:o, s:s, s:o}", "rateBitsPerSecond",
        is_known ? json_integer((json_int_t)f->rate_bps) : json_null(), "rttMs",
        is_known ? json_real(f->rtt_s * 1e3) : json_null(), "source", is_known ? f->source : "",
        "settings", settings);
}

static void format_line(const struct tune_facts *f, struct str *out)
{
    if (f->rate_bps <= 0 || f->rtt_s <= 0)
        str_add(out, "The rate and the RTT of this machine's lines are not known.\n\n");
    else
        str_addf(out, "For %.3f Gbit/s with an RTT of %.1f ms, %s.\n\n", f->rate_bps / 1e9,
            f->rtt_s * 1e3, f->source);
}

void tune_format(const struct tune_plan *p, const struct tune_facts *f, struct str *out)
{
    struct table t = {.n_columns = 4};
    struct row rows[ROWS_MAX];
    size_t n = list_rows(p, f, rows);

    format_line(f, out);
    table_add(&t, "NAME");
    table_add(&t, "NOW");
    table_add(&t, "WANTED");
    table_add(&t, "WHY");
    for (size_t i = 0; i < n; i++) {
        table_add(&t, "%s", rows[i].name);
        table_add(&t, "%s", rows[i].now[0] != '\0' ? rows[i].now : "-");
        table_add(&t, "%s", rows[i].item->changes ? rows[i].item->wanted : "-");
        table_add(&t, "%s", rows[i].item->why);
    }
    out->failed |= t.failed;
    table_format(&t, out);
    table_deinit(&t);
}

/* ---- what was there before ------------------------------------------------------------------- */

/* A device's entry, or a new one; NULL: there are too many. */
static struct tune_device *saved_device(struct tune_saved *s, const char *name)
{
    for (size_t d = 0; d < s->n_devices; d++)
        if (strcmp(s->devices[d].name, name) == 0)
            return &s->devices[d];
    if (s->n_devices == TUNE_DEVICES_MAX)
        return NULL;
    s->devices[s->n_devices] = (struct tune_device){.name = ""};
    (void)snprintf(s->devices[s->n_devices].name, IFNAMSIZ, "%s", name);
    return &s->devices[s->n_devices++];
}

/* False: there are too many devices. */
static bool save_device(
    struct tune_saved *s, const struct tune_plan *p, const struct tune_facts *f, size_t device)
{
    struct tune_device *kept = NULL;

    for (unsigned k = 0; k < TUNE_KNOB_N; k++) {
        if (!p->devices[device][k].changes)
            continue;
        kept = saved_device(s, f->devices[device].name);
        if (!kept)
            return false;
        if (kept->now[k][0] == '\0')
            memcpy(kept->now[k], f->devices[device].now[k], sizeof(kept->now[k]));
        (void)snprintf(
            s->wanted[kept - s->devices][k], TUNE_VALUE_MAX, "%s", p->devices[device][k].wanted);
    }
    return true;
}

bool tune_saved_add(struct tune_saved *s, const struct tune_plan *p, const struct tune_facts *f)
{
    for (unsigned i = 0; i < TUNE_SETTING_N; i++) {
        if (!p->items[i].changes || s->has[i])
            continue;
        s->has[i] = true;
        memcpy(s->before[i], f->now[i], sizeof(s->before[i]));
    }
    for (size_t d = 0; d < f->n_devices; d++)
        if (!save_device(s, p, f, d))
            return false;
    return true;
}

static void put_value(void *arg, const char *name, const char *value)
{
    fields_set(arg, name, json_string(value));
}

json_t *tune_saved_encode(const struct tune_saved *s)
{
    json_t *before = json_object();
    json_t *wanted = json_object();

    list_saved(s, put_value, &before);
    list_wanted(s, put_value, &wanted);
    return json_pack("{s:o, s:o}", "before", before, "wanted", wanted);
}

/* Numbers, or the name of a queueing discipline or a congestion control. */
static bool is_value(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_- ");

    return len > 0 && len < TUNE_VALUE_MAX && text[len] == '\0';
}

/* "eth0 ring-rx", and the number of what is set of it. NULL: it is none, or there are too many
 * devices. */
static struct tune_device *take_knob(struct tune_saved *s, const char *name, size_t *knob)
{
    const char *blank = strchr(name, ' ');
    char device[IFNAMSIZ];

    if (!blank || blank == name || (size_t)(blank - name) >= sizeof(device) ||
        memchr(name, '/', (size_t)(blank - name)))
        return NULL;
    (void)snprintf(device, sizeof(device), "%.*s", (int)(blank - name), name);
    *knob = parse_word(blank + 1, tune_knob_names, TUNE_KNOB_N);
    return *knob < TUNE_KNOB_N ? saved_device(s, device) : NULL;
}

/* What is wanted is of what was there before: no more is set than can be restored. */
static int decode_wanted(struct tune_saved *s, const json_t *wanted, struct err *e)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)wanted, name, value) {
        const char *text = json_string_value(value);
        size_t k;
        const struct tune_device *d = take_knob(s, name, &k);

        if (!d || d->now[k][0] == '\0')
            return err_set(e, -EINVAL, "%.80s is to be set, and was nothing before", name);
        if (!text || !is_value(text))
            return err_set(e, -EINVAL, "what %.80s is to be set to is no value of it", name);
        (void)snprintf(s->wanted[d - s->devices][k], TUNE_VALUE_MAX, "%s", text);
    }
    return 0;
}

int tune_saved_decode(struct tune_saved *ret, const json_t *json, struct err *e)
{
    json_t *before = json_object_get(json, "before");
    struct tune_saved s = {.has = {false}};
    size_t n = 0;
    const char *name;
    json_t *value;
    int r;

    json_object_foreach(before, name, value) {
        const char *text = json_string_value(value);
        size_t i = parse_word(name, tune_names, TUNE_SETTING_N);
        struct tune_device *d;
        size_t k;

        if (!text || !is_value(text))
            return err_set(e, -EINVAL, "what is kept of %.80s is no value of it", name);
        if (i < TUNE_SETTING_N) {
            s.has[i] = true;
            (void)snprintf(s.before[i], sizeof(s.before[i]), "%s", text);
        } else {
            d = take_knob(&s, name, &k);
            if (!d)
                return err_set(e, -EINVAL, "%.80s is no setting that is known", name);
            (void)snprintf(d->now[k], sizeof(d->now[k]), "%s", text);
        }
        n++;
    }
    if (n == 0)
        return err_set(e, -EINVAL, "it keeps no setting");
    /* Earlier versions kept none for the next boot. */
    r = decode_wanted(&s, json_object_get(json, "wanted"), e);
    if (r == 0)
        *ret = s;
    return r;
}

static void put_restored(void *arg, const char *name, const char *before)
{
    fields_append(arg, json_pack("{s:s, s:s}", "name", name, "value", before));
}

json_t *tune_restored_encode(const struct tune_saved *s)
{
    json_t *restored = json_array();

    list_saved(s, put_restored, &restored);
    return json_pack("{s:o}", "restored", restored);
}

static void put_line(void *arg, const char *name, const char *before)
{
    str_addf(arg, "%s is %s again\n", name, before);
}

void tune_restored_format(const struct tune_saved *s, struct str *out)
{
    list_saved(s, put_line, out);
}

void tune_boot_format(const struct tune_saved *s, const struct tune_plan *p, struct str *out)
{
    str_add(out, "# Written by weft tune --apply; weft tune --undo removes it.\n");
    for (unsigned i = 0; i < TUNE_SETTING_N; i++)
        if (s->has[i] && p->items[i].wanted[0] != '\0')
            str_addf(out, "%s = %s\n", tune_names[i], p->items[i].wanted);
}
