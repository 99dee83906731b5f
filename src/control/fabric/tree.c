/* tree.c - see tree.h. */
#include "fabric/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool make_path(const struct tree *t, const char *path, char out[static PATH_MAX])
{
    return snprintf(out, PATH_MAX, "%s%s", t->root, path) < PATH_MAX;
}

static void clean(char *text, size_t len)
{
    while (len > 0 && (unsigned char)text[len - 1] <= ' ')
        len--;
    text[len] = '\0';
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' && text[i] != '\n')
            text[i] = ' ';
}

bool tree_read(const struct tree *t, const char *path, char *ret, size_t cap)
{
    char full[PATH_MAX];
    size_t len = 0;
    ssize_t n = 1;
    int fd;

    ret[0] = '\0';
    if (!make_path(t, path, full))
        return false;
    fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    while (n > 0 && len + 1 < cap) {
        n = read(fd, ret + len, cap - 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    (void)close(fd);
    clean(ret, len);
    return ret[0] != '\0';
}

bool tree_has(const struct tree *t, const char *path)
{
    char full[PATH_MAX];

    return make_path(t, path, full) && access(full, F_OK) == 0;
}

static int compare_names(const void *a, const void *b)
{
    return strverscmp(a, b);
}

size_t tree_list(const struct tree *t, const char *dir, char (*ret)[TREE_NAME_MAX], size_t max)
{
    char full[PATH_MAX];
    size_t n = 0;
    DIR *d = make_path(t, dir, full) ? opendir(full) : NULL;

    if (!d)
        return 0;
    for (struct dirent *entry = readdir(d); entry && n < max; entry = readdir(d))
        if (entry->d_name[0] != '.' && strlen(entry->d_name) < TREE_NAME_MAX)
            memcpy(ret[n++], entry->d_name, strlen(entry->d_name) + 1);
    (void)closedir(d);
    qsort(ret, n, sizeof(*ret), compare_names);
    return n;
}
