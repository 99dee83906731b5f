/* path.c - see path.h: names, and what one end tells of itself. */
#include "path/path.h"

static const char *const kind_names[] = {"none", "lan", "direct", "relay", "stream"};
static const char *const verdict_names[] = {
    "untried", "trying", "chosen", "works", "silent", "died"};

_Static_assert(sizeof(kind_names) / sizeof(*kind_names) == PATH_KIND_N, "a name each");
_Static_assert(sizeof(verdict_names) / sizeof(*verdict_names) == PATH_VERDICT_N, "a name each");

const char *path_kind_name(enum path_kind kind)
{
    return kind_names[kind];
}

const char *path_verdict_name(enum path_verdict verdict)
{
    return verdict_names[verdict];
}

static bool is_nat_equal(const struct behavior *a, const struct behavior *b)
{
    return a->mapping == b->mapping && a->filtering == b->filtering &&
           a->is_natted == b->is_natted && a->is_blocked == b->is_blocked &&
           a->port_step == b->port_step && a->last_port == b->last_port;
}

bool path_side_equal(const struct path_side *a, const struct path_side *b)
{
    bool same = candidates_equal(&a->candidates, &b->candidates) &&
                is_nat_equal(&a->nat, &b->nat) && a->keepalive == b->keepalive &&
                a->can_guess == b->can_guess && a->relay_run == b->relay_run &&
                a->n_relays == b->n_relays;

    for (unsigned i = 0; same && i < a->n_relays; i++)
        same = x25519_public_equal(&a->relays[i].key, &b->relays[i].key) &&
               a->relays[i].rtt == b->relays[i].rtt &&
               a->relays[i].is_stream == b->relays[i].is_stream &&
               a->relays[i].mtu == b->relays[i].mtu;
    return same;
}
