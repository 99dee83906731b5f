/* hosts.c - see hosts.h. The names; the text of the file is in hosts_text.c. */
#include "mesh/names/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/text.h"
#include "mesh/names/reserved.h"
#include "mesh/render/render.h"
#include "mesh/snapshot/snapshot.h"

/* Bytes of the hub's key in an owner: enough to tell the hubs of one machine apart. */
#define HUB_ID_LEN 4

const char *hosts_owner(const struct snapshot *s, char buf[static HOSTS_OWNER_MAX])
{
    const struct node *hub = render_hub(s);
    char id[2 * HUB_ID_LEN + 1] = "";

    if (hub)
        hex_encode(hub->key.b, HUB_ID_LEN, id);
    (void)snprintf(buf, HOSTS_OWNER_MAX, "%.*s/%.*s/%s", NAME_MAX_LEN, s->network.meta.name,
        NAME_MAX_LEN, s->self, id);
    return buf;
}

/* ---- extras --------------------------------------------------------------------------------- */

static int compare_hostnames(const void *a, const void *b)
{
    return strcmp((*(struct hosts_extra *const *)a)->name, (*(struct hosts_extra *const *)b)->name);
}

/* A host name that two nodes claim is nobody's. */
static void mark_claimed(struct hosts_extra *extras, size_t n)
{
    _cleanup_(freep) struct hosts_extra **sorted = calloc(n + 1, sizeof(struct hosts_extra *));
    size_t m = 0;

    for (size_t i = 0; i < n; i++) {
        /* Without memory to compare them, no host name is given. */
        if (extras[i].is_hostname && sorted)
            sorted[m++] = &extras[i];
        else if (extras[i].is_hostname)
            extras[i].verdict = HOSTS_CLAIMED;
    }
    if (m > 0)
        qsort(sorted, m, sizeof(struct hosts_extra *), compare_hostnames);
    for (size_t i = 1; i < m; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            sorted[i - 1]->verdict = sorted[i]->verdict = HOSTS_CLAIMED;
}

static enum hosts_verdict judge_bare(const struct node *node)
{
    bool is_hub = node->hub && strcmp(node->meta.name, "hub") == 0;

    return reserved_is(node->meta.name) && !is_hub ? HOSTS_RESERVED : HOSTS_KEPT;
}

static enum hosts_verdict judge_hostname(const struct snapshot *s, const struct node *node)
{
    if (reserved_is(node->hostname))
        return HOSTS_RESERVED;
    return snapshot_find_node(s, node->hostname) ? HOSTS_CLAIMED : HOSTS_KEPT;
}

struct hosts_extra *hosts_list_extras(const struct snapshot *s, size_t *ret_n)
{
    struct hosts_extra *extras;
    size_t n = 0;

    *ret_n = 0;
    if (s->nodes.n > HOSTS_EXTRAS_MAX)
        return NULL;
    extras = calloc(2 * s->nodes.n + 1, sizeof(*extras));
    if (!extras)
        return NULL;
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        extras[n++] =
            (struct hosts_extra){.name = node->meta.name, .node = i, .verdict = judge_bare(node)};
        if (node->hostname && strcmp(node->hostname, node->meta.name) != 0)
            extras[n++] = (struct hosts_extra){.name = node->hostname,
                .node = i,
                .is_hostname = true,
                .verdict = judge_hostname(s, node)};
    }
    mark_claimed(extras, n);
    *ret_n = n;
    return extras;
}

const char *hosts_describe(const struct hosts_extra *x, char buf[static 128])
{
    char text[IP_ADDR_TEXT_MAX];

    buf[0] = '\0';
    switch (x->verdict) {
    case HOSTS_RESERVED:
        (void)snprintf(buf, 128, "the name is reserved");
        break;
    case HOSTS_CLAIMED:
        (void)snprintf(buf, 128, "it is the name of another node or of its machine, too");
        break;
    case HOSTS_IN_FILE:
        (void)snprintf(buf, 128, "another line of the hosts file has it");
        break;
    case HOSTS_ELSEWHERE:
        if (ip_addr_is_none(&x->elsewhere))
            (void)snprintf(buf, 128, "this machine's name server knows it");
        else
            (void)snprintf(buf, 128, "this machine's resolver leads it to %s",
                ip_addr_format(&x->elsewhere, text));
        break;
    case HOSTS_PENDING:
        (void)snprintf(buf, 128, "this machine's resolver is being asked whether it knows it");
        break;
    case HOSTS_KEPT:
    case HOSTS_VERDICT_N:
        break;
    }
    return buf;
}

/* ---- the block ------------------------------------------------------------------------------ */

/* The hub that serves the rendezvous where there are several hubs; NULL: not said, or a node has
 * the name. */
static const struct node *find_rendezvous(const struct snapshot *s)
{
    const struct node *owner = NULL;

    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        if (strcmp(node->meta.name, HOSTS_RENDEZVOUS) == 0)
            return NULL;
        if (node->hub && node->hub->rendezvous_epoch != 0 &&
            (!owner || node->hub->rendezvous_epoch > owner->hub->rendezvous_epoch))
            owner = node;
    }
    return owner;
}

/* @extras: of this node only. @meets: it serves the rendezvous. */
static void add_line(struct str *out, const struct ip_addr *addr, const struct node *node,
    const char *network, const struct hosts_extra *extras, size_t n_extras, bool meets)
{
    char text[IP_ADDR_TEXT_MAX];

    str_addf(out, "%s\t%s.%s." HOSTS_DOMAIN, ip_addr_format(addr, text), node->meta.name, network);
    for (size_t i = 0; i < n_extras; i++)
        if (extras[i].verdict == HOSTS_KEPT)
            str_addf(out, " %s", extras[i].name);
    if (meets)
        str_addf(out, " " HOSTS_RENDEZVOUS ".%s." HOSTS_DOMAIN, network);
    str_add(out, "\n");
}

void hosts_add_block(struct str *out, const struct snapshot *s, const struct hosts_extra *extras,
    size_t n_extras, bool with_v6)
{
    const char *network = s->network.meta.name;
    const struct node *rendezvous = find_rendezvous(s);
    size_t at = 0;

    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        size_t first = at;

        while (at < n_extras && extras[at].node == i)
            at++;
        add_line(
            out, &node->address4, node, network, &extras[first], at - first, node == rendezvous);
        if (with_v6)
            add_line(out, &node->address6, node, network, &extras[first], at - first,
                node == rendezvous);
    }
}
