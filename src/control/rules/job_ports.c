/* job_ports.c - see job_ports.h. */
#include "rules/job_ports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "mesh/object/fields.h"
#include "mesh/object/rule.h"
#include "mesh/snapshot/snapshot.h"

/* The kernel's default, until a job has said it. */
#define CHOSEN_FIRST 32768
#define CHOSEN_LAST  60999

/* ---- what a job says ------------------------------------------------------------------------ */

void job_ports_word_deinit(struct job_ports_word *w)
{
    free(w->own.items);
    free(w->others.items);
    *w = (struct job_ports_word)JOB_PORTS_WORD_NULL;
}

static int compare_port(const void *a, const void *b)
{
    const uint16_t *x = a;
    const uint16_t *y = b;

    return (*x > *y) - (*x < *y);
}

static void sort(struct job_port_list *l)
{
    size_t n = 0;

    if (l->n > 0)
        qsort(l->items, l->n, sizeof(*l->items), compare_port);
    for (size_t i = 0; i < l->n; i++)
        if (n == 0 || l->items[n - 1] != l->items[i])
            l->items[n++] = l->items[i];
    l->n = n;
}

static bool has_port(const struct job_port_list *l, uint16_t port)
{
    return l->n > 0 && bsearch(&port, l->items, l->n, sizeof(port), compare_port);
}

static void decode_list(struct fields *f, const char *name, size_t max, struct job_port_list *ret)
{
    const json_t *list = fields_array(f, name, FIELDS_REQUIRED, 0, max);
    size_t n = json_array_size(list);

    ret->items = calloc(n + 1, sizeof(*ret->items));
    if (!ret->items)
        fields_fail(f, "no memory for \"%s\"", name);
    for (size_t i = 0; ret->items && i < n; i++) {
        const json_t *port = json_array_get(list, i);
        json_int_t number = json_integer_value(port);

        if (!json_is_integer(port) || number < JOB_PORTS_FIRST || number > UINT16_MAX)
            fields_fail(
                f, "an item of \"%s\" is no port from %d to %d", name, JOB_PORTS_FIRST, UINT16_MAX);
        else
            ret->items[ret->n++] = (uint16_t)number;
    }
    sort(ret);
}

int job_ports_word_decode(struct job_ports_word *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the ports of a job", e);
    struct job_ports_word w = JOB_PORTS_WORD_NULL;
    uint64_t first = 0;
    uint64_t last = 0;
    int r;

    decode_list(&f, "own", JOB_PORTS_OWN_MAX, &w.own);
    decode_list(&f, "others", JOB_PORTS_OTHERS_MAX, &w.others);
    fields_u64(&f, "first", FIELDS_REQUIRED, JOB_PORTS_FIRST, UINT16_MAX, &first);
    fields_u64(&f, "last", FIELDS_REQUIRED, JOB_PORTS_FIRST, UINT16_MAX, &last);
    if (last < first)
        fields_fail(&f, "\"last\" is less than \"first\"");
    r = fields_end(&f);
    if (r != 0) {
        job_ports_word_deinit(&w);
        return r;
    }
    w.first = (uint16_t)first;
    w.last = (uint16_t)last;
    *ret = w;
    return 0;
}

static json_t *encode_list(const struct job_port_list *l)
{
    json_t *list = json_array();

    for (size_t i = 0; i < l->n; i++)
        fields_append(&list, json_integer(l->items[i]));
    return list;
}

json_t *job_ports_word_encode(const struct job_ports_word *w)
{
    return json_pack("{s:o, s:o, s:i, s:i}", "own", encode_list(&w->own), "others",
        encode_list(&w->others), "first", (int)w->first, "last", (int)w->last);
}

static bool is_same_list(const struct job_port_list *a, const struct job_port_list *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->items, b->items, a->n * sizeof(*a->items)) == 0);
}

bool job_ports_word_equal(const struct job_ports_word *a, const struct job_ports_word *b)
{
    return a->first == b->first && a->last == b->last && is_same_list(&a->own, &b->own) &&
           is_same_list(&a->others, &b->others);
}

/* ---- all jobs that say something ------------------------------------------------------------ */

void job_ports_deinit(struct job_ports *jp)
{
    for (unsigned i = 0; i < jp->n; i++)
        job_ports_word_deinit(&jp->items[i].word);
    *jp = (struct job_ports){.n = 0};
}

static const struct job_ports_entry *find(const struct job_ports *jp, const char *job)
{
    for (unsigned i = 0; i < jp->n; i++)
        if (strcmp(jp->items[i].job, job) == 0)
            return &jp->items[i];
    return NULL;
}

bool job_ports_set(struct job_ports *jp, const char *job, struct job_ports_word *w, nsec_t now)
{
    unsigned i = 0;

    while (i < jp->n && strcmp(jp->items[i].job, job) != 0)
        i++;
    if (i == JOB_PORTS_JOBS_MAX) {
        job_ports_word_deinit(w);
        return false;
    }
    if (i == jp->n) {
        jp->items[jp->n++] = (struct job_ports_entry){.heard_at = now};
        (void)snprintf(jp->items[i].job, sizeof(jp->items[i].job), "%s", job);
    }
    job_ports_word_deinit(&jp->items[i].word);
    jp->items[i].word = *w;
    jp->items[i].heard_at = now;
    jp->first = w->first;
    jp->last = w->last;
    *w = (struct job_ports_word)JOB_PORTS_WORD_NULL;
    return true;
}

/* The rule closes ports of this node. */
static bool is_closing(const struct snapshot *s, const struct rule *r)
{
    return r->job[0] != '\0' &&
           rule_is_about(r->to, r->n_to, &(struct rule_end){.node = snapshot_self(s)});
}

bool job_ports_is_here(const struct snapshot *s, const char *job)
{
    const struct snapshot_list *rules = snapshot_list(s, &rule_kind);

    for (size_t i = 0; i < rules->n; i++)
        if (strcmp(rule_of(rules->items[i])->job, job) == 0 &&
            is_closing(s, rule_of(rules->items[i])))
            return true;
    return false;
}

bool job_ports_is_any(const struct snapshot *s)
{
    const struct snapshot_list *rules = snapshot_list(s, &rule_kind);
    bool is_any = false;

    for (size_t i = 0; i < rules->n; i++)
        is_any |= is_closing(s, rule_of(rules->items[i]));
    return is_any;
}

void job_ports_tick(struct job_ports *jp, const struct snapshot *s, nsec_t now)
{
    for (unsigned i = 0; i < jp->n;) {
        if (now - jp->items[i].heard_at < JOB_PORTS_SILENT ||
            job_ports_is_here(s, jp->items[i].job)) {
            i++;
            continue;
        }
        job_ports_word_deinit(&jp->items[i].word);
        jp->items[i] = jp->items[--jp->n];
    }
}

/* ---- the table ------------------------------------------------------------------------------ */

/* A table while it is made. */
struct making {
    struct str *out;
    const struct job_ports *jp;
    const struct snapshot *s;
    const struct snapshot_list *rules;
    nsec_t now;
};

static const struct rule *closing_at(const struct making *m, size_t i)
{
    const struct rule *r = rule_of(m->rules->items[i]);

    return is_closing(m->s, r) ? r : NULL;
}

/* The addresses of one family of who is in the job: "set job3_4". */
static void add_members(const struct making *m, const struct rule *r, size_t number, bool v4)
{
    const char *between = "elements = { ";

    str_addf(
        m->out, "set job%zu_%d {\ntype %s;\n", number, v4 ? 4 : 6, v4 ? "ipv4_addr" : "ipv6_addr");
    for (size_t i = 0; i < m->s->nodes.n; i++) {
        const struct node *node = &m->s->nodes.items[i]->node;
        char text[IP_ADDR_TEXT_MAX];

        if (!rule_is_about(r->from, r->n_from, &(struct rule_end){.node = node}))
            continue;
        str_addf(
            m->out, "%s%s", between, ip_addr_format(v4 ? &node->address4 : &node->address6, text));
        between = ", ";
    }
    str_addf(m->out, "%s}\n", between[0] == ',' ? " }\n" : "");
}

static void add_ports(const struct making *m, const struct job_port_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        str_addf(m->out, "%s%u", i > 0 ? ", " : "", l->items[i]);
}

/* "tcp dport { 40001, 40002 } goto job3" */
static void add_own(const struct making *m, const struct rule *r, size_t number)
{
    const struct job_ports_entry *entry = find(m->jp, r->job);
    bool is_hub = snapshot_self(m->s)->hub != NULL;

    for (unsigned i = 0; is_hub && i < r->n_services; i++)
        if (r->services[i].protocol == RULE_PROTOCOL_TCP)
            str_addf(m->out, "tcp dport %u-%u goto job%zu\n", r->services[i].first,
                r->services[i].last, number);
    if (is_hub || !entry || entry->word.own.n == 0)
        return;
    str_add(m->out, "tcp dport { ");
    add_ports(m, &entry->word.own);
    str_addf(m->out, " } goto job%zu\n", number);
}

/* Who has said something lately; the others do not know who listens where. */
static bool is_heard(const struct making *m, const struct job_ports_entry *entry)
{
    return m->now - entry->heard_at < JOB_PORTS_SILENT;
}

/* Who has said last at which ports others listen; NULL: nobody knows of all. */
static const struct job_ports_entry *find_others(const struct making *m)
{
    const struct job_ports_entry *one = NULL;

    for (size_t i = 0; i < m->rules->n; i++) {
        const struct rule *r = closing_at(m, i);
        const struct job_ports_entry *entry = r ? find(m->jp, r->job) : NULL;

        /* One that has said nothing at all may have begun to listen anywhere. */
        if (r && !entry)
            return NULL;
        if (entry && is_heard(m, entry))
            one = entry;
    }
    return one;
}

/* Do all that have said something lately say so of the port? */
static bool is_others(const struct making *m, uint16_t port)
{
    bool is = true;

    for (unsigned k = 0; k < m->jp->n; k++)
        is &= !is_heard(m, &m->jp->items[k]) || !job_ports_is_here(m->s, m->jp->items[k].job) ||
              has_port(&m->jp->items[k].word.others, port);
    return is;
}

static void add_others(const struct making *m)
{
    const struct job_ports_entry *one = find_others(m);
    const char *between = "tcp dport { ";

    for (size_t i = 0; one && i < one->word.others.n; i++) {
        if (!is_others(m, one->word.others.items[i]))
            continue;
        str_addf(m->out, "%s%u", between, one->word.others.items[i]);
        between = ", ";
    }
    if (between[0] == ',')
        str_add(m->out, " } return\n");
}

/* Ports that the kernel chooses. */
static uint16_t first_chosen(const struct making *m)
{
    return m->jp->first != 0 ? m->jp->first : CHOSEN_FIRST;
}

static uint16_t last_chosen(const struct making *m)
{
    return m->jp->first != 0 ? m->jp->last : CHOSEN_LAST;
}

/* A port that the kernel may choose, and of which nobody has spoken. */
static void add_unknown(const struct making *m)
{
    str_addf(m->out, "tcp dport != %u-%u return\n", first_chosen(m), last_chosen(m));
    add_others(m);
    for (size_t i = 0; i < m->rules->n; i++)
        if (closing_at(m, i))
            str_addf(m->out, "ip saddr @job%zu_4 return\nip6 saddr @job%zu_6 return\n", i, i);
    str_add(m->out, "goto closed\n");
}

void job_ports_format(struct str *out, const struct job_ports *jp, const struct snapshot *s,
    nsec_t now, void (*close)(struct str *out))
{
    const struct making m = {
        .out = out, .jp = jp, .s = s, .rules = snapshot_list(s, &rule_kind), .now = now};

    str_add(out, "chain closed {\n");
    close(out);
    for (size_t i = 0; i < m.rules->n; i++) {
        const struct rule *r = closing_at(&m, i);

        if (!r)
            continue;
        add_members(&m, r, i, true);
        add_members(&m, r, i, false);
        str_addf(out,
            "chain job%zu {\nip saddr @job%zu_4 return\nip6 saddr @job%zu_6 return\n"
            "goto closed\n}\n",
            i, i, i);
    }
    str_add(out, "chain jobs {\nmeta l4proto != tcp return\n");
    for (size_t i = 0; i < m.rules->n; i++)
        if (closing_at(&m, i))
            add_own(&m, closing_at(&m, i), i);
    if (!snapshot_self(s)->hub)
        add_unknown(&m);
    str_add(out, "}\n");
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* Ports of one line. */
#define PORTS_A_LINE 128

/* "shut 40001,40002 3": those at which the job listens, for its members alone. */
static void add_own_lines(const struct making *m, const struct rule *r, unsigned set)
{
    const struct job_ports_entry *entry = find(m->jp, r->job);
    bool is_hub = snapshot_self(m->s)->hub != NULL;

    for (unsigned i = 0; is_hub && i < r->n_services; i++)
        if (r->services[i].protocol == RULE_PROTOCOL_TCP)
            str_addf(m->out, "shut %u-%u %u\n", r->services[i].first, r->services[i].last, set);
    for (size_t i = 0; !is_hub && entry && i < entry->word.own.n; i++) {
        bool is_last = i + 1 == entry->word.own.n || i % PORTS_A_LINE == PORTS_A_LINE - 1;

        str_addf(m->out, "%s%u", i % PORTS_A_LINE == 0 ? "shut " : ",", entry->word.own.items[i]);
        if (is_last)
            str_addf(m->out, " %u\n", set);
    }
}

static void add_others_lines(const struct making *m)
{
    const struct job_ports_entry *one = find_others(m);

    for (size_t i = 0; one && i < one->word.others.n; i++)
        if (is_others(m, one->word.others.items[i]))
            str_addf(m->out, "open %u\n", one->word.others.items[i]);
}

/* All that are in some job here, as one set. */
static void add_union(const struct making *m, job_ports_set_fn add_set)
{
    struct rule_peer *all;
    unsigned n = 0;

    for (size_t i = 0; i < m->rules->n; i++)
        n += closing_at(m, i) ? closing_at(m, i)->n_from : 0;
    all = calloc(n + 1, sizeof(*all));
    if (!all) {
        m->out->failed = true;
        return;
    }
    n = 0;
    for (size_t i = 0; i < m->rules->n; i++) {
        const struct rule *r = closing_at(m, i);

        for (unsigned k = 0; r && k < r->n_from; k++)
            all[n++] = r->from[k];
    }
    add_set(m->out, m->s, all, n);
    free(all);
}

void job_ports_lines(struct str *out, const struct job_ports *jp, const struct snapshot *s,
    nsec_t now, unsigned next_set, job_ports_set_fn add_set)
{
    const struct making m = {
        .out = out, .jp = jp, .s = s, .rules = snapshot_list(s, &rule_kind), .now = now};

    for (size_t i = 0; i < m.rules->n; i++) {
        const struct rule *r = closing_at(&m, i);

        if (!r)
            continue;
        add_set(out, s, r->from, r->n_from);
        add_own_lines(&m, r, next_set++);
    }
    if (snapshot_self(s)->hub)
        return;
    add_others_lines(&m);
    add_union(&m, add_set);
    str_addf(out, "shut %u-%u %u\n", first_chosen(&m), last_chosen(&m), next_set);
}
