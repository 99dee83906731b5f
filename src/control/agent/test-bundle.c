/* test-bundle.c - what a report holds, and what it must not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/bundle.h"
#include "base/text.h"
#include "os/file.h"

#define AT 1790000000

static void expect_struck(const struct secrets *s, const char *text, const char *expected)
{
    struct str out = STR_NULL;

    secrets_strike(s, text, strlen(text), &out);
    assert_string_equal(str_text(&out), expected);
    str_deinit(&out);
}

/* Whoever has quoted one, and wherever. */
static void test_what_looks_like_a_secret(void **state)
{
    static const struct secrets none = {.n = 0};

    expect_struck(&none, "", "");
    expect_struck(
        &none, "nothing of that kind, http://a/b@c", "nothing of that kind, http://a/b@c");
    expect_struck(&none, "weft join weft1.eyJh-_9 now", "weft join weft1.[secret] now");
    expect_struck(&none, "weft-admin1.AAAA", "weft-admin1.[secret]");
    expect_struck(&none, "weft1. is no token", "weft1. is no token");
    expect_struck(&none, "PrivateKey = aB+/9=\nx", "PrivateKey = [secret]\nx");
    expect_struck(&none, "\"presharedKey\": \"aB+/9=\", 1", "\"presharedKey\": \"[secret]\", 1");
    expect_struck(&none, "preshared_key=00ff\n", "preshared_key=[secret]\n");
    expect_struck(&none, "Authorization: Bearer abc.d", "Authorization: Bearer [secret]");
    expect_struck(&none, "http://me:pass@proxy:3128/", "http://[secret]@proxy:3128/");
    expect_struck(&none, "http://proxy:3128 and a@b", "http://proxy:3128 and a@b");
    expect_struck(&none, "private key: (hidden)", "private key: (hidden)");
    expect_struck(&none, "weft1.", "weft1.");
    expect_struck(&none, "PrivateKey", "PrivateKey");
    expect_struck(&none, "://x", "://x");
}

static void test_secrets_that_are_known(void **state)
{
    json_t *json = json_pack("{s:s, s:{s:[{s:s}], s:s}, s:s, s:s}", "privateKey", "not-to-be-seen",
        "a", "b", "presharedKey", "nor-this-one", "publicKey", "to-be-seen", "proxy", "none",
        "name", "gpu-1");
    struct secrets s = {.n = 0};

    assert_non_null(json);
    secrets_take(&s, json);
    assert_int_equal(s.n, 2);
    expect_struck(&s, "not-to-be-seen, nor-this-one: to-be-seen gpu-1 none",
        "[secret], [secret]: to-be-seen gpu-1 none");
    expect_struck(&s, "not-to-be-see", "not-to-be-see");
    secrets_deinit(&s);
    secrets_deinit(&s);
    json_decref(json);
}

/* As tar(1) reads it: the header's fields, and blocks of 512 bytes. */
static void test_an_archive(void **state)
{
    struct str tar = STR_NULL;
    unsigned sum = 0;

    tar_add(&tar, "weft-doctor/a.txt", "abc", 3, AT);
    assert_int_equal(tar.len, 1024);
    assert_string_equal(tar.text, "weft-doctor/a.txt");
    assert_string_equal(tar.text + 100, "0000600");
    assert_string_equal(tar.text + 124, "00000000003");
    assert_int_equal(strtoll(tar.text + 136, NULL, 8), AT);
    assert_int_equal(tar.text[156], '0');
    assert_memory_equal(tar.text + 257,
        "ustar\0"
        "00",
        8);
    for (size_t i = 0; i < 512; i++)
        sum += i >= 148 && i < 156 ? ' ' : (unsigned char)tar.text[i];
    assert_int_equal(strtol(tar.text + 148, NULL, 8), sum);
    assert_string_equal(tar.text + 512, "abc");
    tar_add(&tar, "full", tar.text, 512, AT);
    assert_int_equal(tar.len, 2048);
    tar_add(&tar, "empty", "", 0, AT);
    assert_int_equal(tar.len, 2560);
    tar_end(&tar);
    assert_int_equal(tar.len, 3584);
    str_deinit(&tar);
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(statefile_replace(path, text, strlen(text), 0600, NULL), 0);
}

static bool has(const struct str *bytes, const char *text)
{
    return memmem(bytes->text, bytes->len, text, strlen(text)) != NULL;
}

/* Secrets of the state that something has quoted in what the agent says. */
static void test_a_bundle_has_no_secret(void **state)
{
    char dir[] = "/tmp/weft-test-bundle.XXXXXX";
    const struct doctor_options opt = {.socket = "/nonexistent/agent.sock", .state_dir = dir};
    struct doctor_report report = {.node = "n1", .network = "default"};
    struct str tar = STR_NULL;
    char command[64];

    assert_non_null(mkdtemp(dir));
    write_file(
        dir, "node.json", "{\"privateKey\": \"sEcReT-of-the-node\", \"proxy\": \"p-word-1\"}");
    write_file(dir, "join.key", "sEcReT-of-a-join\n");
    write_file(dir, "agent.log", "info: agent: joined with weft1.t0ken-in-a-log\n");
    report.status = json_pack("{s:s, s:[{s:s}], s:{s:s}}", "clock",
        "sEcReT-of-the-node sEcReT-of-a-join p-word-1 weft1.t0ken is told", "peers", "name",
        "../../etc", "self", "name", "n1");
    report.findings = json_array();
    bundle_make(&tar, &opt, &report, AT);
    assert_int_equal(tar.len % 512, 0);
    assert_true(has(&tar, "weft-doctor/doctor.json"));
    assert_true(has(&tar, "weft-doctor/status.json"));
    assert_true(has(&tar, "weft-doctor/routes.txt"));
    assert_true(has(&tar, "weft-doctor/agent.log"));
    assert_true(has(&tar, "joined with weft1.[secret]"));
    assert_true(has(&tar, "[secret] [secret] [secret] weft1.[secret] is told"));
    assert_false(has(&tar, "sEcReT"));
    assert_false(has(&tar, "p-word-1"));
    assert_false(has(&tar, "t0ken"));
    assert_false(has(&tar, "weft-doctor/paths/"));
    str_deinit(&tar);
    doctor_report_deinit(&report);
    (void)snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_looks_like_a_secret),
        cmocka_unit_test(test_secrets_that_are_known),
        cmocka_unit_test(test_an_archive),
        cmocka_unit_test(test_a_bundle_has_no_secret),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
