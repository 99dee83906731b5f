/* torch.c - see torch.h. */
#include "train/job/torch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/fd_cleanup.h"
#include "os/statefile.h"

#define FIRST_LINE_MAX 512
#define VENV_FILE_MAX  4096

/* ---- names ---------------------------------------------------------------------------------- */

/* Gives major * 100 + minor: 311 for "3.11", 113 for "1.13.0a0". 0 when it is no version. */
static unsigned parse_version(const char *text)
{
    char *end;
    unsigned long major = strtoul(text, &end, 10);
    unsigned long minor;

    if (end == text || *end != '.' || major > 99)
        return 0;
    text = end + 1;
    minor = strtoul(text, &end, 10);
    return end == text || minor > 99 ? 0 : (unsigned)(major * 100 + minor);
}

bool torch_parse_metadata(const char *name, char ret_text[static TORCH_VERSION_MAX], unsigned *ret)
{
    static const char prefix[] = "torch-";
    const char *version = name + sizeof(prefix) - 1;
    const char *end = strstr(name, ".dist-info");
    size_t len;

    if (!end)
        end = strstr(name, ".egg-info");
    if (!end || strncmp(name, prefix, sizeof(prefix) - 1) != 0 || end <= version ||
        parse_version(version) == 0)
        return false;
    len = (size_t)(end - version);
    if (len >= TORCH_VERSION_MAX)
        len = TORCH_VERSION_MAX - 1;
    memcpy(ret_text, version, len);
    ret_text[len] = '\0';
    *ret = parse_version(version);
    return true;
}

unsigned torch_parse_nccl(const char *name)
{
    const char *dash = strchr(name, '-');
    unsigned version = dash ? parse_version(dash + 1) : 0;

    if (strncmp(name, "nvidia_nccl_cu", 14) != 0 || !strstr(name, ".dist-info"))
        return 0;
    return version / 100 == 2 ? version % 100 : 0;
}

/* ---- the interpreter ------------------------------------------------------------------------ */

/* Finds the path of the program that execvp(3) would run for @name. False: there is none. */
static bool find_program(const char *name, char ret[static PATH_MAX])
{
    const char *path = getenv("PATH");

    if (strchr(name, '/'))
        return snprintf(ret, PATH_MAX, "%s", name) < PATH_MAX && access(ret, X_OK) == 0;
    if (!path)
        path = "/usr/local/bin:/usr/bin:/bin";
    while (*path != '\0') {
        size_t len = strcspn(path, ":");

        if (snprintf(ret, PATH_MAX, "%.*s/%s", (int)len, path, name) < PATH_MAX &&
            access(ret, X_OK) == 0)
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

/* Reads the first line of a file. False when it does not begin with "#!". */
static bool read_shebang(const char *path, char ret[static FIRST_LINE_MAX])
{
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, FIRST_LINE_MAX - 1);

    if (n < 2 || ret[0] != '#' || ret[1] != '!')
        return false;
    ret[n] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    return true;
}

static bool is_interpreter(const char *path)
{
    const char *slash = strrchr(path, '/');

    return strncmp(slash ? slash + 1 : path, "python", 6) == 0;
}

/* Finds the path of @program if it is Python, or of the Python that a script's first line names. */
static bool find_interpreter(const char *program, char ret[static PATH_MAX])
{
    char line[FIRST_LINE_MAX];
    char path[PATH_MAX];
    char *word;
    char *rest = NULL;

    if (!find_program(program, path))
        return false;
    if (read_shebang(path, line)) {
        word = strtok_r(line + 2, " \t", &rest);
        if (word && strcmp(word, "/usr/bin/env") == 0)
            word = strtok_r(NULL, " \t", &rest);
        if (!word || !is_interpreter(word) || !find_program(word, path))
            return false;
    }
    if (!is_interpreter(path))
        return false;
    memcpy(ret, path, sizeof(path));
    return true;
}

/* ---- packages ------------------------------------------------------------------------------- */

static bool look_in(struct torch_install *t, const char *dir)
{
    DIR *d = opendir(dir);
    bool found = false;

    if (!d)
        return false;
    for (struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
        unsigned nccl = torch_parse_nccl(entry->d_name);

        found = found || torch_parse_metadata(entry->d_name, t->version, &t->torch);
        t->nccl = nccl != 0 ? nccl : t->nccl;
    }
    (void)closedir(d);
    return found;
}

static bool look_in_list(struct torch_install *t, const char *list)
{
    while (list && *list != '\0') {
        size_t len = strcspn(list, ":");
        char dir[PATH_MAX];

        if (snprintf(dir, sizeof(dir), "%.*s", (int)len, list) < (int)sizeof(dir) &&
            look_in(t, dir))
            return true;
        list += len + (list[len] == ':');
    }
    return false;
}

/* Looks for torch in the package folders below one prefix, also in Debian's. */
static bool look_below(struct torch_install *t, const char *prefix)
{
    static const char *const places[] = {"lib/python%u.%u/site-packages",
        "lib64/python%u.%u/site-packages", "local/lib/python%u.%u/dist-packages",
        "lib/python%u/dist-packages"};

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        char place[64];
        char dir[PATH_MAX];

        (void)snprintf(
            place, sizeof(place), places[i], t->python_version / 100, t->python_version % 100);
        if (snprintf(dir, sizeof(dir), "%s/%s", prefix, place) < (int)sizeof(dir) &&
            look_in(t, dir))
            return true;
    }
    return false;
}

/* Gives "/usr" for "/usr/bin/python3". False when the path has fewer than two slashes. */
static bool prefix_of(const char *python, char ret[static PATH_MAX])
{
    char *slash;

    (void)snprintf(ret, PATH_MAX, "%s", python);
    for (int i = 0; i < 2; i++) {
        slash = strrchr(ret, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return true;
}

/* Is @prefix a virtual environment? @ret_open: set to whether it also sees its base's packages. */
static bool is_venv(const char *prefix, bool *ret_open)
{
    char path[PATH_MAX];
    char *text = NULL;
    bool found;

    *ret_open = false;
    if (snprintf(path, sizeof(path), "%s/pyvenv.cfg", prefix) >= (int)sizeof(path))
        return false;
    found = statefile_read(path, VENV_FILE_MAX, &text, NULL, NULL) == 0;
    if (found)
        *ret_open = strstr(text, "include-system-site-packages = true") != NULL;
    free(text);
    return found;
}

/*
 * Looks for torch where the interpreter does. @python is the path at which the interpreter was
 * found, @real the file to which the symbolic links of that path lead.
 */
static bool find_package(struct torch_install *t, const char *python, const char *real)
{
    const char *home = getenv("HOME");
    char prefix[PATH_MAX];
    char other[PATH_MAX];
    bool sees_base;

    if (look_in_list(t, getenv("PYTHONPATH")))
        return true;
    if (!prefix_of(python, prefix))
        return false;
    if (is_venv(prefix, &sees_base) && (look_below(t, prefix) || !sees_base))
        return t->torch != 0;
    (void)snprintf(other, sizeof(other), "%.*s/.local", PATH_MAX - 8, home ? home : "");
    return look_below(t, other) || look_below(t, prefix) ||
           (prefix_of(real, other) && look_below(t, other));
}

void torch_find(struct torch_install *ret, const char *program)
{
    struct torch_install t = {0};
    char real[PATH_MAX];
    const char *base;

    if (find_interpreter(program, t.python) && realpath(t.python, real)) {
        base = strrchr(real, '/');
        t.python_version = base ? parse_version(base + strlen("/python")) : 0;
        (void)find_package(&t, t.python, real);
    }
    *ret = t;
}
