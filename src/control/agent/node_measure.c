/* node_measure.c - see node_measure.h. */
#include "agent/node_measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/measure_host.h"
#include "agent/paths/edge/path_driver.h"
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

void node_measure_tell(struct node_measure *nm, const struct snapshot *s, const struct reach *reach,
    const struct path_driver *paths, nsec_t now)
{
    struct service_member *members;
    struct path_view view;
    size_t n = 0;

    if (!nm->host)
        return;
    members = calloc(s->nodes.n + 1, sizeof(*members));
    for (size_t i = 0; members && i < s->nodes.n && n < SERVICE_WIRE_MEMBERS_MAX; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        const struct reach_peer *path = reach_find(reach, node->meta.name);

        members[n].address = node->address4;
        (void)snprintf(
            members[n].name, sizeof(members[n].name), "%.*s", NAME_MAX_LEN, node->meta.name);
        (void)snprintf(members[n].hostname, sizeof(members[n].hostname), "%s",
            node->hostname ? node->hostname : "");
        if (path && (path->kind == PATH_KIND_LAN || path->kind == PATH_KIND_DIRECT) &&
            path_driver_view(paths, node->meta.name, &view, now))
            members[n].underlay = view.remote.addr;
        if (path)
            (void)snprintf(
                members[n].path, sizeof(members[n].path), "%s", path_kind_name(path->kind));
        n++;
    }
    if (members)
        measure_host_tell(nm->host, &snapshot_self(s)->address4, members, n);
    free(members);
}

void node_measure_stop(struct node_measure *nm)
{
    nm->host = measure_host_free(nm->host);
}
