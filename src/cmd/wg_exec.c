/* wg_exec.c - `weft wg` becomes weft-wg, the same command without the control half's libraries. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"

int cmd_wg_exec(int argc, char **argv)
{
    char path[PATH_MAX + sizeof("/weft-wg")];
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);
    char *slash;

    if (len > 0) {
        path[len] = '\0';
        slash = strrchr(path, '/');
        if (slash) {
            (void)snprintf(slash, sizeof("/weft-wg"), "/weft-wg");
            (void)execv(path, argv);
        }
    }
    /* Only weft itself was copied here: it can do the same, in more memory. */
    return cmd_wg(argc, argv);
}
