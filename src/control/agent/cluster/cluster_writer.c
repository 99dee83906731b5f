/* cluster_writer.c - see cluster_writer.h. */
#include "agent/cluster/cluster_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/cluster_parts.h"
#include "backends/kubernetes/kube_part.h"
#include "base/err.h"
#include "mesh/object/mesh_edge.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/worker.h"

#define ASK_NS   (2 * NSEC_PER_SEC)
#define WAIT_MS  1000
#define TELL_MAX 4 /* tellings that wait while a request is on its way */

/* All parts are told each five seconds, or later: making a thousand of them takes some
 * milliseconds. */
#define TELL_EVERY (5 * NSEC_PER_SEC)
#define TELL_EACH  (5 * NSEC_PER_MSEC)

/** From the owner how all parts are, or from the thread whether they are written. */
struct telling {
    struct list link;
    json_t *parts;     /* owns */
    json_t *asked_for; /* owns */
    size_t n_members;
    int64_t wall_s;
    struct err why; /* from the thread; code 0: they are */
};

struct cluster_writer {
    struct worker *worker; /* owns; NULL: it did not start */

    /* The owner's. */
    nsec_t last_tell_at; /* monotonic; 0: never */
    struct err fault;    /* code 0: none */
    nsec_t fault_from;   /* monotonic */

    /* The thread's. */
    struct kube_client client;
    struct cluster_parts parts;
    char network[NAME_MAX_LEN + 1];
    char node[NAME_MAX_LEN + 1];
    struct err said; /* the fault that the owner was told last */
};

static void telling_free(struct telling *t)
{
    json_decref(t->parts);
    json_decref(t->asked_for);
    free(t);
}

static void drop(struct list *link)
{
    telling_free(container_of(link, struct telling, link));
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* The owner is told once of each fault, and when it is over. */
static void tell_fault(struct cluster_writer *cw, const struct err *why)
{
    struct telling *t;

    /* Each edge has words of its own: of a kind of fault those of the first are enough. */
    if (cw->said.code == why->code || !(t = calloc(1, sizeof(*t))))
        return;
    list_init(&t->link);
    t->why = *why;
    cw->said = *why;
    worker_finish(cw->worker, &t->link);
}

static void take_tellings(struct cluster_writer *cw)
{
    struct list *link;

    while ((link = worker_take(cw->worker))) {
        struct telling *t = container_of(link, struct telling, link);

        (void)cluster_parts_set(&cw->parts, t->parts, t->asked_for, t->n_members, t->wall_s);
        telling_free(t);
    }
}

static void name_edge(const struct cluster_writer *cw, const char *peer, char *buf, size_t size)
{
    char edge[OBJECT_NAME_MAX + 1];

    (void)snprintf(buf, size, "%s.%s", cw->network, edge_name(cw->node, peer, edge));
}

static enum cluster_parts_result result_of(int r)
{
    switch (r) {
    case 0:
        return CLUSTER_PARTS_WRITTEN;
    case KUBE_E_ABSENT:
        return CLUSTER_PARTS_ABSENT;
    case KUBE_E_EXISTS:
        return CLUSTER_PARTS_CONTESTED;
    default:
        return CLUSTER_PARTS_FAILED;
    }
}

static void write_part(struct cluster_writer *cw, struct cluster_parts_write *write)
{
    const struct rng rng = rng_kernel();
    char name[NAME_MAX_LEN + OBJECT_NAME_MAX + 2];
    enum cluster_parts_result result;
    struct err why = ERR_NULL;
    struct err none = ERR_NULL;
    int r;

    name_edge(cw, write->peer, name, sizeof(name));
    r = kube_part_apply(&cw->client, &mesh_edge_kind, name, cw->parts.name, write->status, false,
        clock_now() + ASK_NS, NULL, &why);
    json_decref(write->status);
    result = result_of(r);
    cluster_parts_on_result(&cw->parts, write->peer, result, rng_u32(&rng), clock_now());
    if (result == CLUSTER_PARTS_CONTESTED)
        (void)err_prefix(&why, "somebody else owns that of the edge %s", name);
    if (result == CLUSTER_PARTS_FAILED || result == CLUSTER_PARTS_CONTESTED)
        tell_fault(cw, &why);
    else if (!cluster_parts_is_contested(&cw->parts))
        tell_fault(cw, &none);
}

static void run(struct worker *w, void *ctx)
{
    struct cluster_writer *cw = ctx;

    while (!worker_is_ending(w)) {
        struct cluster_parts_write write;
        nsec_t now = clock_now();
        nsec_t wait;

        take_tellings(cw);
        if (cluster_parts_next(&cw->parts, now, &write)) {
            write_part(cw, &write);
            continue;
        }
        wait = nsec_min(nsec_max(cluster_parts_due(&cw->parts) - now, 0) / NSEC_PER_MSEC, WAIT_MS);
        remote_http_wait(cw->client.http, worker_fd(w), (unsigned)wait + 1);
    }
}

/* ---- the owner ------------------------------------------------------------------------------- */

int cluster_writer_new(struct cluster_writer **ret, const char *where,
    const struct cluster_writer_self *self, struct err *e)
{
    struct cluster_writer *cw = calloc(1, sizeof(*cw));
    const struct worker_config config = {
        .name = "edge-parts", .max = TELL_MAX, .loop = run, .drop = drop, .ctx = cw};
    char name[sizeof("agent/") + NAME_MAX_LEN];
    int r;

    if (!cw)
        return err_set(e, -ENOMEM, "no memory for the parts of edges");
    (void)snprintf(cw->network, sizeof(cw->network), "%s", self->network);
    (void)snprintf(cw->node, sizeof(cw->node), "%s", self->node);
    (void)snprintf(name, sizeof(name), "%s/%s", edge_owner_names[self->owner], cw->node);
    cluster_parts_init(&cw->parts, name);
    r = kube_client_init(&cw->client, where, e);
    if (r == 0) {
        r = worker_start(&cw->worker, &config);
        if (r != 0)
            (void)err_set(e, r, "no thread for the parts of edges: %s", strerror(-r));
    }
    if (r != 0)
        (void)cluster_writer_free(cw);
    else
        *ret = cw;
    return r;
}

struct cluster_writer *cluster_writer_free(struct cluster_writer *cw)
{
    if (!cw)
        return NULL;
    cw->worker = worker_stop(cw->worker);
    kube_client_deinit(&cw->client);
    cluster_parts_deinit(&cw->parts);
    free(cw);
    return NULL;
}

bool cluster_writer_is_due(const struct cluster_writer *cw, size_t n, nsec_t now)
{
    return cw->last_tell_at == 0 ||
           now - cw->last_tell_at >= nsec_max(TELL_EVERY, (nsec_t)n * TELL_EACH);
}

void cluster_writer_tell(
    struct cluster_writer *cw, json_t *parts, json_t *asked_for, size_t n_members, nsec_t now)
{
    struct telling *t = calloc(1, sizeof(*t));

    cw->last_tell_at = now;
    if (!t) {
        json_decref(parts);
        json_decref(asked_for);
        return;
    }
    *t = (struct telling){
        .parts = parts, .asked_for = asked_for, .n_members = n_members, .wall_s = clock_wall_s()};
    list_init(&t->link);
    /* While the server does not answer, what is told next is newer. */
    if (!worker_put(cw->worker, &t->link))
        telling_free(t);
}

static void take_fault(struct cluster_writer *cw)
{
    struct list *link;

    while ((link = worker_collect(cw->worker))) {
        struct telling *t = container_of(link, struct telling, link);
        bool had_fault = cw->fault.code != 0;
        bool has_fault = t->why.code != 0;

        if (has_fault && !had_fault)
            cw->fault_from = clock_now();
        if (has_fault)
            log_warning("parts of edges are not written to the cluster: %s", err_text(&t->why));
        else if (had_fault)
            log_info("parts of edges are written to the cluster again");
        cw->fault = t->why;
        telling_free(t);
    }
}

const char *cluster_writer_fault(struct cluster_writer *cw, nsec_t *ret_since)
{
    take_fault(cw);
    if (cw->fault.code == 0)
        return NULL;
    *ret_since = cw->fault_from;
    return err_text(&cw->fault);
}
