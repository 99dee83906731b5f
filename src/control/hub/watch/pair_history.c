/* pair_history.c - see pair_history.h. */
#include "hub/watch/pair_history.h"

#include <stdlib.h>
#include <string.h>

#include "health/finding.h"
#include "hub/jobs/jobs.h"
#include "mesh/object/fields.h"

#define MINUTE_S     60
#define RATES_EACH_S 10
#define HOUR_MINUTES 60
#define WEEK_MINUTES (PAIR_HISTORY_HOURS * HOUR_MINUTES)

static const struct pair_point no_point = {
    .loss0 = PAIR_POINT_NO_LOSS, .loss1 = PAIR_POINT_NO_LOSS, .state = PAIR_POINT_NO_STATE};

static bool has_figures(const struct pair_point *p)
{
    return p->rtt_us || p->rate_kib[0] || p->rate_kib[1] || p->loss0 != PAIR_POINT_NO_LOSS ||
           p->loss1 != PAIR_POINT_NO_LOSS;
}

/* ---- one history ---------------------------------------------------------------------------- */

static void clear(struct pair_history *h)
{
    *h = (struct pair_history){.minute = 0};
    for (size_t i = 0; i < PAIR_HISTORY_MINUTES; i++)
        h->minutes[i] = no_point;
    for (size_t i = 0; i < PAIR_HISTORY_HOURS; i++)
        h->hours[i] = no_point;
}

struct mean {
    uint64_t sum;
    uint32_t n;
};

static void add(struct mean *m, uint32_t value, bool is_known)
{
    m->sum += is_known ? value : 0;
    m->n += is_known;
}

static uint32_t mean_of(const struct mean *m, uint32_t none)
{
    return m->n > 0 ? (uint32_t)((m->sum + m->n / 2) / m->n) : none;
}

/* The hour that the minutes hold: means of what was measured, and the state that it had longest. */
static struct pair_point fold(const struct pair_point minutes[static PAIR_HISTORY_MINUTES])
{
    struct mean rtt = {0};
    struct mean jitter = {0};
    struct mean rates[2] = {{0}, {0}};
    struct mean losses[2] = {{0}, {0}};
    unsigned n_of[PAIR_POINT_NO_STATE + 1] = {0};
    unsigned state = PAIR_POINT_NO_STATE;

    for (size_t i = 0; i < PAIR_HISTORY_MINUTES; i++) {
        const struct pair_point *p = &minutes[i];

        if (p->state == PAIR_POINT_NO_STATE)
            continue;
        add(&rtt, p->rtt_us, p->rtt_us > 0);
        add(&jitter, p->jitter_us, p->jitter_us > 0);
        add(&rates[0], p->rate_kib[0], p->rate_kib[0] > 0);
        add(&rates[1], p->rate_kib[1], p->rate_kib[1] > 0);
        add(&losses[0], p->loss0, p->loss0 != PAIR_POINT_NO_LOSS);
        add(&losses[1], p->loss1, p->loss1 != PAIR_POINT_NO_LOSS);
        if (++n_of[p->state] > n_of[state])
            state = p->state;
    }
    return (struct pair_point){.rtt_us = mean_of(&rtt, 0),
        .jitter_us = mean_of(&jitter, 0),
        .rate_kib = {mean_of(&rates[0], 0), mean_of(&rates[1], 0)},
        .loss0 = mean_of(&losses[0], PAIR_POINT_NO_LOSS) & PAIR_POINT_NO_LOSS,
        .loss1 = mean_of(&losses[1], PAIR_POINT_NO_LOSS) & PAIR_POINT_NO_LOSS,
        .state = state & PAIR_POINT_NO_STATE};
}

/* The minutes and hours between the last point and @minute have none. */
static void go_on(struct pair_history *h, int64_t minute)
{
    int64_t hour = minute / HOUR_MINUTES;
    int64_t last_hour = h->minute / HOUR_MINUTES;

    if (hour != last_hour) {
        /* The ring holds the hour of the last point, and before it what is older. */
        for (int64_t i = h->minute % HOUR_MINUTES + 1; i < HOUR_MINUTES; i++)
            h->minutes[i] = no_point;
        h->hours[last_hour % PAIR_HISTORY_HOURS] = fold(h->minutes);
        for (int64_t i = last_hour + 1; i < hour && i <= last_hour + PAIR_HISTORY_HOURS; i++)
            h->hours[i % PAIR_HISTORY_HOURS] = no_point;
    }
    for (int64_t i = h->minute + 1; i < minute && i <= h->minute + PAIR_HISTORY_MINUTES; i++)
        h->minutes[i % PAIR_HISTORY_MINUTES] = no_point;
}

void pair_history_put(struct pair_history *h, int64_t at, const struct pair_point *p)
{
    int64_t minute = at / MINUTE_S;

    if (h->minute != 0 && minute == h->minute)
        return;
    if (h->minute == 0 || minute < h->minute) {
        clear(h);
        h->figures_minute = minute;
    } else {
        go_on(h, minute);
    }
    h->minute = minute;
    h->minutes[minute % PAIR_HISTORY_MINUTES] = *p;
    if (has_figures(p))
        h->figures_minute = minute;
}

/* Parts in a million as percent; NULL: not known. */
static json_t *encode_loss(uint32_t ppm)
{
    return ppm == PAIR_POINT_NO_LOSS ? json_null() : json_real(ppm / 1e4);
}

static void append_point(json_t **list, const struct pair_point *p, int64_t at)
{
    bool has_loss = p->loss0 != PAIR_POINT_NO_LOSS || p->loss1 != PAIR_POINT_NO_LOSS;
    bool has_rate = p->rate_kib[0] > 0 || p->rate_kib[1] > 0;

    if (p->state >= EDGE_STATE_N)
        return;
    fields_append(list,
        json_pack("{s:I, s:s, s:o*, s:o*, s:o*, s:o*}", "at", (json_int_t)at, "state",
            edge_state_names[p->state], "rttMs", p->rtt_us > 0 ? json_real(p->rtt_us / 1e3) : NULL,
            "jitterMs", p->jitter_us > 0 ? json_real(p->jitter_us / 1e3) : NULL, "lossPercent",
            has_loss ? json_pack("[o, o]", encode_loss(p->loss0), encode_loss(p->loss1)) : NULL,
            "bytesPerSecond",
            has_rate ? json_pack("[I, I]", (json_int_t)p->rate_kib[0] * 1024,
                           (json_int_t)p->rate_kib[1] * 1024)
                     : NULL));
}

static int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

json_t *pair_history_encode(const struct pair_history *h, int64_t at)
{
    json_t *minutes = json_array();
    json_t *hours = json_array();
    int64_t minute = max_of(at / MINUTE_S, h->minute);
    int64_t last_hour = h->minute / HOUR_MINUTES;

    for (int64_t i = minute - PAIR_HISTORY_MINUTES + 1; h->minute > 0 && i <= h->minute; i++)
        append_point(&minutes, &h->minutes[i % PAIR_HISTORY_MINUTES], i * MINUTE_S);
    /* The hour of the last point is not over, and is in the minutes. */
    for (int64_t i = minute / HOUR_MINUTES - PAIR_HISTORY_HOURS; h->minute > 0 && i < last_hour;
         i++)
        append_point(&hours, &h->hours[i % PAIR_HISTORY_HOURS], i * HOUR_MINUTES * MINUTE_S);
    return json_pack("{s:o, s:o}", "minutes", minutes, "hours", hours);
}

/* ---- those of all networks ------------------------------------------------------------------ */

struct network_history {
    struct keyed keyed;
    struct keys pairs; /* of struct kept_pair, by "A--B" */
};

struct kept_pair {
    struct keyed keyed;
    struct pair_history history;
    uint64_t rates[2]; /* of the looks at rates in this minute: what jobs carry, bytes/s; sums */
};

/* A look at one network. */
struct pass {
    struct pair_histories *all;
    struct network_history *of;
    const struct model_network *net;
    int64_t at; /* in the minute that is over, s since 1970 */
    int64_t wall_s;
};

static void forget_pair(struct pair_histories *all, struct network_history *of, struct kept_pair *p)
{
    keys_free(&of->pairs, &p->keyed);
    all->n--;
}

static void forget_network(struct pair_histories *all, struct network_history *of)
{
    all->n -= of->pairs.n;
    keys_free_all(&of->pairs);
    keys_free(&all->networks, &of->keyed);
}

void pair_histories_deinit(struct pair_histories *all)
{
    while (all->networks.n > 0)
        forget_network(all, (struct network_history *)all->networks.items[0]);
    keys_deinit(&all->networks);
}

/* The pair, which has figures; NULL: there is no room, or no memory. */
static struct kept_pair *open_pair(const struct pass *pass, const char *a, const char *b)
{
    char name[FINDING_SUBJECT_MAX];
    struct kept_pair *p = keys_find(&pass->of->pairs, finding_name_pair(name, a, b));

    if (p || pass->all->n >= PAIR_HISTORY_MAX)
        return p;
    p = keys_open(&pass->of->pairs, name, sizeof(*p));
    pass->all->n += p != NULL;
    return p;
}

static void add_rate(void *arg, const char *from, const char *to, uint64_t rate)
{
    struct kept_pair *p = rate > 0 && strcmp(from, to) != 0 ? open_pair(arg, from, to) : NULL;

    if (p)
        p->rates[strcmp(from, to) < 0 ? 0 : 1] += rate;
}

/* Pairs of which the node's agent or probe has measured something. */
static void open_measured(const struct pass *pass, const struct model_node *node)
{
    const struct edge_parts *said = &node->reported->heard.report.edges;
    const struct edge_parts *probed = &node->reported->heard.probed;
    const char *name = node->spec.meta.name;

    for (size_t i = 0; i < said->n; i++)
        if (loss_rate_is_known(&said->items[i]->said.loss) ||
            rtt_spread_is_known(&said->items[i]->said.spread))
            (void)open_pair(pass, name, said->items[i]->peer);
    for (size_t i = 0; i < probed->n; i++)
        if (probed->items[i]->probed.rtt_us > 0)
            (void)open_pair(pass, name, probed->items[i]->peer);
}

static uint32_t kib_of(uint64_t bytes)
{
    uint64_t kib = bytes / 1024 + (bytes % 1024 > 0);

    return kib < UINT32_MAX ? (uint32_t)kib : UINT32_MAX;
}

static struct pair_point point_of(
    const struct edge_figures *f, const uint64_t rates[static 2], unsigned n_rates)
{
    struct pair_point p = no_point;

    p.state = (unsigned)f->state & PAIR_POINT_NO_STATE;
    if (!f->is_alive)
        return p;
    p.rtt_us = f->rtt_us ? f->rtt_us : f->direct_rtt_us;
    p.jitter_us = f->jitter_us;
    if (f->has_loss[0])
        p.loss0 = f->loss_ppm[0] & PAIR_POINT_NO_LOSS;
    if (f->has_loss[1])
        p.loss1 = f->loss_ppm[1] & PAIR_POINT_NO_LOSS;
    for (unsigned i = 0; n_rates > 0 && i < 2; i++)
        p.rate_kib[i] = kib_of(rates[i] / n_rates);
    return p;
}

static void pass_network(const struct pass *pass)
{
    for (size_t i = 0; i < pass->net->nodes.n; i++)
        open_measured(pass, model_node_at(pass->net, i));
    for (size_t i = pass->of->pairs.n; i-- > 0;) {
        struct kept_pair *p = (struct kept_pair *)pass->of->pairs.items[i];
        struct edge_figures figures;
        struct edge_pair pair;
        struct pair_point point;

        if (!edge_pair_find(&pair, pass->net, p->keyed.key)) {
            forget_pair(pass->all, pass->of, p);
            continue;
        }
        edge_view_figures(&pair, pass->wall_s, &figures);
        point = point_of(&figures, p->rates, pass->all->n_rates);
        pair_history_put(&p->history, pass->at, &point);
        p->rates[0] = p->rates[1] = 0;
        if (pass->wall_s / MINUTE_S - p->history.figures_minute > WEEK_MINUTES)
            forget_pair(pass->all, pass->of, p);
    }
}

static void add_rates(const struct pass *pass)
{
    if (pass->net->served)
        jobs_each_rate(&pass->net->served->jobs, add_rate, (void *)pass);
}

static void each_network(struct pair_histories *all, const struct model *m, int64_t wall_s,
    void (*fn)(const struct pass *pass))
{
    for (size_t i = 0; i < m->networks.n; i++) {
        const struct model_network *net = model_network_at(m, i);
        struct network_history *of =
            keys_open(&all->networks, net->spec.meta.name, sizeof(struct network_history));

        if (of)
            fn(&(struct pass){
                .all = all, .of = of, .net = net, .at = all->minute * MINUTE_S, .wall_s = wall_s});
    }
}

void pair_histories_pass(struct pair_histories *all, const struct model *m, int64_t wall_s)
{
    int64_t minute = wall_s / MINUTE_S;

    if (minute != all->minute) {
        for (size_t i = all->networks.n; i-- > 0;)
            if (!model_find_network(m, all->networks.items[i]->key))
                forget_network(all, (struct network_history *)all->networks.items[i]);
        if (all->minute != 0)
            each_network(all, m, wall_s, pass_network);
        all->minute = minute;
        all->n_rates = 0;
    }
    if (wall_s / RATES_EACH_S != all->rates_at) {
        all->rates_at = wall_s / RATES_EACH_S;
        each_network(all, m, wall_s, add_rates);
        all->n_rates++;
    }
}

json_t *pair_histories_show(
    const struct pair_histories *all, const struct edge_pair *pair, int64_t wall_s)
{
    static const struct pair_history none;
    const char *a = pair->nodes[0]->spec.meta.name;
    const char *b = pair->nodes[1]->spec.meta.name;
    const struct network_history *of =
        keys_find(&all->networks, pair->nodes[0]->net->spec.meta.name);
    char name[FINDING_SUBJECT_MAX];
    const struct kept_pair *p = of ? keys_find(&of->pairs, finding_name_pair(name, a, b)) : NULL;
    json_t *json = pair_history_encode(p ? &p->history : &none, wall_s);

    if (json &&
        (json_object_set_new(json, "name", json_string(finding_name_pair(name, a, b))) != 0 ||
            json_object_set_new(json, "nodes", json_pack("[s, s]", a, b)) != 0)) {
        json_decref(json);
        return NULL;
    }
    return json;
}
