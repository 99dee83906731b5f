/* role.c - see role.h. */
#include "role.h"

#include <string.h>

static const char *const names[] = {
    [ROLE_NONE] = "none",
    [ROLE_VIEWER] = "viewer",
    [ROLE_OPERATOR] = "operator",
    [ROLE_ADMIN] = "admin",
};
_Static_assert(sizeof(names) / sizeof(*names) == ROLE_N, "a name per role");

const char *role_name(enum role role)
{
    return names[role];
}

enum role role_parse(const char *text)
{
    for (int r = ROLE_NONE + 1; r < ROLE_N; r++)
        if (strcmp(text, names[r]) == 0)
            return (enum role)r;
    return ROLE_NONE;
}
