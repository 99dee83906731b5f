/* edge_report.c - see edge_report.h. */
#include "monitor/edge_report.h"

#include <stdlib.h>
#include <string.h>

void edge_report_forget(struct edge_report *er)
{
    free(er->items);
    er->items = NULL;
    er->n = 0;
}

void edge_report_begin(struct edge_report *er)
{
    er->begins = true;
    er->is_anew = false;
    er->has_more = true;
}

/* A report that is being made. */
struct making {
    const struct edge_report_kind *kind;
    const void *ctx;
    size_t max;
    json_t *edges;
    char *next; /* replaces what was said; it has room for all edges */
    size_t n_next;
    bool has_more;
};

/* @seen: the edge; NULL: it is gone. @said: what was said of it last; NULL: nothing. */
static void add(
    struct making *m, const struct edge_report_head *seen, const struct edge_report_head *said)
{
    struct edge_report_head *next = (void *)(m->next + m->n_next * m->kind->size);
    bool is_known =
        seen && said && said->is_known && !said->is_gone && m->kind->is_same(said, seen);

    if (is_known || json_object_size(m->edges) >= m->max) {
        m->has_more |= !is_known;
        if (said)
            memcpy(next, said, m->kind->size);
        m->n_next += said != NULL;
        return;
    }
    memcpy(next, seen ? seen : said, m->kind->size);
    m->n_next++;
    next->is_sent = true;
    next->is_known = false;
    next->is_gone = !seen;
    (void)json_object_set_new(
        m->edges, next->peer, seen ? m->kind->encode(seen, m->ctx) : json_null());
}

json_t *edge_report_make(
    struct edge_report *er, const void *seen, size_t n, size_t max, const void *ctx)
{
    size_t size = er->kind->size;
    struct making m = {.kind = er->kind, .ctx = ctx, .max = max, .edges = json_object()};
    const char *a = seen;
    const char *b;

    if (er->begins)
        edge_report_forget(er);
    b = er->items;
    m.next = calloc(n + er->n + 1, size);
    if (!m.next || !m.edges) {
        free(m.next);
        json_decref(m.edges);
        return NULL;
    }
    /* Both lists are in order of the names. */
    for (size_t i = 0, k = 0; i < n || k < er->n;) {
        const struct edge_report_head *next = i < n ? (const void *)(a + i * size) : NULL;
        const struct edge_report_head *said = k < er->n ? (const void *)(b + k * size) : NULL;
        int order = !next ? 1 : !said ? -1 : strcmp(next->peer, said->peer);

        add(&m, order <= 0 ? next : NULL, order >= 0 ? said : NULL);
        i += order <= 0;
        k += order >= 0;
    }
    edge_report_forget(er);
    er->items = m.next;
    er->n = m.n_next;
    er->has_more = m.has_more;
    er->ends = (er->begins || er->is_anew) && !m.has_more;
    return m.edges;
}

void edge_report_sign(const struct edge_report *er, json_t *body)
{
    (void)json_object_set_new(body, "run", json_integer((json_int_t)er->run));
    (void)json_object_set_new(body, "number", json_integer((json_int_t)er->number + 1));
    if (er->begins)
        (void)json_object_set_new(body, "begins", json_true());
    if (er->ends)
        (void)json_object_set_new(body, "ends", json_true());
}

void edge_report_on_result(struct edge_report *er, enum edge_report_result result)
{
    size_t n = 0;

    for (size_t i = 0; i < er->n; i++) {
        struct edge_report_head *t = (void *)((char *)er->items + i * er->kind->size);

        t->is_known |= t->is_sent && result == EDGE_REPORT_TAKEN;
        t->is_sent = false;
        if (!(t->is_known && t->is_gone))
            memmove((char *)er->items + n++ * er->kind->size, t, er->kind->size);
    }
    er->n = n;
    if (result == EDGE_REPORT_TAKEN) {
        er->number++;
        er->is_anew = (er->begins || er->is_anew) && !er->ends;
        er->begins = false;
    } else if (result == EDGE_REPORT_AGAIN) {
        edge_report_begin(er);
    }
}
