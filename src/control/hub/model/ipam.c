/* ipam.c - see ipam.h. */
#include "ipam.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"

uint32_t ipam_capacity(const struct ip_prefix *cidr4, const struct ip_prefix *cidr6)
{
    uint64_t n4 = ip_prefix_size(cidr4) - 2;
    uint64_t n6 = ip_prefix_size(cidr6) - 1;
    uint64_t n = n4 < n6 ? n4 : n6;

    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX - 1;
}

void ipam_init(struct ipam *p, uint32_t capacity)
{
    *p = (struct ipam){.capacity = capacity, .next = 1};
}

void ipam_deinit(struct ipam *p)
{
    free(p->runs);
    p->runs = NULL;
    p->n_runs = 0;
    p->cap = 0;
}

/* A run and a number in it are equal. */
static int compare(const void *item, const void *wanted)
{
    const struct ipam_run *run = item;
    uint32_t n = *(const uint32_t *)wanted;

    return run->last < n ? -1 : run->first > n;
}

/* Index of the first run that does not end before @n. */
static size_t find_run(const struct ipam *p, uint32_t n)
{
    bool found;

    return sorted_place(p->runs, p->n_runs, sizeof(*p->runs), compare, &n, &found);
}

static int insert_run(struct ipam *p, size_t i, struct ipam_run run)
{
    struct ipam_run *runs = sorted_open(p->runs, p->n_runs, sizeof(run), i, &p->cap);

    if (!runs)
        return -ENOMEM;
    p->runs = runs;
    runs[i] = run;
    p->n_runs++;
    return 0;
}

static void delete_run(struct ipam *p, size_t i)
{
    p->n_runs--;
    memmove(p->runs + i, p->runs + i + 1, (p->n_runs - i) * sizeof(*p->runs));
}

int ipam_take(struct ipam *p, uint32_t n)
{
    size_t i = find_run(p, n);
    bool touches_before = i > 0 && p->runs[i - 1].last + 1 == n;
    bool touches_after = i < p->n_runs && p->runs[i].first == n + 1;

    if (n > p->high)
        p->high = n;
    if (i < p->n_runs && p->runs[i].first <= n)
        return 0;
    if (touches_before && touches_after) {
        p->runs[i - 1].last = p->runs[i].last;
        delete_run(p, i);
    } else if (touches_before) {
        p->runs[i - 1].last = n;
    } else if (touches_after) {
        p->runs[i].first = n;
    } else {
        return insert_run(p, i, (struct ipam_run){n, n});
    }
    return 0;
}

int ipam_release(struct ipam *p, uint32_t n)
{
    size_t i = find_run(p, n);
    struct ipam_run run;
    int r = 0;

    if (i == p->n_runs || p->runs[i].first > n)
        return 0;
    run = p->runs[i];
    if (run.first == n && run.last == n) {
        delete_run(p, i);
    } else if (run.first == n) {
        p->runs[i].first++;
    } else if (run.last == n) {
        p->runs[i].last--;
    } else {
        r = insert_run(p, i + 1, (struct ipam_run){n + 1, run.last});
        if (r == 0)
            p->runs[i].last = n - 1;
    }
    return r;
}

/* The first free number from @n on; beyond the capacity when there is none. */
static uint32_t free_from(const struct ipam *p, uint32_t n)
{
    size_t i = find_run(p, n);

    /* Runs do not touch, so what follows one is free. */
    return i < p->n_runs && p->runs[i].first <= n ? p->runs[i].last + 1 : n;
}

uint32_t ipam_next(const struct ipam *p, bool is_wary)
{
    bool is_behind = is_wary || p->forgot;
    uint32_t n = free_from(p, is_behind && p->high >= p->next ? p->high + 1 : p->next);

    if (is_wary && p->forgot)
        return 0;
    if (n > p->capacity && !is_wary)
        n = free_from(p, 1);
    return n <= p->capacity ? n : 0;
}

struct ip_addr ipam_address(const struct ip_prefix *cidr, uint32_t n)
{
    struct ip_addr a = {0};

    /* False only beyond the capacity, which has been checked against both blocks. */
    (void)ip_prefix_nth(cidr, n, &a);
    return a;
}

uint32_t ipam_number(const struct ip_prefix *cidr, const struct ip_addr *address)
{
    uint32_t n = 0;
    struct ip_addr back;

    if (!ip_prefix_has(cidr, address))
        return 0;
    for (int i = 0; i < 4; i++)
        n = n << 8 | (uint32_t)(address->b[12 + i] ^ cidr->addr.b[12 + i]);
    return ip_prefix_nth(cidr, n, &back) && ip_addr_equal(&back, address) ? n : 0;
}
