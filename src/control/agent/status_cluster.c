/* status_cluster.c - see status_cluster.h. */
#include "agent/status_cluster.h"

#include <errno.h>

#include "base/str.h"

void status_cluster_set(struct status_cluster *c, bool heard, const char *why, nsec_t now)
{
    *c = (struct status_cluster){.is_heard = heard, .since = now};
    if (!heard)
        (void)err_set(&c->why, -EIO, "%s", why);
}

json_t *status_cluster_encode(const struct status_cluster *c, nsec_t now)
{
    return json_pack("{s:b, s:I, s:s}", "reachable", (int)c->is_heard, "sinceSeconds",
        (json_int_t)((now - c->since) / NSEC_PER_SEC), "why", c->why.text);
}

void status_cluster_format(const json_t *cluster, struct str *out)
{
    long long age = (long long)json_integer_value(json_object_get(cluster, "sinceSeconds"));
    const char *why = json_string_value(json_object_get(cluster, "why"));

    if (!json_is_object(cluster))
        return;
    if (json_is_true(json_object_get(cluster, "reachable")))
        str_add(out, "cluster: its API says who is in the network\n");
    else if (why && why[0] != '\0')
        str_addf(out,
            "cluster: its API does not answer for %lld s, known peers stay, and no change of the "
            "network is heard of: %s\n",
            age, why);
    else
        str_addf(out, "cluster: its API has been asked for %lld s and has not answered yet\n", age);
}
