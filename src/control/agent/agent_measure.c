/* agent_measure.c - has the node's measuring process, and tells it who the members are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/measure_host.h"
#include "base/err.h"
#include "measure/order.h"
#include "measure/service.h"
#include "measure/service_wire.h"
#include "os/clock.h"

void agent__start_measuring(struct agent *a)
{
    struct service_config config = {
        .interface = a->state.interface, .socket_path = a->measure_path, .port = PROBE_PORT};
    struct err e = ERR_NULL;

    if (a->config->no_measure)
        return;
    (void)snprintf(a->measure_path, sizeof(a->measure_path), "%s%s", a->config->socket_path,
        AGENT_MEASURE_SUFFIX);
    /* A node without it is a node all the same. */
    if (measure_host_new(&a->measure, &a->loop, &config, &a->config->memlock, &e) < 0)
        log_warning("weft preflight and weft bench will not find this node: %s", err_text(&e));
    agent__tell_members(a);
}

void agent__tell_members(struct agent *a)
{
    const struct snapshot *s = &a->snapshot;
    struct service_member *members;
    nsec_t now = clock_now();
    struct path_view view;
    size_t n = 0;

    if (!a->measure)
        return;
    members = calloc(s->nodes.n + 1, sizeof(*members));
    for (size_t i = 0; members && i < s->nodes.n && n < SERVICE_WIRE_MEMBERS_MAX; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        const struct reach_peer *path = reach_find(&a->reach, node->meta.name);

        members[n].address = node->address4;
        (void)snprintf(
            members[n].name, sizeof(members[n].name), "%.*s", NAME_MAX_LEN, node->meta.name);
        (void)snprintf(members[n].hostname, sizeof(members[n].hostname), "%s",
            node->hostname ? node->hostname : "");
        if (path && (path->kind == PATH_KIND_LAN || path->kind == PATH_KIND_DIRECT) &&
            finder_view(a->finder, node->meta.name, &view, now))
            members[n].underlay = view.remote.addr;
        if (path)
            (void)snprintf(
                members[n].path, sizeof(members[n].path), "%s", path_kind_name(path->kind));
        n++;
    }
    if (members)
        measure_host_tell(a->measure, &snapshot_self(s)->address4, members, n);
    free(members);
}

void agent__stop_measuring(struct agent *a)
{
    a->measure = measure_host_free(a->measure);
}
