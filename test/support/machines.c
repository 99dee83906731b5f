/* machines.c - see machines.h. */
#include "test/support/machines.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "fabric/fabric.h"

#define MACHINES_MIN 13

static void file_of(char path[static MACHINES_PATH_MAX], const char *name, const char *suffix)
{
    const char *source = getenv("WEFT_SOURCE_ROOT");

    assert_non_null(source);
    (void)snprintf(path, MACHINES_PATH_MAX, "%s/test/platform/machines/%s%s%s", source, name,
        suffix[0] != '\0' ? "." : "", suffix);
}

static int compare(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

void machines_each(void (*fn)(const char *name))
{
    char path[MACHINES_PATH_MAX];
    struct dirent **entries;
    unsigned found = 0;
    int n;

    file_of(path, "", "");
    n = scandir(path, &entries, NULL, compare);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        char *dot = strrchr(entries[i]->d_name, '.');

        if (dot && strcmp(dot, ".tree") == 0) {
            *dot = '\0';
            fn(entries[i]->d_name);
            found++;
        }
        free(entries[i]);
    }
    free(entries);
    assert_true(found >= MACHINES_MIN);
}

/* Opens a file for writing, and makes the directories above it. */
static FILE *create(char *path)
{
    FILE *f;

    for (char *p = path + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        *p = '/';
    }
    f = fopen(path, "we");
    assert_non_null(f);
    return f;
}

void machines_unpack(const char *name, char root[static MACHINES_PATH_MAX])
{
    char path[MACHINES_PATH_MAX];
    char line[1024];
    FILE *out = NULL;
    FILE *in;

    (void)snprintf(root, MACHINES_PATH_MAX, "/tmp/weft-machine-XXXXXX");
    assert_non_null(mkdtemp(root));
    file_of(path, name, "tree");
    in = fopen(path, "re");
    assert_non_null(in);
    while (fgets(line, sizeof(line), in)) {
        if (strncmp(line, "== /", 4) == 0) {
            assert_true(!out || fclose(out) == 0);
            line[strcspn(line, "\n")] = '\0';
            assert_true(
                snprintf(path, sizeof(path), "%.64s%s", root, line + 3) < (int)sizeof(path));
            out = create(path);
        } else {
            assert_true(out && fputs(line, out) >= 0);
        }
    }
    assert_true(out && fclose(out) == 0);
    (void)fclose(in);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    return remove(path);
}

void machines_remove(const char *root)
{
    assert_int_equal(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static char *read_all(const char *path)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "re");
    size_t len = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

    text[len] = '\0';
    if (f)
        (void)fclose(f);
    return text;
}

void machines_read(struct fabric_facts *ret, const char *name)
{
    char root[MACHINES_PATH_MAX];
    struct tree t = {.root = root};
    struct metadata_answers answers;
    char path[32];
    bool has_answers;

    machines_unpack(name, root);
    answers.cloud = metadata_cloud_of(&t);
    (void)snprintf(path, sizeof(path), "/metadata/%s", metadata_cloud_name(answers.cloud));
    has_answers = tree_read(&t, path, answers.text, sizeof(answers.text));
    fabric_read(ret, &t, FABRIC_VIEW_JOB, has_answers ? &answers : NULL);
    machines_remove(root);
}

void machines_compare(const char *name, const char *suffix, const char *text)
{
    const char *wanted = getenv("GOLDEN_REWRITE");
    char path[MACHINES_PATH_MAX];
    FILE *f;

    file_of(path, name, suffix);
    if (wanted && wanted[0] != '\0') {
        f = fopen(path, "we");
        assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
        return;
    }
    if (strcmp(read_all(path), text) != 0)
        fail_msg("%s is not what was found now:\n%s", path, text);
}
