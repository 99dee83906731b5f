/* test-script.c - which commands are refused because their script is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/text.h"
#include "test/support/sample_command.h"
#include "train/job/command.h"

static const struct torch_install here_python = {.python = "/usr/bin/python3"};

/* In a directory that has the file "there.py" and nothing else. */
static int enter_directory(void **state)
{
    static char dir[] = "/tmp/weft-test-script-XXXXXX";
    FILE *f;

    if (!mkdtemp(dir) || chdir(dir) < 0)
        return -1;
    *state = dir;
    f = fopen("there.py", "we");
    return f ? fclose(f) : -1;
}

static int leave_directory(void **state)
{
    return unlink("there.py") < 0 || rmdir(*state) < 0 ? -1 : 0;
}

/* @words: the sentence's beginning. @where: stands in it as well. */
static void assert_refused(const char *line, const char *words, const char *where)
{
    char buf[256];
    struct command c = sample_command_read(line, buf);
    struct err e = ERR_NULL;
    struct str advice = STR_NULL;

    assert_true(script_check(&c, &here_python, &e) < 0);
    if (strncmp(err_text(&e), words, strlen(words)) != 0)
        fail_msg("\"%s\"", err_text(&e));
    assert_non_null(strstr(err_text(&e), where));
    script_advise(&c, &here_python, &advice);
    assert_int_equal(strncmp(str_text(&advice), words, strlen(words)), 0);
    str_deinit(&advice);
}

static void assert_taken(const char *line)
{
    char buf[256];
    struct command c = sample_command_read(line, buf);
    struct err e = ERR_NULL;
    struct str advice = STR_NULL;

    if (script_check(&c, &here_python, &e) != 0)
        fail_msg("%s", err_text(&e));
    script_advise(&c, &here_python, &advice);
    assert_int_equal(advice.len, 0);
}

static void test_missing(void **state)
{
    const char *here = *state;

    assert_refused("torchrun missing.py", "the script \"missing.py\" is not there; ", here);
    assert_refused("python3 -u there.py/x.py", "the script \"there.py/x.py\" is", here);
    assert_refused("accelerate launch ./a.py", "the script \"./a.py\" is not", here);
    assert_refused(
        "torchrun /nonexistent/a.py", "the script \"/nonexistent/a.py\" is not there", "there");
}

static void test_there(void **state)
{
    assert_taken("torchrun there.py missing.py");
    assert_taken("python3 ./there.py");
    assert_taken("torchrun -m missing.py");
    assert_taken("./missing.py");
    assert_taken("python3");
}

/* What is said of torchrun's script in its environment. */
static void test_environment(void **state)
{
    static const char *const names[] = {"PET_MODULE", "PET_NO_PYTHON"};

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(setenv(names[i], "1", 1), 0);
        assert_taken("torchrun missing.py");
        assert_refused("python missing.py", "the script \"missing.py\"", "");
        assert_int_equal(unsetenv(names[i]), 0);
    }
}

/* A torchrun that is no Python may look for it in a container. */
static void test_no_python(void **state)
{
    static const struct torch_install none = {.torch = 0};
    char buf[256];
    struct command c = sample_command_read("torchrun missing.py", buf);

    assert_true(script_is_missing(&c, &here_python));
    assert_false(script_is_missing(&c, &none));
    c = sample_command_read("mpirun -n 2 python3 missing.py", buf);
    assert_true(script_is_missing(&c, &none));
}

/* These may run it elsewhere, so it is only said. */
static void test_other_machines(void **state)
{
    static const char *const lines[] = {
        "mpirun -n 2 python3 missing.py", "deepspeed --hostfile hosts missing.py"};

    for (size_t i = 0; i < 2; i++) {
        char buf[256];
        struct command c = sample_command_read(lines[i], buf);
        struct err e = ERR_NULL;
        struct str advice = STR_NULL;

        assert_int_equal(script_check(&c, &here_python, &e), 0);
        script_advise(&c, &here_python, &advice);
        assert_non_null(strstr(str_text(&advice), "\"missing.py\" is not there"));
        str_deinit(&advice);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_there),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_no_python),
        cmocka_unit_test(test_other_machines),
    };

    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
