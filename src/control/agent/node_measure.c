/* node_measure.c - see node_measure.h. */
#include "agent/node_measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/measure_host.h"
#include "agent/paths/edge/reach.h"
#include "base/err.h"
#include "measure/order.h"
#include "measure/service.h"
#include "measure/service_wire.h"
#include "os/log.h"

void node_measure_start(struct node_measure *nm, uv_loop_t *loop, const char *interface,
    const char *socket_path, const struct rlimit *memlock)
{
    struct service_config config = {
        .interface = interface, .socket_path = nm->path, .port = PROBE_PORT};
    struct err e = ERR_NULL;

    (void)snprintf(nm->path, sizeof(nm->path), "%s%s", socket_path, AGENT_MEASURE_SUFFIX);
    if (measure_host_new(&nm->host, loop, &config, memlock, &e) < 0)
        log_warning("weft preflight and weft bench will not find this node: %s", err_text(&e));
}

static void set_member(
    struct service_member *m, const struct node *node, const struct reach_peer *path)
{
    *m = (struct service_member){.address = node->address4, .is_hub = node->hub != NULL};
    (void)snprintf(m->name, sizeof(m->name), "%.*s", NAME_MAX_LEN, node->meta.name);
    (void)snprintf(m->hostname, sizeof(m->hostname), "%s", node->hostname ? node->hostname : "");
    if (!path)
        return;
    m->underlay = path->underlay;
    (void)snprintf(m->path, sizeof(m->path), "%s", path_kind_name(path->kind));
}

size_t node_measure_list(
    const struct snapshot *s, const struct reach *reach, struct service_member *ret, size_t cap)
{
    size_t n = s->nodes.n < cap ? s->nodes.n : cap;

    for (size_t i = 0; i < n; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        set_member(&ret[i], node, reach_find(reach, node->meta.name));
    }
    return n;
}

void node_measure_tell(struct node_measure *nm, const struct snapshot *s, const struct reach *reach)
{
    struct service_member *members;

    if (!nm->host)
        return;
    members = calloc(s->nodes.n + 1, sizeof(*members));
    if (members)
        measure_host_tell(nm->host, &snapshot_self(s)->address4, members,
            node_measure_list(s, reach, members, SERVICE_WIRE_MEMBERS_MAX));
    free(members);
}

void node_measure_stop(struct node_measure *nm)
{
    nm->host = measure_host_free(nm->host);
}
