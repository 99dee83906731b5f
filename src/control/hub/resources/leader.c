/* leader.c - see leader.h. */
#include "leader.h"

#include <stdio.h>
#include <string.h>

void leader_init(struct leader *l, const char *me)
{
    *l = (struct leader){.n_changes = 0};
    (void)snprintf(l->me, sizeof(l->me), "%s", me);
}

nsec_t leader_due(const struct leader *l)
{
    return l->looked_at ? l->looked_at + LEADER_EVERY : 0;
}

static const char *text_of(const json_t *json, const char *part, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(json, part), key));

    return text ? text : "";
}

static void take_in(struct leader *l, const json_t *lease, nsec_t now)
{
    const char *version = text_of(lease, "metadata", "resourceVersion");

    if (strcmp(version, l->version) != 0 || !l->changed_at)
        l->changed_at = now;
    (void)snprintf(l->version, sizeof(l->version), "%s", version);
    (void)snprintf(l->holder, sizeof(l->holder), "%s", text_of(lease, "spec", "holderIdentity"));
    l->n_changes =
        json_integer_value(json_object_get(json_object_get(lease, "spec"), "leaseTransitions"));
}

void leader_saw(struct leader *l, const json_t *lease, nsec_t now)
{
    l->looked_at = now;
    take_in(l, lease, now);
    if (strcmp(l->holder, l->me) != 0)
        l->renewed_at = 0;
}

bool leader_may_write(const struct leader *l, nsec_t now)
{
    return l->holder[0] == '\0' || strcmp(l->holder, l->me) == 0 ||
           now - l->changed_at >= LEADER_EXPIRY;
}

json_t *leader_lease(const struct leader *l, const char *wall, bool is_end)
{
    bool is_new = strcmp(l->holder, l->me) != 0;
    json_t *json = json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:i, s:I, s:s}}", "apiVersion",
        "coordination.k8s.io/v1", "kind", "Lease", "metadata", "name", LEADER_LEASE, "spec",
        "holderIdentity", is_end ? "" : l->me, "leaseDurationSeconds",
        (int)(LEADER_EXPIRY / NSEC_PER_SEC), "leaseTransitions",
        l->n_changes + (is_new && l->version[0]), "renewTime", wall);

    if (l->version[0])
        (void)json_object_set_new(
            json_object_get(json, "metadata"), "resourceVersion", json_string(l->version));
    if (is_new)
        (void)json_object_set_new(json_object_get(json, "spec"), "acquireTime", json_string(wall));
    return json;
}

void leader_wrote(struct leader *l, const json_t *lease, nsec_t began_at)
{
    take_in(l, lease, began_at);
    l->renewed_at = strcmp(l->holder, l->me) == 0 ? began_at : 0;
}

bool leader_is_leading(const struct leader *l, nsec_t now)
{
    return l->renewed_at && now - l->renewed_at < LEADER_LEADS;
}
