/*
 * software.c - finds which versions of python, torch and NCCL are installed, by file names alone.
 *
 * None of these files is run or opened, because anybody may have written what is in a
 * site-packages folder. The first place where something is found is used.
 */
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "measure/facts.h"

/* Folders of Python packages: the distribution's, pip's, conda's, and those in NVIDIA's and
 * PyTorch's containers. */
static const char *const package_dirs[] = {
    "/opt/conda/lib/python3.*/site-packages",
    "/opt/venv/lib/python3.*/site-packages",
    "/usr/local/lib/python3.*/site-packages",
    "/usr/local/lib/python3.*/dist-packages",
    "/usr/lib/python3/dist-packages",
};

static const char *const library_dirs[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib",
    "/usr/local/cuda/lib64",
    "/usr/lib64",
};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* Takes the first path that matches @pattern and whose file name begins with @prefix. Copies to
 * @ret what follows @prefix in that name, up to one of the characters in @ends. */
static bool find_version(
    const char *pattern, const char *prefix, const char *ends, char ret[static FACTS_VERSION_MAX])
{
    glob_t found;
    bool done = false;

    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc && !done; i++) {
        const char *base = strrchr(found.gl_pathv[i], '/');
        size_t skip = strlen(prefix);

        if (!base || strncmp(base + 1, prefix, skip) != 0)
            continue;
        base += 1 + skip;
        (void)snprintf(ret, FACTS_VERSION_MAX, "%.*s", (int)strcspn(base, ends), base);
        done = ret[0] != '\0';
    }
    globfree(&found);
    return done;
}

static bool find_package(
    const char *glob_name, const char *prefix, char ret[static FACTS_VERSION_MAX])
{
    char pattern[256];

    for (size_t i = 0; i < COUNT(package_dirs); i++) {
        (void)snprintf(pattern, sizeof(pattern), "%s/%s", package_dirs[i], glob_name);
        /* Such names are "torch-2.8.0+cu128.dist-info" and "torch-1.13.1.egg-info". */
        if (find_version(pattern, prefix, "-", ret)) {
            char *end = strstr(ret, ".dist");

            end = end ? end : strstr(ret, ".egg");
            if (end)
                *end = '\0';
            return true;
        }
    }
    return false;
}

static void find_python(char ret[static FACTS_VERSION_MAX])
{
    static const char *const links[] = {
        "/opt/conda/bin/python3", "/usr/local/bin/python3", "/usr/bin/python3"};
    char target[256] = "";

    for (size_t i = 0; i < COUNT(links); i++) {
        ssize_t n = readlink(links[i], target, sizeof(target) - 1);
        const char *name;

        if (n <= 0)
            continue;
        target[n] = '\0';
        name = strstr(target, "python");
        if (name && name[strlen("python")] != '\0') {
            (void)snprintf(ret, FACTS_VERSION_MAX, "%.60s", name + strlen("python"));
            return;
        }
    }
}

static void find_nccl(char ret[static FACTS_VERSION_MAX])
{
    char pattern[256];

    /* A torch that was installed with an NCCL package loads that NCCL. */
    if (find_package("nvidia_nccl_cu1[0-9]-*-info", "nvidia_nccl_cu12-", ret) ||
        find_package("nvidia_nccl_cu1[0-9]-*-info", "nvidia_nccl_cu13-", ret))
        return;
    for (size_t i = 0; i < COUNT(library_dirs); i++) {
        (void)snprintf(pattern, sizeof(pattern), "%s/libnccl.so.2.*", library_dirs[i]);
        if (find_version(pattern, "libnccl.so.", "", ret))
            return;
    }
}

void software_find(struct facts_versions *v)
{
    find_python(v->python);
    (void)find_package("torch-*-info", "torch-", v->torch);
    find_nccl(v->nccl);
}
