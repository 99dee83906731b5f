/* top_model.c - see top_model.h. */
#include "top_model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/text.h"
#include "top/top_rates.h"

const struct top_pane_kind top_panes[TOP_PANE_N] = {
    [TOP_NODES] = {.name = "NODES",
        .key = 'n',
        .empty = "no node yet",
        .columns = {{"NODE"}, {"STATE"}, {"IN", true}, {"OUT", true}, {"CPU", true},
            {"FINDINGS", true}, {"ADDRESS"}},
        .n_columns = 7},
    [TOP_PAIRS] = {.name = "PAIRS",
        .key = 'p',
        .empty = "nobody says anything of a pair",
        .columns = {{"PAIR A--B"}, {"PATH"}, {"RTT", true}, {"LOSS>", true}, {"LOSS<", true},
            {"RATE>", true}, {"RATE<", true}, {"SINCE", true}, {"WHY"}},
        .n_columns = 9},
    [TOP_JOBS] = {.name = "JOBS",
        .key = 'J',
        .empty = "no job runs",
        .columns = {{"JOB"}, {"STATE"}, {"NODES", true}, {"STEP", true}, {"STEP TIME", true},
            {"RATE", true}, {"USUAL", true}, {"HELD UP BY"}},
        .n_columns = 8},
    [TOP_FINDINGS] = {.name = "FINDINGS",
        .key = 'f',
        .empty = "nothing is wrong that is known",
        .columns = {{"SEVERITY"}, {"CODE"}, {"SUBJECT"}, {"FOR", true}, {"WHAT"}},
        .n_columns = 5},
};

/* ---- text ------------------------------------------------------------------------------------ */

char *top_plain(const char *text)
{
    static const char digits[] = "0123456789abcdef";
    size_t len = strlen(text);
    char *ret = malloc(4 * len + 1);
    char *p = ret;

    for (size_t i = 0, n; ret && i < len; i += n) {
        enum text_kind kind;

        n = text_next(text + i, len - i, &kind);
        if (kind == TEXT_KIND_PLAIN) {
            *p++ = '?';
            if (n == 1)
                p[-1] = text[i];
            continue;
        }
        for (size_t k = 0; k < n; k++) {
            *p++ = '\\';
            *p++ = 'x';
            *p++ = digits[(unsigned char)text[i + k] >> 4];
            *p++ = digits[(unsigned char)text[i + k] & 15];
        }
    }
    if (ret)
        *p = '\0';
    return ret;
}

static const char *text_of(const json_t *obj, const char *field, const char *instead)
{
    const char *text = json_string_value(json_object_get(obj, field));

    return text && text[0] != '\0' ? text : instead;
}

/* NAN: it is no number, or not there. */
static double number_of(const json_t *obj, const char *field)
{
    const json_t *v = json_object_get(obj, field);

    return json_is_number(v) ? json_number_value(v) : NAN;
}

const char *top_format_rate(double v, char buf[static TOP_CELL_MAX])
{
    static const char *const units[] = {"B/s", "kB/s", "MB/s", "GB/s"};
    unsigned unit = 0;

    if (!(v >= 0)) {
        (void)snprintf(buf, TOP_CELL_MAX, "-");
        return buf;
    }
    /* What would be rounded to four digits is of the next unit. */
    for (; v >= 999.5 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
        v /= 1000;
    (void)snprintf(buf, TOP_CELL_MAX, unit > 0 && v < 99.95 ? "%.1f %s" : "%.0f %s",
        v < 1e9 ? v : 1e9, units[unit]);
    return buf;
}

const char *top_format_span(double v, char buf[static TOP_CELL_MAX])
{
    long long s = v >= 0 ? (long long)(v < 1e12 ? v : 1e12) : -1;

    if (s < 0)
        (void)snprintf(buf, TOP_CELL_MAX, "-");
    else if (s < 120)
        (void)snprintf(buf, TOP_CELL_MAX, "%lld s", s);
    else if (s < 120 * 60)
        (void)snprintf(buf, TOP_CELL_MAX, "%lld min", s / 60);
    else if (s < 48 * 3600)
        (void)snprintf(buf, TOP_CELL_MAX, "%lld h", s / 3600);
    else
        (void)snprintf(buf, TOP_CELL_MAX, "%lld d", s / 86400);
    return buf;
}

static const char *format_ms(double v, char buf[static TOP_CELL_MAX])
{
    if (!(v >= 0))
        (void)snprintf(buf, TOP_CELL_MAX, "-");
    else if (v < 9999.5)
        (void)snprintf(buf, TOP_CELL_MAX, v < 99.95 ? "%.1f ms" : "%.0f ms", v);
    else
        (void)snprintf(buf, TOP_CELL_MAX, "%.0f s", v < 1e12 ? v / 1000 : 1e9);
    return buf;
}

/* @v: 0 to 1 */
static const char *format_share(double v, char buf[static TOP_CELL_MAX])
{
    if (!(v >= 0 && v <= 1))
        (void)snprintf(buf, TOP_CELL_MAX, "-");
    else if (v == 0)
        (void)snprintf(buf, TOP_CELL_MAX, "0 %%");
    else
        (void)snprintf(buf, TOP_CELL_MAX, v < 0.001 ? "%.3f %%" : "%.1f %%", v * 100);
    return buf;
}

static const char *format_count(double v, char buf[static TOP_CELL_MAX])
{
    if (!(v >= 0))
        (void)snprintf(buf, TOP_CELL_MAX, "-");
    else
        (void)snprintf(buf, TOP_CELL_MAX, "%.0f", v < 1e15 ? v : 1e15);
    return buf;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void row_deinit(struct top_row *row)
{
    for (unsigned i = 0; i < TOP_COLUMNS_MAX; i++)
        free(row->cells[i]);
    free(row->note);
}

void top_model_deinit(struct top_model *m)
{
    for (unsigned pane = 0; pane < TOP_PANE_N; pane++) {
        for (size_t i = 0; i < m->panes[pane].n; i++)
            row_deinit(&m->panes[pane].items[i]);
        free(m->panes[pane].items);
    }
    free(m->title);
    *m = (struct top_model)TOP_MODEL_NULL;
}

/* A row in the making. */
struct row_maker {
    struct top_model *m;
    struct top_row row;
    unsigned n_cells;
    struct str note;
};

static struct row_maker begin_row(struct top_model *m, const char *key)
{
    struct row_maker k = {.m = m, .note = STR_NULL};

    (void)snprintf(k.row.key, sizeof(k.row.key), "%s", key);
    for (unsigned i = 0; i < TOP_COLUMNS_MAX; i++)
        k.row.numbers[i] = NAN;
    return k;
}

static void add_text(struct row_maker *k, const char *text)
{
    k->row.cells[k->n_cells++] = top_plain(text);
}

static void add_figure(
    struct row_maker *k, double v, const char *(*format)(double v, char buf[static TOP_CELL_MAX]))
{
    char buf[TOP_CELL_MAX];

    k->row.numbers[k->n_cells] = v;
    add_text(k, format(v, buf));
}

/* A line of the note. */
__attribute__((format(printf, 2, 3))) static void add_note(
    struct row_maker *k, const char *fmt, ...)
{
    struct str line = STR_NULL;
    char *plain;
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    plain = top_plain(text);
    str_addf(&line, "%s%s", k->note.len > 0 ? "\n" : "", plain ? plain : "");
    str_add(&k->note, str_text(&line));
    str_deinit(&line);
    free(plain);
}

static void set_mark(struct row_maker *k, enum top_mark mark)
{
    if (mark > k->row.mark)
        k->row.mark = mark;
}

static void end_row(struct row_maker *k, enum top_pane pane)
{
    struct top_rows *rows = &k->m->panes[pane];
    struct top_row *items = sorted_open(rows->items, rows->n, sizeof(*items), rows->n, &rows->cap);
    bool is_whole = items != NULL;

    k->row.note = k->note.failed ? NULL : strdup(str_text(&k->note));
    str_deinit(&k->note);
    is_whole &= k->row.note != NULL;
    for (unsigned i = 0; i < k->n_cells; i++)
        is_whole &= k->row.cells[i] != NULL;
    if (items)
        rows->items = items;
    if (is_whole)
        items[rows->n++] = k->row;
    else
        row_deinit(&k->row);
    k->m->failed |= !is_whole;
}

/* ---- findings -------------------------------------------------------------------------------- */

static enum finding_severity severity_of(const json_t *finding)
{
    const char *name = text_of(finding, "severity", "");

    for (unsigned i = 0; i < FINDING_SEVERITY_N; i++)
        if (strcmp(name, finding_severity_names[i]) == 0)
            return (enum finding_severity)i;
    return FINDING_NOTE;
}

static enum top_mark mark_of(const json_t *finding)
{
    static const enum top_mark marks[] = {
        [FINDING_NOTE] = TOP_MARK_NONE,
        [FINDING_WARNING] = TOP_MARK_WARNING,
        [FINDING_CRITICAL] = TOP_MARK_CRITICAL,
    };

    return marks[severity_of(finding)];
}

/* Two lines: what, and what to do. */
static void note_finding(struct row_maker *k, const json_t *finding)
{
    add_note(k, "%s %s %s: %s", text_of(finding, "severity", "?"), text_of(finding, "code", "?"),
        text_of(finding, "subject", "?"), text_of(finding, "text", "?"));
    add_note(k, "-> %s", text_of(finding, "fix", "?"));
}

static void add_findings(struct top_model *m, const json_t *findings)
{
    const json_t *f;
    size_t i;

    json_array_foreach(findings, i, f) {
        char key[TOP_KEY_MAX];
        struct row_maker k;

        (void)snprintf(
            key, sizeof(key), "%s %s", text_of(f, "code", "?"), text_of(f, "subject", "?"));
        k = begin_row(m, key);
        add_text(&k, text_of(f, "severity", "?"));
        add_text(&k, text_of(f, "code", "?"));
        add_text(&k, text_of(f, "subject", "?"));
        add_figure(&k, number_of(f, "forSeconds"), top_format_span);
        add_text(&k, text_of(f, "text", text_of(f, "title", "?")));
        note_finding(&k, f);
        set_mark(&k, mark_of(f));
        m->severities[severity_of(f)]++;
        end_row(&k, TOP_FINDINGS);
    }
}

/* Is @subject the node itself, or a pair, a way or a part of a job with it? */
static bool is_with(const char *subject, const char *node)
{
    size_t len = strlen(node);
    size_t all = strlen(subject);
    const char *end = subject + all - (all < len ? 0 : len);

    if (strcmp(subject, node) == 0)
        return true;
    if (strncmp(subject, node, len) == 0 &&
        (subject[len] == '>' || strncmp(subject + len, "--", 2) == 0))
        return true;
    return all > len && strcmp(end, node) == 0 &&
           (end[-1] == '>' || end[-1] == '/' || (all > len + 1 && strncmp(end - 2, "--", 2) == 0));
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* How many findings are about it or its pairs; those about itself are noted. NAN: not known. */
static double note_findings_of(struct row_maker *k, const json_t *findings, const char *node)
{
    const json_t *f;
    double n = 0;
    size_t i;

    json_array_foreach(findings, i, f) {
        const char *subject = text_of(f, "subject", "");

        n += is_with(subject, node);
        if (strcmp(subject, node) != 0)
            continue;
        note_finding(k, f);
        set_mark(k, mark_of(f));
    }
    return json_is_array(findings) ? n : NAN;
}

/* What all kinds of nodes have behind their name and state. */
static void end_node(struct row_maker *k, const struct top_answers *a, const json_t *findings,
    const char *name, bool is_there, double cpu, const char *address)
{
    double sent = NAN;
    double received = NAN;

    if (is_there)
        top_rates_of_node(a->rates, name, &sent, &received);
    add_figure(k, received, top_format_rate);
    add_figure(k, sent, top_format_rate);
    add_figure(k, is_there ? cpu / 100 : NAN, format_share);
    add_figure(k, note_findings_of(k, findings, name), format_count);
    add_text(k, address);
    end_row(k, TOP_NODES);
}

static void add_node(struct top_model *m, const struct top_answers *a, const json_t *node)
{
    const json_t *spec = json_object_get(node, "spec");
    const char *name = text_of(json_object_get(node, "metadata"), "name", "?");
    bool is_there = json_is_true(json_object_get(node, "reachable"));
    bool is_stock = json_is_true(json_object_get(spec, "stock"));
    struct row_maker k = begin_row(m, name);

    add_text(&k, name);
    if (json_is_object(json_object_get(spec, "hub")))
        add_text(&k, is_there ? "hub" : "hub, down");
    else if (is_there)
        add_text(&k, "up");
    else
        add_text(&k, is_stock ? "away" : "down");
    m->n_up += is_there;
    /* A machine without an agent may be switched off, and that is nobody's affair. */
    m->n_down += !is_there && !is_stock;
    end_node(&k, a, json_object_get(a->findings, "findings"), name, is_there,
        number_of(node, "cpuPercent"), text_of(spec, "address4", ""));
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* The part of one end; NULL: it says nothing, or that is old. */
static const json_t *part_of(const json_t *edge, size_t end, const char *owner)
{
    const json_t *nodes = json_object_get(edge, "nodes");
    const char *node = json_string_value(json_array_get(nodes, end));
    const json_t *part;
    char field[96];

    (void)snprintf(field, sizeof(field), "%s/%.63s", owner, node ? node : "");
    part = json_object_get(json_object_get(edge, "status"), field);
    return json_is_true(json_object_get(part, "stale")) ? NULL : part;
}

static double loss_of(const json_t *part)
{
    const json_t *loss = json_object_get(part, "lossIn");
    double packets = number_of(loss, "packets");

    return packets > 0 ? number_of(loss, "lost") / packets : NAN;
}

/* By the probe of either end; else by the pings of either agent. */
static double rtt_of(const json_t *edge)
{
    for (size_t i = 0; i < 4; i++) {
        const json_t *part = part_of(edge, i % 2, i < 2 ? "probe" : "agent");
        double ms = i < 2 ? number_of(part, "tunnelRttMs")
                          : number_of(json_object_get(part, "rtt"), "p50Ms");

        if (!isnan(ms))
            return ms;
    }
    return NAN;
}

/* Do packets go between the two? Of others nothing is measured now. */
static bool has_path(const char *state)
{
    static const char *const states[] = {"lan", "direct", "relay", "stream", "fell-back"};

    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
        if (strcmp(state, states[i]) == 0)
            return true;
    return false;
}

/* Those about the pair and its two directions. */
static void note_findings_between(
    struct row_maker *k, const json_t *findings, const char *a, const char *b)
{
    const json_t *f;
    size_t i;

    json_array_foreach(findings, i, f) {
        const char *subject = text_of(f, "subject", "");
        const char *about = text_of(f, "about", "");

        if ((strcmp(about, "pair") != 0 && strcmp(about, "way") != 0) || !is_with(subject, a) ||
            !is_with(subject, b))
            continue;
        note_finding(k, f);
        set_mark(k, mark_of(f));
    }
}

/* What is known of a pair, whoever says it. */
struct pair_figures {
    const char *a; /* their names, in byte order */
    const char *b;
    const char *path;
    const char *why;
    double rtt_ms;
    double loss[2]; /* a to b, b to a */
    double since_s;
    bool is_there; /* the figures are of now */
    bool is_trouble;
};

static void add_pair(struct top_model *m, const struct top_answers *a, const json_t *findings,
    const struct pair_figures *p)
{
    char key[TOP_KEY_MAX];
    struct row_maker k;

    (void)snprintf(key, sizeof(key), "%.63s--%.63s", p->a, p->b);
    k = begin_row(m, key);
    add_text(&k, key);
    add_text(&k, p->path);
    add_figure(&k, p->is_there ? p->rtt_ms : NAN, format_ms);
    add_figure(&k, p->is_there ? p->loss[0] : NAN, format_share);
    add_figure(&k, p->is_there ? p->loss[1] : NAN, format_share);
    add_figure(&k, p->is_there ? top_rates_find(a->rates, p->a, p->b) : NAN, top_format_rate);
    add_figure(&k, p->is_there ? top_rates_find(a->rates, p->b, p->a) : NAN, top_format_rate);
    add_figure(&k, p->since_s, top_format_span);
    add_text(&k, p->why);
    if (p->why[0] != '\0')
        add_note(&k, "%s", p->why);
    set_mark(&k, p->is_trouble ? TOP_MARK_WARNING : TOP_MARK_NONE);
    note_findings_between(&k, findings, p->a, p->b);
    end_row(&k, TOP_PAIRS);
}

static void add_edge(struct top_model *m, const struct top_answers *a, const json_t *edge)
{
    const json_t *nodes = json_object_get(edge, "nodes");
    const char *first = json_string_value(json_array_get(nodes, 0));
    const char *second = json_string_value(json_array_get(nodes, 1));
    const char *state = text_of(edge, "state", "?");

    add_pair(m, a, json_object_get(a->findings, "findings"),
        &(struct pair_figures){.a = first ? first : "?",
            .b = second ? second : "?",
            .path = state,
            .why = text_of(edge, "why", ""),
            .rtt_ms = rtt_of(edge),
            .loss = {loss_of(part_of(edge, 1, "agent")), loss_of(part_of(edge, 0, "agent"))},
            .since_s = number_of(edge, "forSeconds"),
            .is_there = has_path(state),
            .is_trouble = json_is_true(json_object_get(edge, "trouble"))});
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* The gravest of what holds it up, and whether it is stuck. */
static const char *job_state(const json_t *held, size_t n_present, enum top_mark *ret_mark)
{
    const json_t *f;
    size_t i;

    *ret_mark = TOP_MARK_NONE;
    json_array_foreach(held, i, f) {
        *ret_mark = TOP_MARK_CRITICAL;
        if (strcmp(text_of(f, "about", ""), "job") == 0)
            return "stuck";
    }
    return *ret_mark != TOP_MARK_NONE ? "held up" : n_present > 0 ? "runs" : "nobody";
}

static void add_job(struct top_model *m, const json_t *job)
{
    const json_t *held = json_object_get(job, "heldUpBy");
    const json_t *present = json_object_get(job, "present");
    const json_t *nodes = present ? present : json_object_get(job, "nodes");
    const char *name = text_of(job, "job", "?");
    double steps = number_of(job, "stepsPerSecond");
    struct row_maker k = begin_row(m, name);
    const json_t *f;
    enum top_mark mark;
    size_t i;

    add_text(&k, name);
    add_text(&k, job_state(held, json_array_size(nodes), &mark));
    add_figure(&k, json_is_array(nodes) ? (double)json_array_size(nodes) : NAN, format_count);
    add_figure(&k, number_of(job, "step"), format_count);
    add_figure(&k, steps > 0 ? 1000 / steps : NAN, format_ms);
    add_figure(&k, number_of(job, "bytesPerSecond"), top_format_rate);
    add_figure(&k, number_of(job, "usualBytesPerSecond"), top_format_rate);
    add_text(&k, text_of(json_array_get(held, 0), "text", "-"));
    json_array_foreach(held, i, f)
        note_finding(&k, f);
    set_mark(&k, mark);
    end_row(&k, TOP_JOBS);
}

/* ---- from a hub ------------------------------------------------------------------------------ */

static void set_title(struct top_model *m, const char *network, const char *what, const char *who)
{
    struct str title = STR_NULL;
    char *text;

    str_addf(&title, "network %s, %s %s", network, what, who);
    text = str_take(&title, NULL);
    m->title = text ? top_plain(text) : NULL;
    free(text);
}

static void make_of_hub(struct top_model *m, const struct top_answers *a)
{
    json_int_t left_out = json_integer_value(json_object_get(a->edges, "leftOut"));
    const char *hub = NULL;
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(a->nodes, "nodes"), i, item) {
        if (!hub && json_is_object(json_object_get(json_object_get(item, "spec"), "hub")))
            hub = text_of(json_object_get(item, "metadata"), "name", NULL);
        add_node(m, a, item);
    }
    json_array_foreach(json_object_get(a->edges, "edges"), i, item)
        add_edge(m, a, item);
    m->n_left_out = left_out > 0 ? (size_t)left_out : 0;
    add_findings(m, json_object_get(a->findings, "findings"));
    set_title(m, a->network, "hub", hub ? hub : "?");
}

/* ---- from an agent --------------------------------------------------------------------------- */

/* A node may be silent though it has a path: what it is sent has no answer. */
static bool answers(const json_t *peer)
{
    return strcmp(text_of(peer, "path", "none"), "none") != 0 &&
           !json_is_integer(json_object_get(peer, "silentSeconds"));
}

static void add_peer_node(struct top_model *m, const struct top_answers *a, const json_t *peer)
{
    const char *name = text_of(peer, "name", "?");
    struct row_maker k = begin_row(m, name);
    bool is_there = answers(peer);
    char span[TOP_CELL_MAX];
    char state[40];

    (void)snprintf(
        state, sizeof(state), "silent %s", top_format_span(number_of(peer, "silentSeconds"), span));
    add_text(&k, name);
    add_text(&k, is_there                                                  ? "up"
                 : json_is_integer(json_object_get(peer, "silentSeconds")) ? state
                                                                           : "not reached");
    m->n_up += is_there;
    m->n_down += !is_there && !json_is_true(json_object_get(peer, "stock"));
    end_node(&k, a, json_object_get(a->status, "findings"), name, is_there, NAN,
        text_of(peer, "address4", ""));
}

static void add_peer_pair(
    struct top_model *m, const struct top_answers *a, const char *self, const json_t *peer)
{
    const char *name = text_of(peer, "name", "?");
    bool is_first = strcmp(self, name) < 0;
    double loss_in = number_of(json_object_get(peer, "lossIn"), "share");

    add_pair(m, a, json_object_get(a->status, "findings"),
        &(struct pair_figures){.a = is_first ? self : name,
            .b = is_first ? name : self,
            .path = text_of(peer, "path", "?"),
            .why = text_of(peer, "why", ""),
            .rtt_ms = number_of(peer, "rttMs"),
            .loss = {is_first ? NAN : loss_in, is_first ? loss_in : NAN},
            .since_s = number_of(peer, "sinceSeconds"),
            .is_there = answers(peer),
            .is_trouble = json_is_true(json_object_get(peer, "alarm"))});
}

static void make_of_agent(struct top_model *m, const struct top_answers *a)
{
    const json_t *self = json_object_get(a->status, "self");
    const json_t *hub = json_object_get(a->status, "hub");
    const json_t *peers = json_object_get(a->status, "peers");
    const json_t *findings = json_object_get(a->status, "findings");
    const char *name = text_of(self, "name", "?");
    struct row_maker k = begin_row(m, name);
    const json_t *peer;
    size_t i;

    add_text(&k, name);
    add_text(&k, "this node");
    m->n_up++;
    end_node(
        &k, a, findings, name, true, number_of(self, "cpuPercent"), text_of(self, "address4", ""));
    if (json_is_object(hub)) {
        bool is_there = json_is_true(json_object_get(hub, "reachable"));

        k = begin_row(m, text_of(hub, "name", "?"));
        add_text(&k, text_of(hub, "name", "?"));
        add_text(&k, is_there ? "hub" : "hub, down");
        m->n_up += is_there;
        m->n_down += !is_there;
        end_node(&k, a, findings, text_of(hub, "name", "?"), is_there, NAN,
            text_of(hub, "address4", ""));
    }
    json_array_foreach(peers, i, peer) {
        add_peer_node(m, a, peer);
        add_peer_pair(m, a, name, peer);
    }
    add_findings(m, findings);
    set_title(m, text_of(self, "network", "?"), "node", name);
}

void top_model_make(struct top_model *ret, const struct top_answers *a)
{
    const json_t *jobs = json_object_get(a->jobs, "jobs");
    const json_t *job;
    size_t i;

    *ret = (struct top_model){.rate = top_rates_total(a->rates)};
    ret->is_unknown[TOP_PAIRS] = !a->status && !a->edges;
    ret->is_unknown[TOP_JOBS] = !a->status && !a->jobs;
    ret->is_unknown[TOP_FINDINGS] =
        !json_is_array(json_object_get(a->status ? a->status : a->findings, "findings"));
    if (a->status)
        make_of_agent(ret, a);
    else
        make_of_hub(ret, a);
    json_array_foreach(jobs ? jobs : json_object_get(a->status, "jobs"), i, job)
        add_job(ret, job);
    ret->failed |= !ret->title;
}
