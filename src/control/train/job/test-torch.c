/* test-torch.c - finding the torch of an interpreter, in a tree made for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "os/file.h"
#include "os/process.h"
#include "train/job/command.h"

static char root[] = "/tmp/weft-test-torch-XXXXXX";

static const char *below(const char *path)
{
    static char buf[PATH_MAX];

    (void)snprintf(buf, sizeof(buf), "%s/%s", root, path);
    return buf;
}

static void make_dir(const char *path)
{
    assert_int_equal(statefile_make_dir(below(path), 0755, NULL), 0);
}

static void make_file(const char *path, const char *text)
{
    assert_int_equal(statefile_replace(below(path), text, strlen(text), 0755, NULL), 0);
}

static struct torch_install find(const char *program)
{
    struct torch_install t;

    torch_find(&t, program);
    return t;
}

static void test_metadata(void **state)
{
    char text[TORCH_VERSION_MAX];
    unsigned version = 0;

    assert_true(torch_parse_metadata("torch-1.13.0a0+gitunknown.egg-info", text, &version));
    assert_string_equal(text, "1.13.0a0+gitunknown");
    assert_int_equal(version, 113);
    assert_true(torch_parse_metadata("torch-2.10.1+cu121.dist-info", text, &version));
    assert_int_equal(version, 210);
    assert_false(torch_parse_metadata("torchvision-0.1.dist-info", text, &version));
    assert_false(torch_parse_metadata("torch-2.dist-info", text, &version));
    assert_false(torch_parse_metadata("torch-.dist-info", text, &version));
    assert_false(torch_parse_metadata("torch-2.1", text, &version));
    assert_false(torch_parse_metadata(".dist-info", text, &version));
}

/* A prefix like Debian's, and a virtual environment on top of it. */
static int make_tree(void **state)
{
    char python[PATH_MAX];

    if (!mkdtemp(root))
        return -1;
    make_dir("usr/bin");
    make_file("usr/bin/python3.11", "\177ELF");
    assert_int_equal(symlink("python3.11", below("usr/bin/python3")), 0);
    make_dir("usr/lib/python3/dist-packages/torch-1.13.0a0.egg-info");
    make_dir("venv/bin");
    make_dir("venv/lib/python3.11/site-packages");
    (void)snprintf(python, sizeof(python), "%s/usr/bin/python3", root);
    assert_int_equal(symlink(python, below("venv/bin/python")), 0);
    make_file("venv/pyvenv.cfg", "home = x\ninclude-system-site-packages = false\n");
    (void)unsetenv("PYTHONPATH");
    (void)setenv("HOME", below("home"), 1);
    return 0;
}

static int remove_tree(void **state)
{
    const char *const argv[] = {"/bin/rm", "-rf", root, NULL};

    return process_run(argv, 5000, NULL);
}

static void test_prefix(void **state)
{
    struct torch_install t = find(below("usr/bin/python3"));

    assert_int_equal(t.torch, 113);
    assert_int_equal(t.python_version, 311);
    assert_string_equal(t.version, "1.13.0a0");
    assert_int_equal(find(below("usr/bin/nothing")).torch, 0);
    assert_string_equal(find("/bin/sh").python, "");
}

static void test_script(void **state)
{
    char text[PATH_MAX + 16];

    (void)snprintf(text, sizeof(text), "#! %s/usr/bin/python3 -s\nimport torch\n", root);
    make_file("usr/bin/torchrun", text);
    assert_int_equal(find(below("usr/bin/torchrun")).torch, 113);
    make_file("env-script", "#!/usr/bin/env python3\n");
    (void)setenv("PATH", below("usr/bin"), 1);
    assert_int_equal(find(below("env-script")).torch, 113);
    assert_int_equal(find("torchrun").torch, 113);
    make_file("shell-script", "#!/bin/sh\n");
    assert_int_equal(find(below("shell-script")).torch, 0);
}

/* A closed environment does not see the torch below it; its own, and PYTHONPATH's, come first. */
static void test_venv(void **state)
{
    char list[2 * PATH_MAX];

    assert_int_equal(find(below("venv/bin/python")).torch, 0);
    make_file("venv/pyvenv.cfg", "include-system-site-packages = true\n");
    assert_int_equal(find(below("venv/bin/python")).torch, 113);
    make_dir("venv/lib/python3.11/site-packages/torch-2.4.1+cpu.dist-info");
    assert_int_equal(find(below("venv/bin/python")).torch, 204);
    make_dir("mine/torch-2.6.0.dist-info");
    (void)snprintf(list, sizeof(list), "/nowhere:%s/mine", root);
    (void)setenv("PYTHONPATH", list, 1);
    assert_int_equal(find(below("venv/bin/python")).torch, 206);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_script),
        cmocka_unit_test(test_venv),
    };

    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
