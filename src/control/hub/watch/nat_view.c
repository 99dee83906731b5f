/* nat_view.c - see nat_view.h. */
#include "hub/watch/nat_view.h"

#include <stdio.h>
#include <string.h>

#include "mesh/object/fields.h"

/* A node's label; NULL: it has none of that name. */
static const char *label_of(const struct node *node, const char *key)
{
    for (unsigned i = 0; i < node->n_labels; i++)
        if (strcmp(node->labels[i].key, key) == 0)
            return node->labels[i].value;
    return NULL;
}

/* "aws", of a fabric's key "aws-zone/use1-az4"; "": it names no cloud. */
static void find_cloud(const char *fabric, char ret[static OBJECT_LABEL_MAX + 1])
{
    static const char *const clouds[] = {"aws", "gce", "azure"};
    json_auto_t *json = fabric ? json_loads(fabric, 0, NULL) : NULL;
    const json_t *key;
    size_t i;

    ret[0] = '\0';
    json_array_foreach(json_object_get(json, "keys"), i, key) {
        const char *text = json_string_value(json_object_get(key, "key"));

        for (size_t k = 0; text && k < sizeof(clouds) / sizeof(*clouds); k++)
            if (strncmp(text, clouds[k], strlen(clouds[k])) == 0 && text[strlen(clouds[k])] == '-')
                (void)snprintf(ret, OBJECT_LABEL_MAX + 1, "%s", clouds[k]);
    }
}

static void name_group(struct nat_group *g, const struct model_node *node)
{
    const char *provider = label_of(&node->spec, "provider");
    const char *region = label_of(&node->spec, "region");

    if (provider)
        (void)snprintf(g->provider, sizeof(g->provider), "%s", provider);
    else
        find_cloud(node->reported->heard.report.fabric, g->provider);
    (void)snprintf(g->region, sizeof(g->region), "%s", region ? region : "");
}

static int compare(const struct nat_group *a, const struct nat_group *b)
{
    int order = strcmp(a->provider, b->provider);

    return order ? order : strcmp(a->region, b->region);
}

/* The group that is called like @like; NULL: there is no room for one more. */
static struct nat_group *open_group(struct nat_view *v, const struct nat_group *like)
{
    size_t i = 0;

    while (i < v->n && compare(&v->groups[i], like) < 0)
        i++;
    if (i < v->n && compare(&v->groups[i], like) == 0)
        return &v->groups[i];
    if (v->n == NAT_VIEW_GROUPS_MAX)
        return NULL;
    memmove(&v->groups[i + 1], &v->groups[i], (v->n - i) * sizeof(*v->groups));
    v->groups[i] = *like;
    v->n++;
    return &v->groups[i];
}

/* The least and the greatest of what is known. */
static void take(uint32_t range[static 2], uint32_t ms)
{
    if (ms == 0)
        return;
    range[0] = range[0] == 0 || ms < range[0] ? ms : range[0];
    range[1] = ms > range[1] ? ms : range[1];
}

static void add_node(struct nat_view *v, const struct model_node *node)
{
    const struct report_nat *nat = &node->reported->heard.report.nat;
    struct nat_group like = {.provider = ""};
    struct nat_group *g;

    name_group(&like, node);
    g = open_group(v, &like);
    if (!g) {
        v->n_left_out++;
        return;
    }
    g->n_nodes++;
    if (!nat->is_measured)
        return;
    g->n_measured++;
    g->n_natted += nat->is_natted;
    take(g->forgotten_ms, nat->forgotten_ms);
    take(g->survived_ms, nat->survived_ms);
}

void nat_view_make(struct nat_view *ret, const struct model_network *net)
{
    ret->n = ret->n_left_out = 0;
    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct model_node *node = model_node_at(net, i);

        if (node_has_agent(&node->spec) && !node->reported->is_down)
            add_node(ret, node);
    }
}

static json_t *encode_range(const uint32_t range[static 2])
{
    if (range[0] == 0)
        return json_null();
    return json_pack("{s:f, s:f}", "least", range[0] / 1000.0, "most", range[1] / 1000.0);
}

json_t *nat_view_encode(const struct nat_view *v, const struct network *net)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < v->n; i++) {
        const struct nat_group *g = &v->groups[i];

        fields_append(&list,
            json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:o}", "provider", g->provider, "region",
                g->region, "nodes", (json_int_t)g->n_nodes, "natted", (json_int_t)g->n_natted,
                "measured", (json_int_t)g->n_measured, "forgottenSeconds",
                encode_range(g->forgotten_ms), "survivedSeconds", encode_range(g->survived_ms)));
    }
    return json_pack("{s:o, s:o, s:I}", "keepaliveSeconds",
        net->keepalive == NETWORK_KEEPALIVE_AUTO ? json_null() : json_integer(net->keepalive),
        "providers", list, "leftOut", (json_int_t)v->n_left_out);
}
