/* etcd2_path.c - see etcd2_path.h. */
#include "etcd2_path.h"

#include <string.h>

bool etcd2_path_clean(const char *path, char *ret)
{
    size_t starts[ETCD2_DEPTH_MAX];
    size_t depth = 0;
    size_t len = 0;

    while (*path) {
        size_t part = strcspn(path, "/");

        if (part == 2 && path[0] == '.' && path[1] == '.') {
            len = depth > 0 ? starts[--depth] : 0;
        } else if (part > 0 && !(part == 1 && path[0] == '.')) {
            if (depth == ETCD2_DEPTH_MAX || len + 1 + part > ETCD2_PATH_MAX)
                return false;
            starts[depth++] = len;
            ret[len++] = '/';
            memcpy(ret + len, path, part);
            len += part;
        }
        path += part + (path[part] == '/');
    }
    if (len == 0)
        ret[len++] = '/';
    ret[len] = '\0';
    return true;
}

bool etcd2_path_is_root(const char *path)
{
    return path[1] == '\0';
}

size_t etcd2_path_next(const char *path, size_t len, char part[static ETCD2_PATH_MAX + 1])
{
    size_t n = len + 1 + strcspn(path + len + 1, "/");

    memcpy(part, path, n);
    part[n] = '\0';
    return n;
}

bool etcd2_path_is_below(const char *path, const char *dir)
{
    size_t len = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

    return strncmp(path, dir, len) == 0 && path[len] == '/' && path[len + 1] != '\0';
}
