/*
 * test-backup.c - a copy of all that a hub keeps, and what is restored from it: files of a whole
 * hub in a folder of the test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "hub/networks/backup.h"
#include "hub/networks/networks.h"
#include "store/store.h"
#include "test/support/sample_hub.h"

static struct sample_hub hub;
static char copied[160];
static char elsewhere[160]; /* where a copy is restored to */

static int enter(void **state)
{
    hub = (struct sample_hub){.now = 0};
    sample_hub_make_dir(&hub, true);
    sample_hub_open(&hub);
    (void)snprintf(copied, sizeof(copied), "%s/backup", hub.dir);
    (void)snprintf(elsewhere, sizeof(elsewhere), "%s/a/b/state", hub.dir);
    return 0;
}

static int leave(void **state)
{
    sample_hub_remove_dir(&hub);
    return 0;
}

static bool is_there(const char *dir, const char *name)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "%s%s%s", dir, name[0] ? "/" : "", name);
    return access(path, F_OK) == 0;
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[512];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "we");
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
}

static void read_file(const char *dir, const char *name, char ret[static 512])
{
    char path[512];
    size_t n;
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "re");
    assert_non_null(f);
    n = fread(ret, 1, 511, f);
    ret[n] = '\0';
    (void)fclose(f);
}

static void make_copy(void)
{
    assert_int_equal(
        sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "POST", "/v1/backup", NULL, NULL), 200);
    assert_null(hub.hub->networks.held_keys);
}

/* Restores to @elsewhere; the networks without a key. */
static int restore(char ret_keyless[static 128], char ret_former[static 512], struct err *e)
{
    struct str keyless = STR_NULL;
    int r = backup_restore(copied, elsewhere, ret_former, &keyless, e);

    (void)snprintf(ret_keyless, 128, "%s", str_text(&keyless));
    str_deinit(&keyless);
    return r;
}

/* All is in the copy and nothing else, and a hub goes on with it. */
static void test_a_hub_goes_on_from_a_copy(void **state)
{
    static const char *const options[] = {"--name", "it's", "--public", "192.0.2.1", ""};
    static const char *const parts[] = {"hub.db", "tls.key", "tls.crt", "admin.token",
        "addresses.json", "options.json", "keys/default.key"};
    struct err e = ERR_NULL;
    struct str words = STR_NULL;
    struct stat st;
    char before[512];
    char after[512];
    char former[512] = "x";
    char keyless[128];

    sample_hub_add_node(&hub, "a");
    write_file(hub.dir, "keys/notes.txt", "no key");
    write_file(hub.dir, "keys/.key", "no key");
    write_file(hub.dir, "other", "not the hub's");
    write_file(hub.dir, "addresses.json", "{}");
    assert_int_equal(backup_keep_options(hub.dir, options, 5, &e), 0);
    make_copy();
    assert_false(is_there(hub.dir, "backup.new"));
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        assert_true(is_there(copied, parts[i]));
    assert_false(is_there(copied, "keys/notes.txt"));
    assert_false(is_there(copied, "keys/.key"));
    assert_false(is_there(copied, "other"));
    read_file(hub.dir, "keys/default.key", before);
    read_file(copied, "keys/default.key", after);
    assert_string_equal(before, after);
    /* The next copy takes the place of this one. */
    sample_hub_add_node(&hub, "b");
    make_copy();
    sample_hub_close(&hub);
    assert_int_equal(restore(keyless, former, &e), 0);
    assert_string_equal(keyless, "");
    assert_string_equal(former, "");
    assert_false(is_there(hub.dir, "a/b/state.restore"));
    (void)snprintf(before, sizeof(before), "%s/keys/default.key", elsewhere);
    assert_int_equal(stat(before, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    backup_read_options(elsewhere, &words);
    assert_string_equal(str_text(&words), " --name 'it'\\''s' --public 192.0.2.1 ''");
    str_deinit(&words);
    {
        struct sample_hub next = {.has_begun = true, .now = hub.now};

        (void)snprintf(next.dir, sizeof(next.dir), "%.63s", elsewhere);
        (void)snprintf(next.url, sizeof(next.url), "sqlite:%s/hub.db", next.dir);
        sample_hub_open(&next);
        assert_non_null(model_find_node(sample_hub_network(&next), "a"));
        assert_non_null(model_find_node(sample_hub_network(&next), "b"));
        sample_hub_close(&next);
    }
}

/* A file of any length, byte for byte; one that is a link is not followed. */
static void test_files_that_are_long_or_links(void **state)
{
    struct err e = ERR_NULL;
    char path[256];
    char words[512];
    char *text = malloc(200001);
    char *copy = calloc(1, 200002);
    FILE *f;

    assert_non_null(text);
    assert_non_null(copy);
    for (size_t i = 0; i < 200000; i++)
        text[i] = (char)('a' + i % 23);
    text[200000] = '\0';
    write_file(hub.dir, "tls.crt", text);
    /* What a hub has left that ended while it made one. */
    (void)snprintf(path, sizeof(path), "%s/backup.new", hub.dir);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file(path, "hub.db", "half");
    make_copy();
    (void)snprintf(path, sizeof(path), "%s/tls.crt", copied);
    f = fopen(path, "re");
    assert_non_null(f);
    assert_int_equal(fread(copy, 1, 200001, f), 200000);
    (void)fclose(f);
    assert_memory_equal(copy, text, 200000);
    sample_hub_close(&hub);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("tls.key", path), 0);
    (void)snprintf(elsewhere, sizeof(elsewhere), "%s/second", hub.dir);
    assert_int_equal(backup_copy(copied, elsewhere, &e), -ELOOP);
    (void)snprintf(words, sizeof(words), "\"%s\" cannot be read: %s", path, strerror(ELOOP));
    assert_string_equal(err_text(&e), words);
    assert_false(is_there(elsewhere, ""));
    free(text);
    free(copy);
}

static void test_a_copy_without_the_folder_of_keys(void **state)
{
    struct err e = ERR_NULL;
    char words[512];

    make_copy();
    sample_hub_close(&hub);
    (void)snprintf(elsewhere, sizeof(elsewhere), "%s/bare", hub.dir);
    assert_int_equal(mkdir(elsewhere, 0700), 0);
    write_file(elsewhere, "hub.db", "x");
    write_file(elsewhere, "tls.key", "x");
    (void)snprintf(copied, sizeof(copied), "%s/second", hub.dir);
    assert_int_equal(backup_copy(elsewhere, copied, &e), -ENOENT);
    (void)snprintf(
        words, sizeof(words), "\"%s/keys\" cannot be read: %s", elsewhere, strerror(ENOENT));
    assert_string_equal(err_text(&e), words);
    assert_false(is_there(copied, ""));
    /* Nor without a folder to lie in. */
    (void)snprintf(copied, sizeof(copied), "%s/no/where", hub.dir);
    assert_int_equal(backup_copy(elsewhere, copied, &e), -ENOENT);
    (void)snprintf(words, sizeof(words), "\"%s\" cannot be made: %s", copied, strerror(ENOENT));
    assert_string_equal(err_text(&e), words);
}

/* What is no part of a copy lies where the copy is to go: it stays, and the rest is taken away. */
static void test_a_place_that_cannot_be_taken(void **state)
{
    json_t *answer = NULL;

    make_copy();
    write_file(copied, "notes", "mine");
    hub.may_fail = true;
    assert_true(
        sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "POST", "/v1/backup", NULL, &answer) >= 500);
    json_decref(answer);
    assert_true(is_there(copied, "notes"));
    assert_false(is_there(hub.dir, "backup.new"));
    assert_null(hub.hub->networks.held_keys);
    assert_true(is_there(hub.dir, "keys/default.key"));
    sample_hub_close(&hub);
}

/* A path of exactly that length below the test's folder. */
static void make_path(char ret[static 600], size_t len)
{
    size_t n = (size_t)snprintf(ret, 600, "%s", hub.dir);

    for (size_t i = 0; n < len; i++, n++)
        ret[n] = i % 100 == 0 && n + 2 < len ? '/' : 'p';
    ret[n] = '\0';
}

/* The last length that fits, and the first that does not. */
static void test_long_paths(void **state)
{
    static const char *const one[] = {"--verbose"};
    struct str keyless = STR_NULL;
    struct err e = ERR_NULL;
    char former[512] = "x";
    char path[600];
    char words[512];

    make_copy();
    sample_hub_close(&hub);
    make_path(path, 511 - strlen("/options.json"));
    assert_int_equal(backup_keep_options(path, one, 1, &e), -ENOENT);
    make_path(path, 512 - strlen("/options.json"));
    assert_int_equal(backup_keep_options(path, one, 1, &e), -ENAMETOOLONG);
    (void)snprintf(words, sizeof(words), "the path \"%.200s\" is too long", path);
    assert_string_equal(err_text(&e), words);
    make_path(path, 480 - strlen(".restore"));
    e = (struct err)ERR_NULL;
    assert_int_equal(backup_restore(copied, path, former, &keyless, &e), -ENAMETOOLONG);
    assert_string_equal(err_text(&e), words);
    make_path(path, 480 - strlen(".restore") - 1);
    assert_int_equal(backup_restore(copied, path, former, &keyless, &e), 0);
    assert_string_equal(former, "");
    assert_string_equal(str_text(&keyless), "");
    str_deinit(&keyless);
}

/* Whoever had the former state has the new one: all of it. */
static void test_the_owner_of_what_was_there(void **state)
{
    static const char *const names[] = {"", "hub.db", "tls.key", "keys", "keys/default.key"};
    struct err e = ERR_NULL;
    char former[512] = "";
    char keyless[128];
    char path[256];
    struct stat st;

    make_copy();
    sample_hub_close(&hub);
    if (geteuid() != 0)
        skip();
    assert_int_equal(restore(keyless, former, &e), 0);
    assert_int_equal(chown(elsewhere, 1234, 1235), 0);
    /* A damaged database is nobody's. */
    write_file(elsewhere, "hub.db", "no database, however long it is; no database, however long");
    assert_int_equal(restore(keyless, former, &e), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", elsewhere, names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_uid, 1234);
        assert_int_equal(st.st_gid, 1235);
    }
    /* Where none was, it stays with who restores. */
    (void)snprintf(elsewhere, sizeof(elsewhere), "%s/a/c", hub.dir);
    assert_int_equal(restore(keyless, former, &e), 0);
    assert_int_equal(stat(elsewhere, &st), 0);
    assert_int_equal(st.st_uid, 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

/* What was there is kept beside it. */
static void test_what_was_there(void **state)
{
    struct err e = ERR_NULL;
    char former[512] = "";
    char again[512] = "";
    char keyless[128];
    char path[256];

    make_copy();
    sample_hub_close(&hub);
    /* A restore that ended in the middle has left something. */
    (void)snprintf(path, sizeof(path), "%s/a", hub.dir);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/a/b", hub.dir);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s.restore", elsewhere);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file(path, "hub.db", "half");
    assert_int_equal(restore(keyless, former, &e), 0);
    write_file(elsewhere, "mine", "x");
    assert_int_equal(restore(keyless, former, &e), 0);
    assert_memory_equal(former, elsewhere, strlen(elsewhere));
    assert_non_null(strstr(former, ".before-"));
    assert_true(is_there(former, "mine"));
    assert_false(is_there(elsewhere, "mine"));
    /* In the same second, too. */
    assert_int_equal(restore(keyless, again, &e), 0);
    assert_string_not_equal(former, again);
    assert_true(is_there(again, "hub.db"));
}

static void test_what_is_no_copy(void **state)
{
    struct err e = ERR_NULL;
    char words[512];
    char former[512] = "x";
    char keyless[128];
    char path[256];

    make_copy();
    sample_hub_close(&hub);
    (void)snprintf(path, sizeof(path), "%s/tls.key", copied);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(restore(keyless, former, &e), -ENOENT);
    (void)snprintf(
        words, sizeof(words), "\"%s\" has no tls.key: it is no copy of a hub's state", copied);
    assert_string_equal(err_text(&e), words);
    assert_false(is_there(elsewhere, ""));
    assert_false(is_there(hub.dir, "a/b/state.restore"));
    write_file(copied, "tls.key", "x");
    write_file(copied, "hub.db", "no database, however long it is; no database, however long");
    assert_int_equal(restore(keyless, former, &e), -EUCLEAN);
    (void)snprintf(words, sizeof(words),
        "\"%s/hub.db\" is damaged, or is not the database of a hub: take another copy; nothing has "
        "changed",
        copied);
    assert_string_equal(err_text(&e), words);
    assert_false(is_there(elsewhere, ""));
    assert_false(is_there(hub.dir, "a/b/state.restore"));
    assert_string_equal(former, "x");
    /* There has to be something at all. */
    (void)snprintf(copied, sizeof(copied), "%s/nothing", hub.dir);
    assert_int_equal(restore(keyless, former, &e), -ENOENT);
    (void)snprintf(
        words, sizeof(words), "\"%s\" has no hub.db: it is no copy of a hub's state", copied);
    assert_string_equal(err_text(&e), words);
    assert_string_equal(former, "x");
}

/* The state cannot be put where something else lies: what lay there is there again. */
static void test_a_state_that_cannot_be_placed(void **state)
{
    struct err e = ERR_NULL;
    char former[512] = "x";
    char keyless[128];
    char words[512];
    char path[256];

    make_copy();
    sample_hub_close(&hub);
    write_file(hub.dir, "a", "no folder");
    assert_int_equal(restore(keyless, former, &e), -ENOTDIR);
    assert_string_equal(former, "x");
    (void)snprintf(path, sizeof(path), "%s/a", hub.dir);
    assert_int_equal(unlink(path), 0);
    /* A folder that can be reached by a way that a folder cannot be renamed to. */
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(elsewhere, sizeof(elsewhere), "%s/a/.", hub.dir);
    assert_true(restore(keyless, former, &e) < 0);
    (void)snprintf(
        words, sizeof(words), "\"%s\" cannot be moved to \"%s.before-", elsewhere, elsewhere);
    assert_memory_equal(err_text(&e), words, strlen(words));
    assert_string_equal(former, "x");
    assert_true(is_there(path, ""));
    assert_false(is_there(path, "..restore"));
}

/* A copy that was carried without its keys, or with something else in their place. */
static void test_keys_that_are_missing(void **state)
{
    struct err e = ERR_NULL;
    char former[512];
    char keyless[128];
    char path[256];

    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "POST", "/v1/networks",
                         "{\"name\":\"lab\",\"cidr4\":\"10.60.0.0/16\"}", NULL),
        201);
    make_copy();
    sample_hub_close(&hub);
    assert_int_equal(restore(keyless, former, &e), 0);
    assert_string_equal(keyless, "");
    write_file(copied, "keys/default.key", "no key");
    assert_int_equal(restore(keyless, former, &e), 0);
    assert_string_equal(keyless, "default");
    (void)snprintf(path, sizeof(path), "%s/keys/lab.key", copied);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(restore(keyless, former, &e), 0);
    assert_string_equal(keyless, "default, lab");
}

/* Where a hub runs nothing is touched. */
static void test_a_hub_that_runs(void **state)
{
    struct err e = ERR_NULL;
    char former[512] = "x";
    struct str keyless = STR_NULL;

    make_copy();
    assert_int_equal(backup_restore(copied, hub.dir, former, &keyless, &e), -EBUSY);
    assert_non_null(strstr(err_text(&e), ": end that hub first"));
    assert_string_equal(former, "x");
    str_deinit(&keyless);
    sample_hub_close(&hub);
}

static void test_copies_of_copies(void **state)
{
    static const char *const beside[] = {"hub.db-wal", "hub.db-shm", "hub.db-journal"};
    struct err e = ERR_NULL;

    make_copy();
    sample_hub_close(&hub);
    (void)snprintf(elsewhere, sizeof(elsewhere), "%s/second", hub.dir);
    assert_int_equal(backup_copy(copied, elsewhere, &e), 0);
    assert_true(is_there(elsewhere, "keys/default.key"));
    assert_int_equal(backup_copy(copied, elsewhere, &e), -EEXIST);
    assert_true(is_there(elsewhere, "hub.db"));
    /* What is no part of a copy stays, with its folder; what the database has beside it goes. */
    for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++)
        write_file(elsewhere, beside[i], "x");
    write_file(elsewhere, "notes", "x");
    backup_remove(elsewhere);
    assert_false(is_there(elsewhere, "hub.db"));
    for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++)
        assert_false(is_there(elsewhere, beside[i]));
    assert_false(is_there(elsewhere, "keys"));
    assert_true(is_there(elsewhere, "notes"));
    backup_remove(copied);
    assert_false(is_there(copied, ""));
}

static void test_options(void **state)
{
    static const char *const one[] = {"--verbose"};
    struct str words = STR_NULL;
    struct err e = ERR_NULL;
    struct stat st;
    char path[256];
    char kept[256];

    sample_hub_close(&hub);
    backup_read_options("/nonexistent", &words);
    assert_string_equal(str_text(&words), "");
    assert_int_equal(backup_keep_options(hub.dir, one, 1, &e), 0);
    backup_read_options(hub.dir, &words);
    assert_string_equal(str_text(&words), " --verbose");
    /* The same ones are not written again: the file stays, and others put one in its place. */
    (void)snprintf(path, sizeof(path), "%s/options.json", hub.dir);
    (void)snprintf(kept, sizeof(kept), "%s/kept", hub.dir);
    assert_int_equal(link(path, kept), 0);
    assert_int_equal(backup_keep_options(hub.dir, one, 1, &e), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_nlink, 2);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(backup_keep_options(hub.dir, NULL, 0, &e), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_nlink, 1);
    str_deinit(&words);
    backup_read_options(hub.dir, &words);
    assert_string_equal(str_text(&words), "");
    assert_true(backup_keep_options("/nonexistent", one, 1, &e) < 0);
    str_deinit(&words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_hub_goes_on_from_a_copy, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_was_there, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_no_copy, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_state_that_cannot_be_placed, enter, leave),
        cmocka_unit_test_setup_teardown(test_keys_that_are_missing, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_hub_that_runs, enter, leave),
        cmocka_unit_test_setup_teardown(test_copies_of_copies, enter, leave),
        cmocka_unit_test_setup_teardown(test_files_that_are_long_or_links, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_copy_without_the_folder_of_keys, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_place_that_cannot_be_taken, enter, leave),
        cmocka_unit_test_setup_teardown(test_long_paths, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_owner_of_what_was_there, enter, leave),
        cmocka_unit_test_setup_teardown(test_options, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
