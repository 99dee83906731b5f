/* gpu.c - see gpu.h. */
#include "health/gpu.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "mesh/object/fields.h"

/* GPUs that work less, beside a line that carries more, wait for it. Both in percent. */
#define BUSY_LEAST 80
#define LINE_FULL  90

/* A GPU of which a program has so much memory is in use. */
#define USED_BYTES ((uint64_t)1 << 30)

/* So many samples in a row have to show what may be so by chance in one. */
#define LOOKS 2

/* GPUs, or faults, that a sentence names. */
#define NAMED_MAX 4

#define PERCENT_MAX 100
#define NUMA_MAX    1023
#define XID_MAX     99999

static const char *const driver_names[] = {"absent", "ok", "mismatch", "failed", "silent"};
_Static_assert(sizeof(driver_names) / sizeof(*driver_names) == GPU_DRIVER_N, "a name each");

/* ---- as JSON -------------------------------------------------------------------------------- */

/* Adds a number, unless it is not known. */
static void set_known(json_t *json, const char *name, bool is_known, uint64_t value)
{
    if (is_known)
        (void)json_object_set_new(json, name, json_integer((json_int_t)value));
}

static json_t *encode_gpu(const struct gpu *g)
{
    json_t *xids = json_array();
    json_t *json;

    for (unsigned i = 0; i < g->n_xids; i++)
        (void)json_array_append_new(xids, json_integer((json_int_t)g->xids[i]));
    json = json_pack("{s:s, s:s, s:b, s:I, s:I, s:o}", "bus", g->bus, "name", g->name, "lost",
        (int)g->is_lost, "memoryBytes", (json_int_t)g->memory, "usedBytes",
        (json_int_t)g->memory_used, "xids", xids);
    set_known(json, "use", g->has_use, g->use);
    set_known(json, "uncorrectedErrors", g->has_ecc, g->ecc);
    set_known(json, "numaNode", g->has_numa, g->numa);
    return json;
}

static json_t *encode_line(const struct gpu_line *l)
{
    json_t *json = json_pack("{s:s, s:b}", "name", l->name, "fabric", (int)l->is_fabric);

    set_known(json, "use", l->has_use, l->use);
    set_known(json, "numaNode", l->has_numa, l->numa);
    return json;
}

json_t *gpu_sample_encode(const struct gpu_sample *s)
{
    json_t *gpus = json_array();
    json_t *lines = json_array();

    for (unsigned i = 0; i < s->n_gpus; i++)
        (void)json_array_append_new(gpus, encode_gpu(&s->gpus[i]));
    for (unsigned i = 0; i < s->n_lines; i++)
        (void)json_array_append_new(lines, encode_line(&s->lines[i]));
    return json_pack("{s:s, s:s, s:s, s:I, s:o, s:o}", "driver", driver_names[s->driver], "version",
        s->version, "why", s->why, "milliseconds", (json_int_t)s->ms, "gpus", gpus, "lines", lines);
}

/* A number that may not be known. */
static void read_known(
    struct fields *f, const char *name, uint64_t max, bool *ret_has, uint64_t *ret)
{
    *ret_has = fields_get(f, name, FIELDS_OPTIONAL) != NULL;
    fields_u64(f, name, FIELDS_OPTIONAL, 0, max, ret);
}

static void decode_gpu(struct gpu *ret, const json_t *json, struct fields *all)
{
    struct fields f = fields_make(json, "an entry of \"gpus\"", all->e);
    const json_t *xids;
    uint64_t use = 0;
    uint64_t numa = 0;

    fields_text(&f, "bus", FIELDS_REQUIRED, 1, sizeof(ret->bus), ret->bus);
    fields_text(&f, "name", FIELDS_REQUIRED, 0, sizeof(ret->name), ret->name);
    fields_bool(&f, "lost", FIELDS_REQUIRED, &ret->is_lost);
    fields_u64(&f, "memoryBytes", FIELDS_REQUIRED, 0, INT64_MAX, &ret->memory);
    fields_u64(&f, "usedBytes", FIELDS_REQUIRED, 0, INT64_MAX, &ret->memory_used);
    read_known(&f, "use", PERCENT_MAX, &ret->has_use, &use);
    read_known(&f, "uncorrectedErrors", INT64_MAX, &ret->has_ecc, &ret->ecc);
    read_known(&f, "numaNode", NUMA_MAX, &ret->has_numa, &numa);
    ret->use = (uint32_t)use;
    ret->numa = (uint32_t)numa;
    xids = fields_array(&f, "xids", FIELDS_REQUIRED, 0, GPU_XIDS_MAX);
    for (size_t i = 0; f.failed == 0 && i < json_array_size(xids); i++) {
        const json_t *xid = json_array_get(xids, i);

        if (!json_is_integer(xid) || json_integer_value(xid) < 0 ||
            json_integer_value(xid) > XID_MAX)
            fields_fail(&f, "\"xids\" has an entry that is no number from 0 to %d", XID_MAX);
        else
            ret->xids[ret->n_xids++] = (uint32_t)json_integer_value(xid);
    }
    all->failed = fields_end(&f);
}

static void decode_line(struct gpu_line *ret, const json_t *json, struct fields *all)
{
    struct fields f = fields_make(json, "an entry of \"lines\"", all->e);
    uint64_t use = 0;
    uint64_t numa = 0;

    fields_text(&f, "name", FIELDS_REQUIRED, 1, sizeof(ret->name), ret->name);
    fields_bool(&f, "fabric", FIELDS_REQUIRED, &ret->is_fabric);
    read_known(&f, "use", PERCENT_MAX, &ret->has_use, &use);
    read_known(&f, "numaNode", NUMA_MAX, &ret->has_numa, &numa);
    ret->use = (uint32_t)use;
    ret->numa = (uint32_t)numa;
    all->failed = fields_end(&f);
}

int gpu_sample_decode(struct gpu_sample *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "sample", e);
    struct gpu_sample *s = calloc(1, sizeof(*s));
    unsigned driver = GPU_DRIVER_ABSENT;
    const json_t *gpus;
    const json_t *lines;
    int r;

    if (!s)
        return err_set(e, -ENOMEM, "no memory for a sample of GPUs");
    fields_enum(&f, "driver", FIELDS_REQUIRED, driver_names, GPU_DRIVER_N, &driver);
    s->driver = (enum gpu_driver)driver;
    fields_text(&f, "version", FIELDS_REQUIRED, 0, sizeof(s->version), s->version);
    fields_text(&f, "why", FIELDS_REQUIRED, 0, sizeof(s->why), s->why);
    fields_int(&f, "milliseconds", FIELDS_REQUIRED, 0, GPU_SAMPLE_MS_MAX, &s->ms);
    gpus = fields_array(&f, "gpus", FIELDS_REQUIRED, 0, GPU_MAX);
    lines = fields_array(&f, "lines", FIELDS_REQUIRED, 0, GPU_LINES_MAX);
    for (size_t i = 0; f.failed == 0 && i < json_array_size(gpus); i++)
        decode_gpu(&s->gpus[s->n_gpus++], json_array_get(gpus, i), &f);
    for (size_t i = 0; f.failed == 0 && i < json_array_size(lines); i++)
        decode_line(&s->lines[s->n_lines++], json_array_get(lines, i), &f);
    r = fields_give(&f, ret, s, sizeof(*s));
    free(s);
    return r;
}

/* ---- faults by NVIDIA's numbers ------------------------------------------------------------- */

/*
 * The common ones of NVIDIA's "Xid Errors". A mild one is mostly the program's fault, which it
 * ends, or has mended itself; one that is not listed here counts as mild, too.
 */
static const struct {
    uint32_t xid;
    bool is_mild;
    bool is_memory; /* what the memory counts explains it */
    const char *means;
} faults[] = {
    {13, true, false, "a program's exception"},
    {31, true, false, "a program has used memory that it does not have"},
    {43, true, false, "a program's work was stopped"},
    {45, true, false, "a program's work was removed, after another fault or its end"},
    {48, false, true, "a memory error that cannot be corrected"},
    {61, false, false, "its microcontroller has stopped at a breakpoint"},
    {62, false, false, "its microcontroller has halted"},
    {63, true, true, "a row of its memory was replaced"},
    {64, false, true, "a row of its memory could not be replaced"},
    {69, true, false, "a program's exception"},
    {74, false, false, "an error of NVLink"},
    {79, false, false, "it has fallen off the bus"},
    {92, true, true, "many memory errors that were corrected"},
    {94, true, true, "a memory error that has hit one program alone"},
    {95, false, true, "a memory error that may have hit all programs"},
    {119, false, false, "its system processor does not answer"},
    {120, false, false, "its system processor has failed"},
    {140, false, true, "a memory error that was not recovered from"},
    {143, false, false, "it cannot be initialized"},
};
#define FAULTS_N (sizeof(faults) / sizeof(*faults))

static size_t find_fault(uint32_t xid)
{
    size_t i = 0;

    while (i < FAULTS_N && faults[i].xid != xid)
        i++;
    return i;
}

const char *gpu_xid_means(uint32_t xid)
{
    size_t i = find_fault(xid);

    return i < FAULTS_N ? faults[i].means : NULL;
}

static bool is_mild(uint32_t xid)
{
    size_t i = find_fault(xid);

    return i == FAULTS_N || faults[i].is_mild;
}

static bool is_of_memory(uint32_t xid)
{
    size_t i = find_fault(xid);

    return i < FAULTS_N && faults[i].is_memory;
}

/* Copies a record up to its first newline: what follows are its fields, not its text. */
static void copy_record(char *ret, size_t cap, const char *record, size_t len)
{
    size_t n = 0;

    while (n < len && n + 1 < cap && record[n] != '\n' && record[n] != '\0') {
        ret[n] = record[n];
        n++;
    }
    ret[n] = '\0';
}

/* A number of digits alone: strtoull() takes signs and blanks as well. */
static bool read_number(const char **at, int base, uint64_t max, uint64_t *ret)
{
    char *end;

    if (!isxdigit((unsigned char)**at))
        return false;
    *ret = strtoull(*at, &end, base);
    if (end == *at || *ret > max)
        return false;
    *at = end;
    return true;
}

static bool skip(const char **at, const char *words)
{
    size_t len = strlen(words);

    if (strncmp(*at, words, len) != 0)
        return false;
    *at += len;
    return true;
}

bool gpu_xid_parse(const char *record, size_t len, char ret_bus[static GPU_BUS_MAX],
    uint32_t *ret_xid, uint64_t *ret_us)
{
    char text[512];
    const char *at = text;
    const char *said;
    uint64_t us;
    uint64_t ignored;
    uint64_t domain;
    uint64_t bus;
    uint64_t device;
    uint64_t xid;

    copy_record(text, sizeof(text), record, len);
    said = strstr(text, "NVRM: Xid (");
    if (!said || !read_number(&at, 10, UINT32_MAX, &ignored) || !skip(&at, ",") ||
        !read_number(&at, 10, INT64_MAX, &ignored) || !skip(&at, ",") ||
        !read_number(&at, 10, INT64_MAX, &us))
        return false;
    at = said + strlen("NVRM: Xid (");
    (void)skip(&at, "PCI:");
    if (!read_number(&at, 16, UINT32_MAX, &domain) || !skip(&at, ":") ||
        !read_number(&at, 16, UINT8_MAX, &bus) || !skip(&at, ":") ||
        !read_number(&at, 16, UINT8_MAX, &device) || !skip(&at, "): ") ||
        !read_number(&at, 10, XID_MAX, &xid))
        return false;
    (void)snprintf(
        ret_bus, GPU_BUS_MAX, "%04" PRIx64 ":%02" PRIx64 ":%02" PRIx64 ".0", domain, bus, device);
    *ret_xid = (uint32_t)xid;
    *ret_us = us;
    return true;
}

/* ---- what was seen -------------------------------------------------------------------------- */

static const struct gpu *find_gpu(const struct gpu *gpus, unsigned n, const char *bus)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(gpus[i].bus, bus) == 0)
            return &gpus[i];
    return NULL;
}

static void note_xid(struct gpu_watch *w, const char *bus, uint32_t xid, int64_t at)
{
    unsigned i = 0;

    while (i < w->n_xids && (w->xids[i].xid != xid || strcmp(w->xids[i].bus, bus) != 0))
        i++;
    if (i == GPU_XIDS_KEPT)
        return;
    w->n_xids += i == w->n_xids;
    w->xids[i] = (struct gpu_xid){.xid = xid, .at = at};
    (void)snprintf(w->xids[i].bus, sizeof(w->xids[i].bus), "%s", bus);
}

static void forget_xids(struct gpu_watch *w, int64_t at)
{
    unsigned n = 0;

    for (unsigned i = 0; i < w->n_xids; i++)
        if (at - w->xids[i].at < GPU_XID_FOR_S)
            w->xids[n++] = w->xids[i];
    w->n_xids = n;
}

bool gpu_is_used(const struct gpu *g)
{
    return !g->is_lost && g->has_use && g->memory_used >= USED_BYTES;
}

/* The line that carries most of its rate; NULL: none is known. */
static const struct gpu_line *fullest_line(const struct gpu_sample *s)
{
    const struct gpu_line *fullest = NULL;

    for (unsigned i = 0; i < s->n_lines; i++)
        if (s->lines[i].has_use && (!fullest || s->lines[i].use > fullest->use))
            fullest = &s->lines[i];
    return fullest;
}

/* The mean use of the GPUs that are used, %; false: none is. */
static bool mean_use(const struct gpu_sample *s, uint32_t *ret)
{
    uint32_t sum = 0;
    uint32_t n = 0;

    for (unsigned i = 0; i < s->n_gpus; i++)
        if (gpu_is_used(&s->gpus[i])) {
            sum += s->gpus[i].use;
            n++;
        }
    *ret = n > 0 ? sum / n : 0;
    return n > 0;
}

static bool is_waiting(const struct gpu_sample *s)
{
    const struct gpu_line *line = fullest_line(s);
    uint32_t use;

    return s->driver == GPU_DRIVER_OK && line && line->use >= LINE_FULL && mean_use(s, &use) &&
           use < BUSY_LEAST;
}

static void take_version(struct gpu_watch *w, const char *version, int64_t at)
{
    if (version[0] == '\0')
        return;
    if (w->version[0] != '\0' && strcmp(w->version, version) != 0) {
        memcpy(w->before, w->version, sizeof(w->before));
        w->changed_at = at;
    }
    (void)snprintf(w->version, sizeof(w->version), "%s", version);
}

void gpu_watch_take(struct gpu_watch *w, const struct gpu_sample *sample, int64_t at)
{
    w->now = *sample;
    w->at = at;
    w->n_silent = sample->driver == GPU_DRIVER_SILENT ? w->n_silent + 1 : 0;
    w->n_waiting = is_waiting(sample) ? w->n_waiting + 1 : 0;
    forget_xids(w, at);
    if (sample->driver != GPU_DRIVER_OK)
        return;
    w->was_ok = true;
    take_version(w, sample->version, at);
    for (unsigned i = 0; i < sample->n_gpus; i++) {
        const struct gpu *g = &sample->gpus[i];

        if (w->n_known < GPU_MAX && !find_gpu(w->known, w->n_known, g->bus))
            w->known[w->n_known++] = *g;
        for (unsigned k = 0; k < g->n_xids; k++)
            note_xid(w, g->bus, g->xids[k], at);
    }
}

/* ---- rules ---------------------------------------------------------------------------------- */

struct look {
    const struct gpu_watch *watch;
    const char *name; /* the node's */
    struct findings *set;
    int64_t at;
};

/** What a sentence lists. */
struct list {
    struct str text; /* owns */
    unsigned n;
};

static void list_add(struct list *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void list_add(struct list *l, const char *fmt, ...)
{
    char text[2 * GPU_NAME_MAX];
    va_list args;

    l->n++;
    if (l->n > NAMED_MAX)
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    str_addf(&l->text, "%s%s", l->n > 1 ? ", " : "", text);
}

/* Those that were not listed are counted. */
static const char *list_end(struct list *l)
{
    if (l->n > NAMED_MAX)
        str_addf(&l->text, " and %u more", l->n - NAMED_MAX);
    return str_text(&l->text);
}

static void list_deinit(struct list *l)
{
    str_deinit(&l->text);
}

/* Lists a GPU, as "0000:3b:00.0 (NVIDIA H100)". */
static void list_gpu(struct list *l, const struct gpu *g)
{
    list_add(l, "%s%s%s%s", g->bus, g->name[0] != '\0' ? " (" : "", g->name,
        g->name[0] != '\0' ? ")" : "");
}

/* Return: the GPUs can be looked at one by one. */
static bool look_at_driver(const struct look *l)
{
    const struct gpu_watch *w = l->watch;
    const struct gpu_sample *s = &w->now;

    switch (s->driver) {
    case GPU_DRIVER_OK:
        if (w->before[0] != '\0' && l->at - w->changed_at < GPU_CHANGED_FOR_S)
            (void)findings_add(l->set, FINDING_GPU_DRIVER_CHANGED, l->name, l->at,
                "The driver of the GPUs of %s was changed from version %s to %s while the agent "
                "ran.",
                l->name, w->before, w->version);
        return true;
    case GPU_DRIVER_MISMATCH:
        (void)findings_add(l->set, FINDING_GPU_DRIVER_CHANGED, l->name, l->at,
            "On %s the library of the GPUs' driver is of another version than what the kernel has "
            "loaded, so no new program gets a GPU.",
            l->name);
        return false;
    case GPU_DRIVER_SILENT:
        if (w->n_silent >= LOOKS)
            (void)findings_add(l->set, FINDING_GPU_DRIVER_GONE, l->name, l->at,
                "The driver of the GPUs of %s does not answer: %s.", l->name, s->why);
        return false;
    case GPU_DRIVER_ABSENT:
    case GPU_DRIVER_FAILED:
        if (w->was_ok)
            (void)findings_add(l->set, FINDING_GPU_DRIVER_GONE, l->name, l->at,
                "The driver of the GPUs of %s, version %s, is gone: %s.", l->name, w->version,
                s->why);
        return false;
    case GPU_DRIVER_N:
        break;
    }
    return false;
}

/* Is that GPU lost, or not listed any more? */
static bool is_gone(const struct gpu_sample *s, const char *bus)
{
    const struct gpu *g = find_gpu(s->gpus, s->n_gpus, bus);

    return !g || g->is_lost;
}

static void look_at_lost(const struct look *l)
{
    const struct gpu_watch *w = l->watch;
    struct list gone = {.n = 0};

    for (unsigned i = 0; i < w->n_known; i++)
        if (is_gone(&w->now, w->known[i].bus))
            list_gpu(&gone, &w->known[i]);
    if (gone.n > 0)
        (void)findings_add(l->set, FINDING_GPU_GONE, l->name, l->at,
            "%s of %s %s gone: the driver reaches %s no more.", list_end(&gone), l->name,
            gone.n == 1 ? "is" : "are", gone.n == 1 ? "it" : "them");
    list_deinit(&gone);
}

static void look_at_memory(const struct look *l)
{
    const struct gpu_sample *s = &l->watch->now;
    struct list bad = {.n = 0};

    for (unsigned i = 0; i < s->n_gpus; i++)
        if (s->gpus[i].has_ecc && s->gpus[i].ecc > 0 && !s->gpus[i].is_lost)
            list_add(&bad, "%s (%" PRIu64 ")", s->gpus[i].bus, s->gpus[i].ecc);
    if (bad.n > 0)
        (void)findings_add(l->set, FINDING_GPU_MEMORY, l->name, l->at,
            "GPUs of %s have counted memory errors that cannot be corrected since their driver was "
            "loaded: %s.",
            l->name, list_end(&bad));
    list_deinit(&bad);
}

/* Is a fault explained by what else is found of its GPU? */
static bool is_explained(const struct gpu_watch *w, const struct gpu_xid *x)
{
    const struct gpu *g = find_gpu(w->now.gpus, w->now.n_gpus, x->bus);

    if (w->now.driver != GPU_DRIVER_OK)
        return false;
    return is_gone(&w->now, x->bus) || (g->has_ecc && g->ecc > 0 && is_of_memory(x->xid));
}

static void look_at_faults(const struct look *l, bool mild)
{
    const struct gpu_watch *w = l->watch;
    struct list found = {.n = 0};

    for (unsigned i = 0; i < w->n_xids; i++) {
        const struct gpu_xid *x = &w->xids[i];
        const char *means = gpu_xid_means(x->xid);

        if (is_mild(x->xid) == mild && l->at - x->at < GPU_XID_FOR_S && !is_explained(w, x))
            list_add(&found, "%s Xid %" PRIu32 "%s%s%s", x->bus, x->xid, means ? " (" : "",
                means ? means : "", means ? ")" : "");
    }
    if (found.n > 0)
        (void)findings_add(l->set, mild ? FINDING_GPU_FAULT_MILD : FINDING_GPU_FAULT, l->name,
            l->at, "GPUs of %s have reported faults in the last hour: %s.", l->name,
            list_end(&found));
    list_deinit(&found);
}

/* Of what is said of distances: fabric ports where there are any, and other lines where not. */
static bool counts(const struct gpu_sample *s, const struct gpu_line *line)
{
    bool has_fabric = false;

    for (unsigned i = 0; i < s->n_lines; i++)
        has_fabric |= s->lines[i].is_fabric;
    return line->is_fabric == has_fabric;
}

/* Is no line at the GPU's NUMA node? False where that is not known of each. */
static bool is_far(const struct gpu_sample *s, const struct gpu *g)
{
    unsigned n = 0;

    if (!g->has_numa || g->is_lost)
        return false;
    for (unsigned i = 0; i < s->n_lines; i++) {
        const struct gpu_line *line = &s->lines[i];

        if (!counts(s, line))
            continue;
        if (!line->has_numa || line->numa == g->numa)
            return false;
        n++;
    }
    return n > 0;
}

static void look_at_distance(const struct look *l)
{
    const struct gpu_sample *s = &l->watch->now;
    struct list far = {.n = 0};
    struct list lines = {.n = 0};

    for (unsigned i = 0; i < s->n_gpus; i++)
        if (is_far(s, &s->gpus[i]))
            list_add(&far, "%s (node %" PRIu32 ")", s->gpus[i].bus, s->gpus[i].numa);
    for (unsigned i = 0; i < s->n_lines; i++)
        if (counts(s, &s->lines[i]))
            list_add(&lines, "%s (node %" PRIu32 ")", s->lines[i].name, s->lines[i].numa);
    if (far.n > 0)
        (void)findings_add(l->set, FINDING_GPU_FAR, l->name, l->at,
            "GPUs of %s are at another NUMA node than all its network cards that matter: %s; %s.",
            l->name, list_end(&far), list_end(&lines));
    list_deinit(&far);
    list_deinit(&lines);
}

static void look_at_use(const struct look *l)
{
    const struct gpu_sample *s = &l->watch->now;
    const struct gpu_line *line = fullest_line(s);
    uint32_t use;

    if (l->watch->n_waiting < LOOKS || !line || !mean_use(s, &use))
        return;
    (void)findings_add(l->set, FINDING_GPU_WAITS, l->name, l->at,
        "The GPUs of %s that programs use work %" PRIu32
        " %% of the time, while %s carries %" PRIu32 " %% of its rate.",
        l->name, use, line->name, line->use);
}

void gpu_find(const struct gpu_watch *w, const char *name, struct findings *set, int64_t at)
{
    struct look l = {w, name, set, at};

    if (w->at == 0 || at - w->at > GPU_SAMPLE_FOR_S)
        return;
    if (look_at_driver(&l)) {
        look_at_lost(&l);
        look_at_memory(&l);
        look_at_distance(&l);
        look_at_use(&l);
    }
    look_at_faults(&l, false);
    look_at_faults(&l, true);
}
