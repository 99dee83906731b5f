/* price.c - see price.h. */
#include "cost/price.h"

#include <string.h>

#include "mesh/object/traffic.h"

#define GB 1e9

static const char *island_of(const struct price_facts *facts, const char *node)
{
    const char *island = json_string_value(json_object_get(facts->islands, node));

    return island ? island : "";
}

static const struct prices_island *find_row(const struct prices *p, const char *name)
{
    for (size_t i = 0; i < p->n_islands; i++)
        if (strcmp(p->islands[i].name, name) == 0)
            return &p->islands[i];
    return NULL;
}

/* The node's own row, else its island's, else the one without a name; NULL: there is none. */
static const struct prices_island *row_of(const struct price_facts *facts, const char *node)
{
    const struct prices_island *row = NULL;

    if (!facts->prices || !node)
        return NULL;
    if (node[0])
        row = find_row(facts->prices, node);
    if (!row)
        row = find_row(facts->prices, island_of(facts, node));
    return row ? row : find_row(facts->prices, "");
}

void price_sum_add(struct price_sum *sum, const struct price_sum *more)
{
    sum->bytes = traffic_total(sum->bytes, more->bytes);
    sum->alone = traffic_total(sum->alone, more->alone);
    sum->unpriced = traffic_total(sum->unpriced, more->unpriced);
    sum->money += more->money;
}

static void add_leaving(struct price_sum *sum, const struct prices_island *row, uint64_t bytes)
{
    if (row && row->has_egress)
        sum->money += (double)bytes / GB * (row->egress + row->nat);
    else
        sum->unpriced = traffic_total(sum->unpriced, bytes);
}

static bool is_hub(const struct price_facts *facts, const char *node)
{
    bool is_one = strcmp(node, facts->hub) == 0;

    for (size_t i = 0; !is_one && i < json_array_size(facts->hubs); i++) {
        const char *name = json_string_value(json_array_get(facts->hubs, i));

        is_one = name && strcmp(node, name) == 0;
    }
    return is_one;
}

void price_add(struct price_sum *sum, const struct price_facts *facts, const char *from,
    const char *to, enum path_kind path, uint64_t bytes)
{
    const struct prices_island *row = row_of(facts, from);
    const char *island = island_of(facts, from);
    bool is_relayed = path == PATH_KIND_RELAY || path == PATH_KIND_STREAM;
    bool is_inside = path == PATH_KIND_LAN || (!is_relayed && island[0] && to[0] &&
                                                  strcmp(island, island_of(facts, to)) == 0);

    sum->bytes = traffic_total(sum->bytes, bytes);
    if (is_inside && row && row->has_cross_zone)
        sum->money += (double)bytes / GB * row->cross_zone;
    else if (is_inside)
        sum->unpriced = traffic_total(sum->unpriced, bytes);
    else
        add_leaving(sum, row, bytes);
    /* What goes to a hub itself ends there. */
    if (is_relayed && facts->hub && !is_hub(facts, to) && !is_hub(facts, from))
        add_leaving(sum, row_of(facts, facts->hub), bytes);
}
