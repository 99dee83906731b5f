/* test-options.c - what the option tables accept and what they say when they do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "cmd/options.h"
#include "os/log.h"

static struct {
    const char *network;
    const char *token;
    struct option_list labels;
    struct option_list rest;
    nsec_t ttl;
    uint64_t uses;
    const char *colour;
    enum log_level level;
    bool json;
} arg;

static const struct option table[] = {
    {"TOKEN", NULL, option_text, &arg.token, NULL, "the token", .is_required = true},
    {"REST", NULL, option_append, &arg.rest, NULL, "more", .many = true},
    {"--network", "NAME", option_name, &arg.network, "default", "the network"},
    {"--label", "K=V", option_append, &arg.labels, NULL, "a label", .many = true},
    {"--ttl", "DURATION", option_duration, &arg.ttl, "1h", "life", .min = NSEC_PER_SEC},
    {"--uses", "N", option_u64, &arg.uses, "1", "how often", .min = 1, .max = 100},
    {"--colour", "WORD", option_word, &arg.colour, "red", "which", .words = "red, green"},
    {"--log-level", "LEVEL", option_log_level, &arg.level, "info", "how much"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    OPTIONS_END,
};
static const struct option_usage usage = {"test", "Test.", table, NULL};

static struct err failure;

static int read_words(const char *const *words)
{
    char *argv[16] = {(char *)"test"};
    int argc = 1;

    for (; *words; words++)
        argv[argc++] = (char *)*words;
    option_list_deinit(&arg.labels);
    option_list_deinit(&arg.rest);
    memset(&arg, 0, sizeof(arg));
    failure = (struct err)ERR_NULL;
    return options_read(&usage, argc, argv, &failure);
}

#define READ(...) read_words((const char *const[]){__VA_ARGS__, NULL})

static void test_defaults(void **state)
{
    assert_int_equal(READ("weft1.x"), 0);
    assert_string_equal(arg.token, "weft1.x");
    assert_string_equal(arg.network, "default");
    assert_int_equal(arg.ttl, 3600 * NSEC_PER_SEC);
    assert_int_equal(arg.uses, 1);
    assert_false(arg.json);
    assert_int_equal(arg.labels.n, 0);
    assert_string_equal(arg.colour, "red");
    assert_int_equal(arg.level, LOG_LEVEL_INFO);
}

static void test_forms(void **state)
{
    assert_int_equal(
        READ("--ttl=5m", "t", "--label", "a=b", "--json", "--label=c=d", "--uses", "7"), 0);
    assert_int_equal(arg.ttl, 300 * NSEC_PER_SEC);
    assert_int_equal(arg.labels.n, 2);
    assert_string_equal(arg.labels.items[1], "c=d");
    assert_true(arg.json);
    assert_int_equal(arg.uses, 7);
    assert_int_equal(READ("t", "--", "--json", "-x"), 0);
    assert_false(arg.json);
    assert_int_equal(arg.rest.n, 2);
    assert_string_equal(arg.rest.items[0], "--json");
}

/* From the first word of a command on, what looks like an option is the command's. */
static void test_command_words(void **state)
{
    static struct option_list words;
    static bool quiet;
    static const struct option run_table[] = {
        {"COMMAND", NULL, option_append, &words, NULL, "what to run", .is_required = true,
            .many = true, .is_command = true},
        {"--quiet", NULL, option_flag, &quiet, NULL, "say little"},
        OPTIONS_END,
    };
    static const struct option_usage run_usage = {"test", "Test.", run_table, NULL};
    char *plain[] = {(char *)"t", (char *)"--quiet", (char *)"torchrun", (char *)"--quiet",
        (char *)"--help", (char *)"--"};
    char *dashed[] = {(char *)"t", (char *)"--", (char *)"--quiet"};

    assert_int_equal(options_read(&run_usage, 6, plain, &failure), 0);
    assert_true(quiet);
    assert_int_equal(words.n, 4);
    assert_string_equal(words.items[0], "torchrun");
    assert_string_equal(words.items[3], "--");
    option_list_deinit(&words);
    assert_int_equal(options_read(&run_usage, 3, dashed, &failure), 0);
    assert_int_equal(words.n, 1);
    assert_string_equal(words.items[0], "--quiet");
    option_list_deinit(&words);
    assert_true(options_read(&run_usage, 2, plain, &failure) < 0);
}

static void test_refusals(void **state)
{
    assert_true(READ("--json") < 0);
    assert_string_equal(failure.text, "TOKEN is missing: the token");
    assert_true(READ("t", "--uses", "101") < 0);
    assert_string_equal(failure.text, "--uses \"101\" is not a number from 1 to 100");
    assert_true(READ("t", "--uses") < 0);
    assert_string_equal(failure.text, "--uses needs a value: --uses N");
    assert_true(READ("t", "--json=1") < 0);
    assert_string_equal(failure.text, "--json takes no value");
    assert_true(READ("t", "--network", "a", "--network", "b") < 0);
    assert_string_equal(failure.text, "--network is given twice");
    assert_true(READ("t", "--nope") < 0);
    assert_string_equal(failure.text, "there is no option \"--nope\"");
    assert_true(READ("t", "--network", "A") < 0);
    for (size_t i = 0; i < 4; i++) {
        static const char *const wrong[] = {"", "re", "reds", "red, green"};
        char sentence[80];

        assert_true(READ("t", "--colour", wrong[i]) < 0);
        (void)snprintf(
            sentence, sizeof(sentence), "--colour \"%s\" is none of red, green", wrong[i]);
        assert_string_equal(failure.text, sentence);
    }
    assert_int_equal(READ("t", "--colour", "green", "--log-level", "debug"), 0);
    assert_string_equal(arg.colour, "green");
    assert_int_equal(arg.level, LOG_LEVEL_DEBUG);
    assert_true(READ("t", "--log-level", "loud") < 0);
    assert_string_equal(
        failure.text, "--log-level \"loud\" is none of error, warning, info, debug");
    assert_int_equal(READ("t", "--help"), OPTIONS_E_HELP);
}

static int run_nothing(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

/* Of this table alone, and only where it is one. */
static void test_the_option_that_is_meant(void **state)
{
    static const struct {
        const char *typed;
        const char *meant; /* NULL: none */
    } cases[] = {{"--netwrok", "--network"}, {"--network-name=x", NULL}, {"--net", "--network"},
        {"--netwrk=a", "--network"}, {"-json", "--json"}, {"--jsn", "--json"}, {"--nope", NULL},
        {"-j", NULL}, {"--l", NULL}, {"--labels", "--label"},
        {"--much-longer-than-any-option-that-there-is", NULL}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char wanted[80];

        assert_true(READ("t", (char *)(uintptr_t)cases[i].typed) < 0);
        (void)snprintf(
            wanted, sizeof(wanted), "did you mean \"%s\"?", cases[i].meant ? cases[i].meant : "");
        if (cases[i].meant ? !strstr(failure.text, wanted) : !!strstr(failure.text, "mean"))
            fail_msg("%s: %s", cases[i].typed, failure.text);
    }
}

static void test_the_command_that_is_meant(void **state)
{
    static const struct option_subcommand commands[] = {{"join", run_nothing, "join"},
        {"jobs", run_nothing, "jobs"}, {"status", run_nothing, "status"}, {"ls", run_nothing, "ls"},
        {"preflight", run_nothing, "preflight"}, {"measuring", run_nothing, NULL},
        {NULL, NULL, NULL}};
    static const struct {
        const char *typed;
        const char *meant;
    } cases[] = {{"jion", "join"}, {"joinn", "join"}, {"jobs ", "jobs"}, {"job", "jobs"},
        {"stauts", "status"}, {"statsu", "status"}, {"stat", NULL}, {"prefligth", "preflight"},
        {"list", "ls"}, {"", NULL}, {"x", NULL}, {"frob", NULL}, {"measurin", NULL},
        {"preflightpreflightpreflight", NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *meant = options_meant(commands, cases[i].typed);

        if (cases[i].meant)
            assert_string_equal(meant, cases[i].meant);
        else
            assert_null(meant);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_command_words),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_the_option_that_is_meant),
        cmocka_unit_test(test_the_command_that_is_meant),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    option_list_deinit(&arg.labels);
    option_list_deinit(&arg.rest);
    return failed;
}
