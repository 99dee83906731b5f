/* traffic_edges.c - see traffic_edges.h. */
#include "hub/traffic/traffic_edges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare(const struct traffic_row *a, const struct traffic_row *b)
{
    int order = strcmp(a->from, b->from);

    if (order == 0)
        order = strcmp(a->to, b->to);
    if (order == 0)
        order = strcmp(a->job, b->job);
    return order != 0 ? order : (int)a->path - (int)b->path;
}

static int compare_claims(const void *a, const void *b)
{
    const struct traffic_claim *x = a;
    const struct traffic_claim *y = b;

    return compare(&x->row, &y->row);
}

size_t traffic_claims_of(
    const char *node, const struct traffic_flow *f, struct traffic_claim ret[static 2])
{
    ret[0] = (struct traffic_claim){
        .row = {.from = node, .to = f->peer, .job = f->job, .path = f->path, .bytes = f->sent},
        .is_senders = true,
        .is_only = f->peer[0] == '\0'};
    if (f->peer[0] == '\0')
        return 1;
    ret[1] = (struct traffic_claim){
        .row = {.from = f->peer, .to = node, .job = f->job, .path = f->path, .bytes = f->received}};
    return 2;
}

/* The rows of one direction of one edge: those of the end that has counted more. */
static size_t settle(
    const struct traffic_claim *claims, size_t n, bool senders_only, struct traffic_row *ret)
{
    uint64_t sums[2] = {0, 0};
    size_t n_rows = 0;
    bool is_senders;

    for (size_t i = 0; i < n; i++)
        sums[claims[i].is_senders] = traffic_total(sums[claims[i].is_senders], claims[i].row.bytes);
    is_senders = senders_only || sums[true] >= sums[false];
    for (size_t i = 0; i < n; i++) {
        const struct traffic_row *row = &claims[i].row;

        if (claims[i].is_senders != is_senders || row->bytes == 0)
            continue;
        /* Several meters of a node: one row. */
        if (n_rows > 0 && compare(&ret[n_rows - 1], row) == 0)
            ret[n_rows - 1].bytes = traffic_total(ret[n_rows - 1].bytes, row->bytes);
        else
            ret[n_rows++] = *row;
    }
    return n_rows;
}

static bool is_same_way(const struct traffic_claim *a, const struct traffic_claim *b)
{
    return strcmp(a->row.from, b->row.from) == 0 && strcmp(a->row.to, b->row.to) == 0;
}

size_t traffic_claims_settle(struct traffic_claim *claims, size_t n, struct traffic_row *ret)
{
    size_t n_rows = 0;
    bool is_only = false;

    qsort(claims, n, sizeof(*claims), compare_claims);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && is_same_way(&claims[i], &claims[end]); end++)
            continue;
        /* A sender's claims to "" come first. */
        if (i == 0 || strcmp(claims[i - 1].row.from, claims[i].row.from) != 0)
            is_only = claims[i].is_only;
        n_rows += settle(claims + i, end - i, is_only, ret + n_rows);
    }
    return n_rows;
}

int traffic_edges_make(
    const struct traffic_node *nodes, size_t n, struct traffic_row **ret, size_t *ret_n)
{
    struct traffic_row *rows;
    struct traffic_claim *claims;
    size_t n_claims = 0;

    for (size_t i = 0; i < n; i++)
        n_claims += 2 * nodes[i].traffic.n;
    claims = calloc(n_claims + 1, sizeof(*claims));
    rows = calloc(n_claims + 1, sizeof(*rows));
    if (!claims || !rows) {
        free(claims);
        free(rows);
        return -ENOMEM;
    }
    n_claims = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < nodes[i].traffic.n; k++)
            n_claims +=
                traffic_claims_of(nodes[i].name, &nodes[i].traffic.flows[k], claims + n_claims);
    *ret = rows;
    *ret_n = traffic_claims_settle(claims, n_claims, rows);
    free(claims);
    return 0;
}
