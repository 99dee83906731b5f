/* job_known.c - see job_known.h. */
#include "health/job_known.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "health/job_health.h"

/* Messages that are shorter wait for each other. */
#define SEGMENT_MIN 400

void job_known_deinit(struct job_health *h)
{
    for (size_t i = 0; i < h->n; i++) {
        free(h->nodes[i]->lines);
        free(h->nodes[i]->flight);
        free(h->nodes[i]);
    }
    free(h->nodes);
    *h = (struct job_health){.n = 0};
}

static int compare_name(const void *item, const void *wanted)
{
    const struct health_node *const *node = item;

    return strcmp((*node)->name, wanted);
}

struct health_node *job_known_find_node(const struct job_health *h, const char *name)
{
    bool found;
    size_t i = sorted_place(h->nodes, h->n, sizeof(*h->nodes), compare_name, name, &found);

    return found ? h->nodes[i] : NULL;
}

struct health_node *job_known_node(struct job_health *h, const char *name)
{
    bool found;
    size_t place = sorted_place(h->nodes, h->n, sizeof(*h->nodes), compare_name, name, &found);
    struct health_node **nodes;
    struct health_node *node;

    if (found)
        return h->nodes[place];
    node = h->n < JOB_HEALTH_NODES_MAX ? calloc(1, sizeof(*node)) : NULL;
    nodes = node ? sorted_open(h->nodes, h->n, sizeof(*nodes), place, &h->cap) : NULL;
    if (!nodes) {
        free(node);
        return NULL;
    }
    (void)snprintf(node->name, sizeof(node->name), "%s", name);
    h->nodes = nodes;
    h->nodes[place] = node;
    h->n++;
    return node;
}

static int compare_to(const void *item, const void *wanted)
{
    const struct line *line = item;
    uintptr_t a = (uintptr_t)line->to;
    uintptr_t b = (uintptr_t)wanted;

    return (a > b) - (a < b);
}

struct line *job_known_find_line(const struct health_node *from, const struct health_node *to)
{
    bool found;
    size_t i =
        sorted_place(from->lines, from->n_lines, sizeof(*from->lines), compare_to, to, &found);

    return found ? &from->lines[i] : NULL;
}

struct line *job_known_line(struct health_node *from, struct health_node *to)
{
    bool found;
    size_t place =
        sorted_place(from->lines, from->n_lines, sizeof(*from->lines), compare_to, to, &found);
    struct line *lines;

    if (found)
        return &from->lines[place];
    lines = from->n_lines < JOB_HEALTH_LINES_MAX
                ? sorted_open(from->lines, from->n_lines, sizeof(*lines), place, &from->cap_lines)
                : NULL;
    if (!lines)
        return NULL;
    from->lines = lines;
    lines[place] = (struct line){.to = to};
    from->n_lines++;
    return &lines[place];
}

bool job_known_is_there(const struct health_node *node)
{
    return node->n > 0 && !node->is_ended;
}

/* No line is faster, bytes/s. */
#define RATE_MOST 1e15

uint64_t job_known_rate(uint64_t bytes, uint32_t ms)
{
    double rate = ms > 0 ? (double)bytes * 1000 / ms : 0;

    return (uint64_t)(rate < RATE_MOST ? rate : RATE_MOST);
}

bool job_known_is_bulk(const struct job_flow *f)
{
    return f->sent / (f->segments > 0 ? f->segments : 1) >= SEGMENT_MIN;
}
