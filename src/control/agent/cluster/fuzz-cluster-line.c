/* fuzz-cluster-line.c - lines of a watch of the cluster's API, and lists' items. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/cluster_resource.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct cluster_self self = {.network = "default", .node = "n1"};

    for (size_t i = 0; i < CLUSTER_KINDS; i++) {
        struct cluster_line l = CLUSTER_LINE_NULL;
        struct snapshot s = SNAPSHOT_NULL;
        struct err e = ERR_NULL;

        if (cluster_line_decode(&l, cluster_kinds[i], &self, (const char *)data, len, &e) != 0)
            continue;
        if (l.kind == CLUSTER_LINE_EVENT)
            cluster_merge_cluster(&s, &s, &l.event, NULL, true);
        cluster_line_deinit(&l);
    }
    return 0;
}
