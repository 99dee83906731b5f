/* job_health.c - see job_health.h: samples come in, and what is found goes out. */
#include "health/job_health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "health/job_causes.h"
#include "health/job_known.h"
#include "health/job_sample.h"

/* A sample before that is passed over. */
#define PACE (500 * NSEC_PER_MSEC)

/* A line that was busy for less time says nothing of itself, ms. */
#define BUSY_MIN 20

/* Nothing moves, as to the job, at less than this part of the usual. */
#define MOVES_PART 200

/* A pause that was longer counts as one of this length, and is kept for as long as that. */
#define PAUSE_MAX   (60 * NSEC_PER_SEC)
#define PAUSES_KEPT (1800 * NSEC_PER_SEC)

struct job_health *job_health_new(void)
{
    return calloc(1, sizeof(struct job_health));
}

struct job_health *job_health_free(struct job_health *h)
{
    if (h)
        job_known_deinit(h);
    free(h);
    return NULL;
}

/* ---- samples -------------------------------------------------------------------------------- */

static void begin_run(struct job_health *h, const char *run)
{
    (void)snprintf(h->run, sizeof(h->run), "%s", run);
    for (size_t i = 0; i < h->n; i++) {
        h->nodes[i]->n = 0;
        h->nodes[i]->heard_at = 0;
        h->nodes[i]->is_ended = false;
        h->nodes[i]->nccl = (struct nccl_faults){.kinds = {{.n = 0}}};
        h->nodes[i]->ras = (struct ras_ranks){.n = 0};
        free(h->nodes[i]->flight);
        h->nodes[i]->flight = NULL;
    }
    h->moved_at = 0;
    h->alone = NULL;
}

static void note_pause(struct job_health *h, nsec_t pause, nsec_t now)
{
    if (now - h->pauses_from > PAUSES_KEPT) {
        h->pauses[1] = h->pauses[0];
        h->pauses[0] = 0;
        h->pauses_from = now;
    }
    /* A pause of which the cause was found is none that the job makes. */
    if (h->is_usual || h->n_found == 0)
        h->pauses[0] = nsec_max(h->pauses[0], nsec_min(pause, PAUSE_MAX));
}

/* Does a node send at a rate that is something beside its usual one? */
static bool moves(const struct health_node *node, const struct period *p)
{
    uint64_t usual = rate_memory_median(&node->usual);

    return usual > 0 ? job_known_rate(p->sent, p->ms) > usual / MOVES_PART
                     : p->sent >= JOB_KNOWN_BYTES_MIN;
}

static void remember(struct job_health *h, struct health_node *node, unsigned slot, nsec_t now)
{
    const struct period *p = &node->last[slot];

    if (moves(node, p)) {
        if (h->moved_at > 0)
            note_pause(h, now - h->moved_at, now);
        h->moved_at = now;
    }
    if (h->n_found > 0)
        return;
    if (p->sent >= JOB_KNOWN_BYTES_MIN)
        rate_memory_add(&node->usual, job_known_rate(p->sent, p->ms));
    for (size_t i = 0; i < node->n_lines; i++) {
        const struct job_flow *f = &node->lines[i].last[slot];

        if (f->sent >= JOB_KNOWN_BYTES_MIN && f->busy_ms >= BUSY_MIN &&
            f->window_ms * 2 < f->busy_ms && job_known_is_bulk(f))
            rate_memory_add(&node->lines[i].usual, job_known_rate(f->sent, f->busy_ms));
    }
}

/* A node may be spoken to at both of its addresses. */
static void add_flow(struct job_flow *sum, const struct job_flow *f)
{
    sum->sent += f->sent;
    sum->received += f->received;
    sum->busy_ms = f->busy_ms > sum->busy_ms ? f->busy_ms : sum->busy_ms;
    sum->window_ms = f->window_ms > sum->window_ms ? f->window_ms : sum->window_ms;
    sum->segments += f->segments;
    sum->repeated += f->repeated;
    sum->queued += f->queued;
    sum->unread += f->unread;
}

static void take_nccl(struct health_node *node, const struct nccl_faults *said, nsec_t now)
{
    for (unsigned i = 0; i < NCCL_FAULT_N; i++)
        if (said->kinds[i].n > 0 && said->kinds[i].n != node->nccl.kinds[i].n)
            node->nccl_at[i] = now;
    node->nccl = *said;
}

/* Most jobs have no recorder, and it says much. */
static void take_flight(struct health_node *node, const struct flight_places *said)
{
    if (said->is_known && !node->flight)
        node->flight = malloc(sizeof(*said));
    if (node->flight)
        *node->flight = *said;
}

/* Of several commands of one node the first is looked at, as long as it is heard. */
static bool is_of_other(const struct health_node *node, const struct job_sample *s, nsec_t now)
{
    return node->heard_at > 0 && !node->is_ended && now - node->heard_at < JOB_HEALTH_GONE &&
           strcmp(node->command, s->command) != 0;
}

void job_health_take(struct job_health *h, const char *name, const struct job_sample *s, nsec_t now)
{
    struct health_node *node;
    struct period *p;
    unsigned slot;

    if (strcmp(h->run, s->run) != 0)
        begin_run(h, s->run);
    node = job_known_node(h, name);
    if (!node || is_of_other(node, s, now))
        return;
    /* The last words of a command count, however soon they come. */
    take_nccl(node, &s->nccl, now);
    if (node->heard_at > 0 && now - node->heard_at < PACE)
        return;
    (void)snprintf(node->command, sizeof(node->command), "%s", s->command);
    node->is_ended = false;
    node->heard_at = now;
    node->ras = s->ras;
    take_flight(node, &s->flight);
    slot = node->n++ % JOB_KNOWN_KEPT;
    p = &node->last[slot];
    *p = (struct period){.ms = s->ms, .processes = s->processes, .progress = s->progress};
    for (size_t i = 0; i < node->n_lines; i++)
        node->lines[i].last[slot] = (struct job_flow){0};
    for (unsigned i = 0; i < s->n_peers; i++) {
        const struct job_sample_peer *peer = &s->peers[i];
        struct health_node *to =
            peer->node[0] && strcmp(peer->node, name) != 0 ? job_known_node(h, peer->node) : NULL;
        struct line *line = to ? job_known_line(node, to) : NULL;

        if (!line)
            continue;
        add_flow(&line->last[slot], &peer->flow);
        p->sent += peer->flow.sent;
    }
    remember(h, node, slot, now);
}

void job_health_end(struct job_health *h, const char *name)
{
    struct health_node *node = job_known_find_node(h, name);

    if (node)
        node->is_ended = true;
}

/* ---- the result ----------------------------------------------------------------------------- */

/* Tells what was found of @node; NULL: of the job. */
static void publish(const struct look *l, const struct job_health_out *out,
    const struct health_node *node, bool is_cleared)
{
    const struct nccl_fault *network = node ? &node->nccl.kinds[NCCL_FAULT_NETWORK] : NULL;
    char subject[FINDING_SUBJECT_MAX];

    (void)snprintf(
        subject, sizeof(subject), "%s%s%s", out->job, node ? "/" : "", node ? node->name : "");
    findings_look(out->findings, subject);
    for (unsigned i = 0; !is_cleared && i < l->n; i++) {
        const struct verdict *v = &l->verdicts[i];
        struct finding *f;

        if (v->node != node)
            continue;
        f = findings_add(out->findings, v->code, subject,
            out->at - (l->now - v->since) / NSEC_PER_SEC, "%s", v->text);
        if (v->fix[0] != '\0')
            finding_set_fix(f, "%s", v->fix);
    }
    /* It holds up nobody, so it is said beside what does. */
    if (network && network->n > 0 && !is_cleared && job_known_is_there(node))
        (void)findings_add(out->findings, FINDING_NCCL_NETWORK, subject, out->at, "%s: %s",
            node->name, network->text);
    findings_done(out->findings, subject, out->changed, out->arg);
}

/* Does NCCL use another network than was wanted, on some node that is there? */
static bool says_network(const struct job_health *h)
{
    for (size_t i = 0; i < h->n; i++)
        if (h->nodes[i]->nccl.kinds[NCCL_FAULT_NETWORK].n > 0 && job_known_is_there(h->nodes[i]))
            return true;
    return false;
}

static void publish_all(const struct look *l, const struct job_health_out *out, bool is_cleared)
{
    struct job_health *h = l->h;
    bool says = !is_cleared && says_network(h);

    if (h->n_found > 0 || l->n > 0 || h->says_network || says) {
        publish(l, out, NULL, is_cleared);
        for (size_t i = 0; i < h->n; i++)
            publish(l, out, h->nodes[i], is_cleared);
    }
    h->says_network = says;
    h->n_found = is_cleared ? 0 : l->n;
    h->is_usual = true;
    for (unsigned i = 0; i < l->n; i++)
        h->is_usual &= l->verdicts[i].code == FINDING_JOB_STUCK ||
                       l->verdicts[i].code == FINDING_NCCL_BEHIND ||
                       l->verdicts[i].code == FINDING_RANK_BEHIND ||
                       l->verdicts[i].code == FINDING_RANK_SLOW;
}

void job_health_look(struct job_health *h, const struct job_health_out *out, nsec_t now)
{
    struct look l = {.h = h, .now = now};

    if (job_causes_find(&l))
        publish_all(&l, out, false);
}

void job_health_clear(struct job_health *h, const struct job_health_out *out)
{
    publish_all(&(struct look){.h = h}, out, true);
    for (size_t i = 0; i < h->n; i++)
        for (size_t k = 0; k < h->nodes[i]->n_lines; k++)
            h->nodes[i]->lines[k].named_since = 0;
}

bool job_health_step(const struct job_health *h, uint64_t *ret_step, double *ret_rate)
{
    const struct period *least = NULL;

    for (size_t i = 0; h && i < h->n; i++) {
        const struct health_node *node = h->nodes[i];
        const struct period *p =
            job_known_is_there(node) ? &node->last[(node->n - 1) % JOB_KNOWN_KEPT] : NULL;

        if (p && p->progress.n_ranks > 0 && (!least || p->progress.step < least->progress.step))
            least = p;
    }
    if (!least)
        return false;
    *ret_step = least->progress.step;
    *ret_rate = (double)least->progress.n_steps * 1000 / least->ms;
    return true;
}

bool job_health_rate(
    const struct job_health *h, nsec_t now, uint64_t *ret_rate, uint64_t *ret_usual)
{
    uint64_t rate = 0;
    uint64_t usual = 0;
    bool is_known = false;

    for (size_t i = 0; h && i < h->n; i++) {
        const struct health_node *node = h->nodes[i];
        const struct period *p = &node->last[(node->n + JOB_KNOWN_KEPT - 1) % JOB_KNOWN_KEPT];

        if (!job_known_is_there(node))
            continue;
        if (now - node->heard_at >= JOB_HEALTH_GONE)
            return false;
        is_known = true;
        rate += job_known_rate(p->sent, p->ms);
        usual += rate_memory_median(&node->usual);
    }
    if (!is_known)
        return false;
    *ret_rate = rate;
    *ret_usual = usual;
    return true;
}

void job_health_each_rate(const struct job_health *h, nsec_t now, job_rate_fn fn, void *arg)
{
    for (size_t i = 0; h && i < h->n; i++) {
        const struct health_node *node = h->nodes[i];
        unsigned slot = (node->n - 1) % JOB_KNOWN_KEPT;

        if (!job_known_is_there(node) || now - node->heard_at > JOB_HEALTH_GONE)
            continue;
        for (size_t k = 0; k < node->n_lines; k++) {
            const struct line *line = &node->lines[k];
            uint64_t rate = job_known_rate(line->last[slot].sent, node->last[slot].ms);

            if (rate > 0)
                fn(arg, node->name, line->to->name, rate);
        }
    }
}

void job_health_each_slow(const struct job_health *h, nsec_t now, job_slow_fn fn, void *arg)
{
    for (size_t i = 0; h && i < h->n; i++)
        for (size_t k = 0; k < h->nodes[i]->n_lines; k++) {
            const struct line *line = &h->nodes[i]->lines[k];

            if (line->named_since != 0)
                fn(arg, &(struct job_slow_line){.from = h->nodes[i]->name,
                            .to = line->to->name,
                            .for_s = (now - line->named_since) / NSEC_PER_SEC,
                            .rate = line->rate,
                            .usual = rate_memory_median(&line->usual),
                            .repeated = line->repeated});
        }
}

json_t *job_health_encode(
    const struct job_health *h, const char *job, const struct findings *findings, int64_t at)
{
    static const enum finding_code codes[] = {FINDING_RANK_GONE, FINDING_RANK_STOPPED,
        FINDING_NCCL_POLL, FINDING_NCCL_COMPLETION, FINDING_NCCL_UNREACHED, FINDING_NCCL_CLOSED,
        FINDING_NCCL_TIMEOUT, FINDING_NCCL_BEHIND, FINDING_NCCL_SILENT, FINDING_RANK_DIFFERS,
        FINDING_RANK_BEHIND, FINDING_RANK_LINE_SLOW, FINDING_RANK_UNREAD, FINDING_RANK_KERNEL,
        FINDING_RANK_SLOW};
    const struct finding *stuck =
        h && h->n_found > 0 ? findings_find(findings, FINDING_JOB_STUCK, job) : NULL;
    json_t *list = json_array();

    if (stuck)
        (void)json_array_append_new(list, finding_encode(stuck, at));
    for (size_t i = 0; h && h->n_found > 0 && i < h->n; i++) {
        char subject[FINDING_SUBJECT_MAX];

        (void)snprintf(subject, sizeof(subject), "%s/%s", job, h->nodes[i]->name);
        for (size_t k = 0; k < sizeof(codes) / sizeof(*codes); k++) {
            const struct finding *f = findings_find(findings, codes[k], subject);

            if (f)
                (void)json_array_append_new(list, finding_encode(f, at));
        }
    }
    return list;
}
