/* test-reserved.c - names that no node may have, and that docs/NAMES.md lists all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/parse.h"
#include "mesh/names/hosts.h"

static void test_table(void **state)
{
    static const char *const reserved[] = {"localhost", "localhost4", "localhost6", "localdomain",
        "broadcasthost", "hub", "ip6-localhost", "ip6-allnodes", "ip6-x", "registry", "minio",
        "metadata", "kubernetes", "alertmanager", "zookeeper", "weft", "0", "127", "2130706433",
        "017700000001", "0x7f000001", "0x"};
    static const char *const free_names[] = {"gpu-1", "n1", "registry-1", "localhost1", "hub-2",
        "ip6", "a", "z", "node-12ab", "0xyz", "1a", "login", "master", "1x", "0a", "0x1g", "ip6x"};

    for (unsigned i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
        struct err e = ERR_NULL;

        if (!reserved_is(reserved[i]) || reserved_check(reserved[i], &e) == 0)
            fail_msg("\"%s\" is not reserved", reserved[i]);
        assert_non_null(strstr(err_text(&e), reserved[i]));
    }
    for (unsigned i = 0; i < sizeof(free_names) / sizeof(*free_names); i++)
        if (reserved_is(free_names[i]))
            fail_msg("\"%s\" is reserved", free_names[i]);
}

static void test_sentence(void **state)
{
    static const char *const cases[][2] = {{"minio", "minio"}, {"ip6-x", "node"}, {"127", "node"}};

    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err e = ERR_NULL;
        char says[256];

        (void)snprintf(says, sizeof(says),
            "node name \"%s\" is reserved, because programs reach something else by it; \"%s-1\" "
            "may be had, for example",
            cases[i][0], cases[i][1]);
        assert_int_equal(reserved_check(cases[i][0], &e), -EINVAL);
        assert_string_equal(err_text(&e), says);
    }
    assert_int_equal(reserved_check("gpu-1", NULL), 0);
}

/* The block of names in the document, each checked; and as many as the program has. */
static void test_document(void **state)
{
    const char *root = getenv("WEFT_SOURCE_ROOT");
    char path[512];
    char line[512];
    unsigned n = 0;
    bool is_there = false;
    bool inside = false;
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/docs/NAMES.md", root ? root : ".");
    f = fopen(path, "re");
    if (!f)
        fail_msg("%s cannot be opened", path);
    while (fgets(line, sizeof(line), f)) {
        char *rest = NULL;

        if (strncmp(line, "## Reserved names", 17) == 0)
            is_there = true;
        else if (is_there && strncmp(line, "```", 3) == 0)
            inside = !inside && n == 0;
        else
            for (char *w = strtok_r(line, " \n", &rest); inside && w;
                 w = strtok_r(NULL, " \n", &rest), n++)
                if (!reserved_is(w))
                    fail_msg("\"%s\" is in the document and not reserved", w);
    }
    (void)fclose(f);
    assert_int_equal(n, reserved_count());
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_sentence),
        cmocka_unit_test(test_document),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
