/* merging.c - see merging.h. */
#include "packet/merging.h"

#define PERCENT 100

/* Could @b, which came alone behind @a, have come in one run with it? */
static bool could_merge(const struct udp_run *a, const struct udp_run *b)
{
    return a->seg == b->seg && a->len == a->seg && b->len == b->seg && a->tos == b->tos &&
           udp_path_equal(&a->path, &b->path);
}

/* A window is of one interface, which the first that is counted says. */
static bool admit(struct merging_window *w, const struct udp_run *run)
{
    if (w->n_apart + w->n_merged == 0)
        w->ifindex = run->path.ifindex;
    return w->ifindex == run->path.ifindex;
}

static void conclude(struct merging *m, const struct merging_window *w, nsec_t now)
{
    struct merging_seen before = merging_read(m, now);
    uint64_t all = (uint64_t)w->n_merged + w->n_apart;
    struct merging_seen seen = {
        .ifindex = w->ifindex, .percent = (uint32_t)((uint64_t)w->n_merged * PERCENT / all)};

    if (seen.ifindex != before.ifindex && merging_is_low(&before) && !merging_is_low(&seen) &&
        before.age < MERGING_STAYS)
        return;
    atomic_store(&m->seen, (uint64_t)seen.ifindex << 32 | seen.percent);
    atomic_store(&m->at, now);
}

void merging_take(
    struct merging *m, struct merging_window *w, const struct udp_run *runs, unsigned n, nsec_t now)
{
    if (now - w->since > MERGING_WITHIN)
        *w = (struct merging_window){.since = now};
    for (unsigned i = 0; i < n; i++) {
        unsigned in_run = udp_run_count(&runs[i]);

        if (in_run > 1 && admit(w, &runs[i]))
            w->n_merged += in_run - 1;
        else if (i > 0 && could_merge(&runs[i - 1], &runs[i]) && admit(w, &runs[i]))
            w->n_apart++;
    }
    if (w->n_apart + w->n_merged < MERGING_ENOUGH)
        return;
    conclude(m, w, now);
    *w = (struct merging_window){.since = now};
}

struct merging_seen merging_read(const struct merging *m, nsec_t now)
{
    nsec_t at = atomic_load(&m->at);
    uint64_t seen = atomic_load(&m->seen);

    if (at == 0 || now - at > MERGING_HOLDS)
        return (struct merging_seen){.ifindex = 0};
    return (struct merging_seen){
        .ifindex = (uint32_t)(seen >> 32), .percent = (uint32_t)seen, .age = now - at};
}

bool merging_is_low(const struct merging_seen *seen)
{
    return seen->ifindex != 0 && seen->percent < MERGING_PERCENT_LEAST;
}
