/* path.c - names of what path/path.h has. */
#include "path/path.h"

static const char *const kind_names[] = {"none", "lan", "direct", "relay", "stream"};
static const char *const policy_names[] = {"auto", "direct", "relay", "off"};
static const char *const verdict_names[] = {
    "untried", "trying", "chosen", "works", "silent", "died"};

_Static_assert(sizeof(kind_names) / sizeof(*kind_names) == PATH_KIND_N, "a name each");
_Static_assert(sizeof(policy_names) / sizeof(*policy_names) == PATH_POLICY_N, "a name each");
_Static_assert(sizeof(verdict_names) / sizeof(*verdict_names) == PATH_VERDICT_N, "a name each");

const char *path_kind_name(enum path_kind kind)
{
    return kind_names[kind];
}

const char *path_policy_name(enum path_policy policy)
{
    return policy_names[policy];
}

const char *path_verdict_name(enum path_verdict verdict)
{
    return verdict_names[verdict];
}
