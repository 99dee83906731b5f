/* node_fabric.c - see node_fabric.h. */
#include "agent/node_fabric.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "fabric/fabric.h"
#include "mesh/object/fabric_report.h"
#include "os/thread.h"

/* How long the metadata service may take. The agent waits for so long at most when it ends. */
#define METADATA_MS 1000

struct node_fabric {
    pthread_t thread;
    struct fabric_facts facts;   /* of the thread */
    struct fabric_report report; /* immutable once @is_known */
    bool is_worth_telling;       /* the same */
    atomic_bool is_known;
};

static void *run(void *ctx)
{
    struct node_fabric *nf = ctx;

    fabric_read_here(&nf->facts, FABRIC_VIEW_AGENT, METADATA_MS);
    fabric_report_make(&nf->report, &nf->facts);
    nf->is_worth_telling =
        fabric_kind_is_fast(nf->facts.kind) || nf->report.n_gpus > 0 || nf->report.n_keys > 0;
    atomic_store_explicit(&nf->is_known, true, memory_order_release);
    return NULL;
}

struct node_fabric *node_fabric_new(void)
{
    struct node_fabric *nf = calloc(1, sizeof(*nf));

    if (!nf)
        return NULL;
    if (thread_start(&nf->thread, "fabric", -1, run, nf) < 0) {
        free(nf);
        return NULL;
    }
    return nf;
}

const struct fabric_report *node_fabric_report(const struct node_fabric *nf)
{
    if (!nf || !atomic_load_explicit(&nf->is_known, memory_order_acquire) || !nf->is_worth_telling)
        return NULL;
    return &nf->report;
}

struct node_fabric *node_fabric_free(struct node_fabric *nf)
{
    if (nf)
        (void)pthread_join(nf->thread, NULL);
    free(nf);
    return NULL;
}
