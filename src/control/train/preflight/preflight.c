/* preflight.c - see preflight.h: gathers the findings, merges them and draws the verdicts. */
#include "train/preflight/preflight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/job/rounds.h"
#include "train/preflight/preflight_internal.h"

/* ---- one member's fault, told once --------------------------------------------------------- */

/* Counts, for one kind of fault, in how many of the pairs that have it each member is. */
struct tally {
    size_t *in;       /* owns; pairs with the fault, by index of the member */
    size_t n_present; /* how many members could be asked */
};

static void count_fault(
    const struct preflight_report *r, enum preflight_fault fault, struct tally *t, size_t n_nodes)
{
    memset(t->in, 0, n_nodes * sizeof(*t->in));
    for (size_t i = 0; i < r->n; i++) {
        const struct preflight_finding *f = &r->items[i];

        if (f->fault != fault || f->b == PREFLIGHT_NOBODY)
            continue;
        t->in[f->a]++;
        t->in[f->b]++;
    }
}

/*
 * Merges the member's findings of that fault about a pair: the first becomes a finding about the
 * member alone, with the gravest level of them all, and the others are dropped.
 */
static void merge_one(struct preflight_report *r, const struct preflight_input *in,
    enum preflight_fault fault, size_t node, size_t n_others)
{
    size_t kept = SIZE_MAX;
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++) {
        struct preflight_finding f = r->items[i];
        bool is_one = f.fault == fault && f.b != PREFLIGHT_NOBODY && (f.a == node || f.b == node);

        if (is_one && kept != SIZE_MAX) {
            if (f.level > r->items[kept].level)
                r->items[kept].level = f.level;
            continue;
        }
        if (is_one) {
            size_t other = f.a == node ? f.b : f.a;
            char text[sizeof(f.text)];

            kept = n;
            f.a = node;
            f.b = PREFLIGHT_NOBODY;
            memcpy(text, f.text, sizeof(text));
            preflight__say(&f, "with %zu other members, as with %s: %.180s", n_others,
                in->nodes[other].name, text);
        }
        r->items[n++] = f;
    }
    r->n = n;
}

/*
 * When a member has the same fault with at least two others, and with at least three quarters of
 * them, the fault is taken for that member's. The member with the most such pairs is dealt with
 * first, so that its pairs are no longer counted for the other members.
 */
static void merge_fault(struct preflight_report *r, const struct preflight_input *in,
    enum preflight_fault fault, struct tally *t)
{
    for (;;) {
        size_t worst = 0;

        count_fault(r, fault, t, in->n_nodes);
        for (size_t i = 1; i < in->n_nodes; i++)
            if (t->in[i] > t->in[worst])
                worst = i;
        if (t->in[worst] < 2 || 4 * t->in[worst] < 3 * (t->n_present - 1))
            return;
        merge_one(r, in, fault, worst, t->in[worst]);
    }
}

static int merge(struct preflight_report *r, const struct preflight_input *in)
{
    struct tally t = {.in = calloc(in->n_nodes + 1, sizeof(*t.in))};

    if (!t.in)
        return -ENOMEM;
    for (size_t i = 0; i < in->n_nodes; i++)
        t.n_present += in->nodes[i].present;
    for (unsigned f = 0; f < PREFLIGHT_FAULT_N; f++)
        merge_fault(r, in, (enum preflight_fault)f, &t);
    free(t.in);
    return 0;
}

/* ---- verdicts ------------------------------------------------------------------------------ */

/*
 * Gives the job and each pair the level of their gravest finding. A finding about one member counts
 * for each of its pairs.
 */
static void spread(struct preflight_report *r, const struct preflight_input *in)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct preflight_finding *f = &r->items[i];

        if (f->level > r->level)
            r->level = f->level;
        for (size_t p = 0; p < in->n_pairs; p++) {
            const struct preflight_pair *pair = &in->pairs[p];
            bool is_about = f->b == PREFLIGHT_NOBODY ? pair->a == f->a || pair->b == f->a
                                                     : pair->a == f->a && pair->b == f->b;

            if (is_about && f->level > r->pair_levels[p])
                r->pair_levels[p] = f->level;
        }
    }
}

static int compare_findings(const void *x, const void *y)
{
    const struct preflight_finding *a = x;
    const struct preflight_finding *b = y;

    if (a->level != b->level)
        return a->level > b->level ? -1 : 1;
    if (a->fault != b->fault)
        return a->fault < b->fault ? -1 : 1;
    if (a->a != b->a)
        return a->a < b->a ? -1 : 1;
    return (a->b > b->b) - (a->b < b->b);
}

/* Then nobody is reached, and this is why. */
static void judge_interface(struct preflight_report *r, const struct preflight_input *in)
{
    struct preflight_finding *f;

    if (!in->own_fault || in->own_fault[0] == '\0' || in->n_nodes == 0)
        return;
    f = preflight__find(r, PREFLIGHT_INTERFACE, PREFLIGHT_NO, 0, PREFLIGHT_NOBODY);
    preflight__say(
        f, "the interface of %s is not as it should be: %s", in->nodes[0].name, in->own_fault);
    preflight__fix(
        f, "mend that here; the agent goes on trying, and weft status says when it is well");
}

static void judge_live(struct preflight_report *r, const struct preflight_input *in)
{
    struct preflight_finding *f;

    if (!in->skipped_bulk)
        return;
    f = preflight__find(r, PREFLIGHT_LIVE, PREFLIGHT_NOTE, PREFLIGHT_NOBODY, PREFLIGHT_NOBODY);
    for (size_t i = 0; i < in->n_nodes; i++) {
        const struct facts *facts = &in->nodes[i].facts;

        if (!in->nodes[i].present || (facts->jobs == 0 && facts->traffic < PREFLIGHT_LIVE_RATE))
            continue;
        preflight__say(f, "%s has %s, so throughput was not measured; --force does it all the same",
            in->nodes[i].name, facts->jobs > 0 ? "a job of weft run" : "traffic on the overlay");
        return;
    }
}

static void judge_paths(struct preflight_report *r, const struct preflight_input *in)
{
    struct preflight_finding *f;
    size_t n = 0;

    for (size_t i = 0; i < in->n_pairs; i++) {
        const char *path = in->pairs[i].idle[0].path;

        n += strcmp(path, "relay") == 0 || strcmp(path, "stream") == 0;
    }
    if (n == 0)
        return;
    f = preflight__find(r, PREFLIGHT_PATH, PREFLIGHT_NOTE, PREFLIGHT_NOBODY, PREFLIGHT_NOBODY);
    preflight__say(f, "%zu of %zu pairs talk through a hub; weft status says why", n, in->n_pairs);
}

int preflight_judge(struct preflight_report *ret, const struct preflight_input *in)
{
    struct preflight_report r = {.pair_levels = calloc(in->n_pairs + 1, sizeof(*r.pair_levels))};
    uint64_t median = preflight_median_rate(in->pairs, in->n_pairs);

    if (!r.pair_levels)
        return -ENOMEM;
    judge_interface(&r, in);
    for (size_t i = 0; i < in->n_nodes; i++)
        preflight__judge_node(&r, in, i);
    preflight__judge_versions(&r, in);
    for (size_t i = 0; i < in->n_pairs; i++) {
        preflight__judge_pair(&r, in, &in->pairs[i]);
        preflight__judge_rate(&r, in, &in->pairs[i], median);
    }
    judge_live(&r, in);
    judge_paths(&r, in);
    if (merge(&r, in) < 0 || r.failed) {
        preflight_report_deinit(&r);
        return -ENOMEM;
    }
    spread(&r, in);
    if (r.n > 1)
        qsort(r.items, r.n, sizeof(*r.items), compare_findings);
    *ret = r;
    return 0;
}
