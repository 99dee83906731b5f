/* hub_path.c - see hub_path.h. */
#include "agent/hublink/hub_path.h"

#include <stdio.h>
#include <string.h>

/* Another endpoint is taken when its first answer is this old. All endpoints are asked at the same
 * time, each 0.3 to 0.4 s, so the present one could have answered by then, too. */
#define OTHER_FIRST (500 * NSEC_PER_MSEC)

/* After a pause of this length the answers of another endpoint are counted anew. */
#define OTHER_GAP (6 * NSEC_PER_SEC)

/* Where in the list the present endpoint is; @n if it is not there any more. */
static unsigned find_present(
    const struct hub_path *hp, const char *hub, const struct endpoint *endpoints, unsigned n)
{
    unsigned i = 0;

    if (strcmp(hp->path.node, hub) != 0)
        return n;
    while (i < n && !endpoint_equal(&endpoints[i], &hp->path.endpoint))
        i++;
    return i;
}

/* The next endpoint after @present to which there is a route. If there is a route to none of them:
 * @present, or the first one when the present one is not in the list. */
static unsigned find_next(const struct endpoint *endpoints, unsigned n, unsigned present,
    hub_path_fn has_route, void *ctx)
{
    unsigned start = present < n ? present + 1 : 0;

    for (unsigned k = 0; k < n; k++) {
        unsigned i = (start + k) % n;

        if (has_route(ctx, &endpoints[i].addr))
            return i;
    }
    return present < n ? present : 0;
}

static void take(struct hub_path *hp, const struct endpoint *endpoint, nsec_t now)
{
    hp->path.endpoint = *endpoint;
    hp->taken_at = now;
    hp->other = (struct endpoint){.port = 0};
}

bool hub_path_take(struct hub_path *hp, const char *hub, const struct endpoint *endpoints,
    unsigned n, bool works, nsec_t now, hub_path_fn has_route, void *ctx)
{
    unsigned present = find_present(hp, hub, endpoints, n);
    unsigned next;

    if (present < n && (works || now - hp->taken_at < HUB_PATH_TRY))
        return false;
    next = find_next(endpoints, n, present, has_route, ctx);
    hp->taken_at = now;
    if (next == present)
        return false;
    (void)snprintf(hp->path.node, sizeof(hp->path.node), "%.*s", NAME_MAX_LEN, hub);
    take(hp, &endpoints[next], now);
    return true;
}

bool hub_path_on_answer(struct hub_path *hp, const struct endpoint *from, nsec_t now)
{
    if (hp->path.node[0] == '\0')
        return false;
    if (endpoint_equal(from, &hp->path.endpoint)) {
        hp->other = (struct endpoint){.port = 0};
        return false;
    }
    if (endpoint_is_none(&hp->other) || now - hp->other_at > OTHER_GAP) {
        hp->other = *from;
        hp->other_since = now;
    }
    if (!endpoint_equal(from, &hp->other))
        return false;
    hp->other_at = now;
    if (now - hp->other_since < OTHER_FIRST)
        return false;
    take(hp, from, now);
    return true;
}
