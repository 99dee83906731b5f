/* node_metrics.c - see node_metrics.h. */
#include "agent/node_metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
#include "api/content/route.h"
#include "api/server/server.h"
#include "api/server/tls_front.h"
#include "base/err.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "base/text.h"
#include "health/gpu.h"
#include "mesh/snapshot/snapshot.h"
#include "os/log.h"

/* ---- the port ------------------------------------------------------------------------------- */

/* How often a port that does not open is tried. */
#define RETRY_EACH (2 * NSEC_PER_SEC)

static const char overlay_word[] = "overlay";

/* "overlay" or "overlay:PORT" */
static int parse_overlay(uint16_t *ret_port, const char *text)
{
    const char *rest = text + strlen(overlay_word);
    uint64_t port;

    if (strncmp(text, overlay_word, strlen(overlay_word)) != 0)
        return -EINVAL;
    if (*rest == '\0')
        return 0;
    if (*rest != ':' || parse_u64(&port, rest + 1, 1, UINT16_MAX, "port", NULL) != 0)
        return -EINVAL;
    *ret_port = (uint16_t)port;
    return 0;
}

int metrics_place_parse(struct metrics_place *ret, const char *text, uint16_t port, struct err *e)
{
    struct metrics_place place = {.at = {.port = port}, .tls_dir = ret->tls_dir};

    if (parse_overlay(&place.at.port, text) == 0)
        place.is_overlay = true;
    else if (ip_addr_parse(&place.at.addr, text, NULL) != 0 &&
             endpoint_parse(&place.at, text, NULL) != 0)
        return err_set(e, -EINVAL,
            "\"%.80s\" is no address to listen at: ADDRESS or ADDRESS:PORT, or overlay or "
            "overlay:PORT for the node's overlay address",
            text);
    if (place.at.port < METRICS_PORT_MIN)
        return err_set(e, -EINVAL, "port %u of \"%.80s\" is not from %d to %d", place.at.port, text,
            METRICS_PORT_MIN, UINT16_MAX);
    *ret = place;
    return 0;
}

int metrics_place_server(struct server **ret, const struct metrics_place *place,
    const struct server_config *config, struct err *e)
{
    struct server_config own = *config;
    struct identity id = IDENTITY_NULL;
    _cleanup_(str_deinit) struct str key = STR_NULL;
    _cleanup_(str_deinit) struct str certificate = STR_NULL;
    int r;

    if (!place->tls_dir)
        return server_new(ret, config, e);
    str_addf(&key, "%s/tls.key", place->tls_dir);
    str_addf(&certificate, "%s/tls.crt", place->tls_dir);
    r = identity_open(&id, str_text(&key), str_text(&certificate), e);
    if (r == 0) {
        own.identity = &id;
        r = server_new(ret, &own, e);
    }
    identity_close(&id);
    return r;
}

void metrics_port_init(struct metrics_port *p, const struct metrics_place *place,
    struct server *server, const struct snapshot *s)
{
    *p = (struct metrics_port){.server = server,
        .at = place->at,
        .is_tls = place->tls_dir != NULL,
        .is_overlay = place->is_overlay,
        .members = {s->network.cidr4, s->network.cidr6},
        .own = snapshot_self(s)->address4,
        .due_at = place->at.port == 0 ? NSEC_NEVER : 0};
    if (p->is_overlay)
        p->at.addr = p->own;
}

bool metrics_port_open(struct metrics_port *p, nsec_t now)
{
    char text[ENDPOINT_TEXT_MAX];
    struct err e = ERR_NULL;

    if (now < p->due_at)
        return false;
    if (server_listen_metrics(p->server, &p->at, &p->at.port, &e) == 0) {
        p->is_open = true;
        p->due_at = NSEC_NEVER;
        log_info("figures for Prometheus are at %s://%s/metrics", p->is_tls ? "https" : "http",
            endpoint_format(&p->at, text));
        return true;
    }
    p->due_at = now + RETRY_EACH;
    if (!p->has_failed)
        log_warning("no figures for Prometheus yet, trying again: %s", err_text(&e));
    p->has_failed = true;
    return false;
}

bool metrics_port_admits(
    const struct metrics_port *p, const struct request *rq, struct response *rs)
{
    if (rq->access != API_ACCESS_METRICS || !p->is_overlay ||
        ip_prefix_has(&p->members[0], &rq->from.addr) ||
        ip_prefix_has(&p->members[1], &rq->from.addr))
        return true;
    response_refuse(rs, 403, "this address answers members of the network only");
    return false;
}

uint16_t metrics_port_overlay(const struct metrics_port *p)
{
    static const uint8_t zero[4];
    struct ip_addr any4 = ip_addr_v4(zero);
    bool is_any = ip_addr_is_none(&p->at.addr) || ip_addr_equal(&p->at.addr, &any4);

    return p->is_open && (is_any || ip_addr_equal(&p->at.addr, &p->own)) ? p->at.port : 0;
}

/* ---- peers ---------------------------------------------------------------------------------- */

/* What is so only while the peer answers. */
static void add_path(struct metrics *m, const struct node_metrics_facts *facts,
    const struct reach_peer *path, const struct node *node)
{
    const char *const *labels = METRIC_LABELS(path->node);
    int64_t since = (facts->wall - (facts->now - path->since)) / NSEC_PER_SEC;

    metrics_add_labelled(
        m, METRIC_AGENT_PEER_PATH, METRIC_LABELS(path->node, path_kind_names[path->kind]), 1);
    metrics_add_labelled(m, METRIC_AGENT_PEER_SINCE, labels, (double)since);
    metrics_add_labelled(m, METRIC_AGENT_PEER_MTU, labels, (double)render_mtu(facts->render, node));
    if (!path->is_measured)
        return;
    metrics_add_labelled(
        m, METRIC_AGENT_PEER_RTT, labels, (double)(path->rtt / NSEC_PER_USEC) / 1e6);
    metrics_add_labelled(m, METRIC_AGENT_PEER_LOSS, labels, path->loss_permille / 1e3);
    if (!rtt_spread_is_known(&path->spread))
        return;
    metrics_add_labelled(m, METRIC_AGENT_PEER_RTT_QUANTILE, METRIC_LABELS(path->node, "0.5"),
        path->spread.p50_us / 1e6);
    metrics_add_labelled(m, METRIC_AGENT_PEER_RTT_QUANTILE, METRIC_LABELS(path->node, "0.99"),
        path->spread.p99_us / 1e6);
    metrics_add_labelled(m, METRIC_AGENT_PEER_JITTER, labels, path->spread.jitter_us / 1e6);
}

static void add_peer(struct metrics *m, const struct node_metrics_facts *facts,
    const struct reach_peer *path, const struct node *node, const struct observation *ob)
{
    const char *const *labels = METRIC_LABELS(path->node);
    bool answers = observation_has_session(ob, facts->now) &&
                   !observation_is_silent(ob, facts->now) && path->kind != PATH_KIND_NONE;
    nsec_t unanswered = ob && ob->unanswered_since != 0 ? facts->now - ob->unanswered_since : 0;

    metrics_add_labelled(m, METRIC_AGENT_PEER_SESSION, labels, answers);
    metrics_add_labelled(m, METRIC_AGENT_PEER_ALARM, labels, path->is_alarm);
    if (answers)
        add_path(m, facts, path, node);
    if (!ob || ob->handshake_at == 0)
        return;
    metrics_add_labelled(m, METRIC_AGENT_PEER_HANDSHAKE_AGE, labels,
        (double)observation_age_seconds(ob, facts->now));
    metrics_add_labelled(
        m, METRIC_AGENT_PEER_UNANSWERED, labels, (double)(unanswered / NSEC_PER_SEC));
    metrics_add_labelled(m, METRIC_AGENT_PEER_BYTES, METRIC_LABELS(path->node, "received"),
        (double)ob->facts.rx_bytes);
    metrics_add_labelled(
        m, METRIC_AGENT_PEER_BYTES, METRIC_LABELS(path->node, "sent"), (double)ob->facts.tx_bytes);
}

void node_metrics_add_peers(struct metrics *m, const struct node_metrics_facts *facts)
{
    const struct reach *reach = facts->reach;
    size_t n_left_out = 0;
    size_t n = 0;

    for (size_t i = 0; i < reach->n; i++) {
        const struct reach_peer *path = &reach->items[i];
        const struct node *node = snapshot_find_node(facts->render->snapshot, path->node);
        const struct observation *ob = node ? observe_find(facts->seen, &node->key) : NULL;

        if (!node || ((!ob || ob->handshake_at == 0) && !path->is_alarm))
            continue;
        if (n == NODE_METRICS_PEERS_MAX) {
            n_left_out++;
            continue;
        }
        n++;
        add_peer(m, facts, path, node, ob);
    }
    metrics_add(m, METRIC_AGENT_PEERS, (double)reach->n);
    metrics_add(m, METRIC_AGENT_PEERS_LEFT_OUT, (double)n_left_out);
}

/* ---- GPUs ----------------------------------------------------------------------------------- */

/* They are asked each minute, which takes most of one. */
#define GPUS_OLD_S 240

static void add_gpu(struct metrics *m, const struct gpu *g)
{
    const char *const *labels = METRIC_LABELS(g->bus);

    if (g->is_lost)
        return;
    if (g->has_use)
        metrics_add_labelled(m, METRIC_AGENT_GPU_USE, labels, g->use / 100.0);
    if (g->memory > 0) {
        metrics_add_labelled(m, METRIC_AGENT_GPU_MEMORY, labels, (double)g->memory);
        metrics_add_labelled(m, METRIC_AGENT_GPU_MEMORY_USED, labels, (double)g->memory_used);
    }
    if (g->has_ecc)
        metrics_add_labelled(m, METRIC_AGENT_GPU_ERRORS, labels, (double)g->ecc);
}

void node_metrics_add_gpus(struct metrics *m, const struct gpu_watch *gpus, int64_t at)
{
    if (!gpus || at - gpus->at > GPUS_OLD_S)
        return;
    for (unsigned i = 0; gpus->now.driver == GPU_DRIVER_OK && i < gpus->now.n_gpus; i++)
        add_gpu(m, &gpus->now.gpus[i]);
    for (unsigned i = 0; i < gpus->n_xids; i++) {
        char xid[16];

        (void)snprintf(xid, sizeof(xid), "%" PRIu32, gpus->xids[i].xid);
        if (at - gpus->xids[i].at < GPU_XID_FOR_S)
            metrics_add_labelled(
                m, METRIC_AGENT_GPU_FAULT, METRIC_LABELS(gpus->xids[i].bus, xid), 1);
    }
}
