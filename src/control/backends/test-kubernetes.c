/*
 * test-kubernetes.c - the store in Kubernetes: the forms of its records and of kubeconfigs; and on
 * a server, what only this store can promise.
 *
 * test/kube/test_store.py starts a server, sets $WEFT_TEST_KUBECONFIG, and stops and restarts the
 * server meanwhile. Without that variable the tests of a server are left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/kubernetes/kube_client.h"
#include "backends/kubernetes/kube_journal.h"
#include "backends/store_open.h"
#include "base/err.h"
#include "os/clock.h"
#include "store/store.h"
#include "store/store_backend.h"
#include "test/support/store_now.h"

/* ---- forms ----------------------------------------------------------------------------------- */

static void test_entries(void **state)
{
    struct store_op ops[] = {
        {.kind = STORE_OP_PUT,
            .key = "a/b",
            .value = "{\"x\":\"\\n\"}",
            .expect = 7,
            .ttl_seconds = 30,
            .is_unwatched = true},
        {.kind = STORE_OP_DELETE, .key = "c", .expect = STORE_EXPECT_ANY},
        {.kind = STORE_OP_CHECK, .key = "d", .expect = STORE_EXPECT_ABSENT},
    };
    struct store_job *job = store_job_new(STORE_JOB_COMMIT);
    struct store_job *back = NULL;
    struct err e = ERR_NULL;
    json_t *json;

    assert_int_equal(store_job_set_ops(job, ops, 3), 0);
    json = kube_commit_encode(job);
    assert_int_equal(kube_commit_decode(&back, json, &e), 0);
    assert_int_equal(back->n_ops, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(back->ops[i].kind, ops[i].kind);
        assert_string_equal(back->ops[i].key, ops[i].key);
        assert_int_equal(back->ops[i].expect, ops[i].expect);
        assert_int_equal(back->ops[i].ttl_seconds, ops[i].ttl_seconds);
        assert_int_equal(back->ops[i].is_unwatched, ops[i].is_unwatched);
    }
    assert_string_equal(back->ops[0].value, ops[0].value);
    json_decref(json);
    store_job_free(job);
    store_job_free(back);
}

static void test_entries_that_no_hub_wrote(void **state)
{
    static const char *const texts[] = {"[]", "{}", "[[]]", "[[\"put\"]]",
        "[[\"burn\",\"k\",1,\"\",0,false]]", "[[\"put\",\"white space\",1,\"\",0,false]]",
        "[[\"put\",\"k\",-2,\"\",0,false]]", "[[\"put\",\"k\",0,\"\",-1,false]]"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        json_t *json = json_loads(texts[i], 0, NULL);
        struct store_job *job = NULL;
        struct err e = ERR_NULL;

        assert_int_equal(kube_commit_decode(&job, json, &e), -EINVAL);
        assert_int_not_equal(err_text(&e)[0], '\0');
        json_decref(json);
    }
}

static void test_floors(void **state)
{
    static const char *const bad[] = {"", "[]", "{\"layout\":1,\"first\":0,\"next\":1,\"parts\":0}",
        "{\"layout\":1,\"first\":5,\"next\":4,\"parts\":0}",
        "{\"layout\":1,\"first\":1,\"next\":1,\"parts\":5000}",
        "{\"layout\":2,\"first\":1,\"next\":1,\"parts\":0}"};
    struct kube_checkpoint f = {.first = 3, .next = 9, .parts = 2};
    struct kube_checkpoint back = {0};
    struct err e = ERR_NULL;
    char *text = kube_checkpoint_encode(&f);

    assert_int_equal(kube_checkpoint_decode(&back, text, &e), 0);
    assert_true(back.first == 3 && back.next == 9 && back.parts == 2);
    free(text);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(kube_checkpoint_decode(&back, bad[i], &e), -EINVAL);
    assert_non_null(strstr(err_text(&e), "newer"));
}

static void test_leftovers(void **state)
{
    static const struct {
        const char *name;
        bool is_one;
    } names[] = {
        {"floor", false},
        {"entry-0000000000000001", false},
        {"state-0000000000000512-0", true},
        {"state-0000000000001025-0", false}, /* the floor's own */
        {"state-0000000000001537-3", false}, /* being written */
        {"part-00000000000000aa-1-256-0", true},
        {"part-00000000000000aa-1-257-0", false}, /* its entry may be the first that is kept */
        {"part-00000000000000aa-1-0", false},     /* of an older hub */
        {"part-00000000000000aa-1-18446744073709551615-0", false},
        {"part-00000000000000aa-1-1-0x", false},
    };
    struct kube_checkpoint f = {.first = 513, .next = 1025, .parts = 1};
    char writer[KUBE_WRITER_MAX];
    char name[KUBE_RECORD_NAME_MAX];

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (kube_is_orphan(names[i].name, &f) != names[i].is_one)
            fail_msg("%s", names[i].name);
    (void)kube_piece_name(name, kube_writer(writer, UINT64_MAX, 7, 12), 0, 3);
    assert_string_equal(name, "part-ffffffffffffffff-7-12-3");
    assert_true(kube_is_orphan(name, &f));
}

static void test_cut(void **state)
{
    char *text = malloc(3 * KUBE_RECORD_MAX);
    size_t len;

    assert_int_equal(kube_cut(""), 0);
    assert_int_equal(kube_cut("abc"), 3);
    /* Each quote is two bytes in JSON. */
    memset(text, '"', KUBE_RECORD_MAX);
    text[KUBE_RECORD_MAX] = '\0';
    len = kube_cut(text);
    assert_true(len <= KUBE_RECORD_MAX / 2 && len > KUBE_RECORD_MAX / 2 - 8);
    /* No character is cut: two bytes each, behind one byte. */
    text[0] = 'x';
    for (size_t i = 1; i + 1 < 2 * KUBE_RECORD_MAX; i += 2)
        memcpy(text + i, "\xc3\xa9", 3);
    len = kube_cut(text);
    assert_int_equal(len % 2, 1);
    free(text);
}

static void assert_config(const char *text, int r, const char *words)
{
    char path[] = "/tmp/weft-test-kubeconfig.XXXXXX";
    char where[64];
    struct kube_config c;
    struct err e = ERR_NULL;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
    (void)snprintf(where, sizeof(where), "?kubeconfig=%s", path);
    assert_int_equal(kube_config_read(&c, where, &e), r);
    if (r != 0) {
        assert_non_null(strstr(err_text(&e), words));
    } else {
        assert_string_equal(c.server, "https://192.0.2.1:6443");
        assert_string_equal(c.namespace, "mesh");
        assert_string_equal(c.token, "secret");
        assert_non_null(c.ca_file);
    }
    kube_config_deinit(&c);
    (void)unlink(path);
}

#define CONFIG(cluster, user)                                                                      \
    "current-context: b\n"                                                                         \
    "contexts: [{name: a, context: {}}, {name: b, context: {cluster: c, user: u, "                 \
    "namespace: mesh}}]\n"                                                                         \
    "clusters: [{name: c, cluster: {" cluster "}}]\n"                                              \
    "users: [{name: u, user: {" user "}}]\n"

static void test_kubeconfigs(void **state)
{
    assert_config(
        CONFIG("server: \"https://192.0.2.1:6443\", certificate-authority: /ca", "token: secret"),
        0, NULL);
    assert_config(CONFIG("server: \"https://192.0.2.1:6443\", certificate-authority-data: YWJj",
                      "token: secret"),
        0, NULL);
    assert_config(CONFIG("server: \"https://192.0.2.1:6443\", certificate-authority-data: Y",
                      "token: secret"),
        -EINVAL, "base64");
    assert_config(CONFIG("certificate-authority: /ca", "token: secret"), -EINVAL, "no cluster");
    assert_config(CONFIG("server: \"https://192.0.2.1:6443\"", "exec: {command: aws}"), -EINVAL,
        "from a program");
    assert_config(
        CONFIG("server: \"https://192.0.2.1:6443\", insecure-skip-tls-verify: true", "token: x"),
        -EINVAL, "insecure-skip-tls-verify");
    assert_config("current-context: [", -EINVAL, "not YAML");
}

static void test_urls(void **state)
{
    struct err e = ERR_NULL;

    assert_int_equal(store_open_check("kubernetes:", &e), 0);
    assert_int_equal(store_open_check("kubernetes:?namespace=weft&kubeconfig=/k", &e), 0);
    assert_int_equal(store_open_check("kubernetes:weft", &e), -EINVAL);
    assert_int_equal(store_open_check("kubernetes:?namespace=No", &e), -EINVAL);
    assert_int_equal(store_open_check("kubernetes:?name=weft", &e), -EINVAL);
    assert_non_null(strstr(err_text(&e), "name=weft"));
}

/* ---- on a server ----------------------------------------------------------------------------- */

/* A hub: it counts what one key holds up, by what its watch has told. */
struct counter {
    struct store *s;
    struct store_watch *w;
    uint64_t revision; /* of the key, as the watch told it last */
    long value;
    int r;            /* of the last commit; 1000: not answered */
    unsigned n_done;  /* commits that were answered with 0 */
    unsigned n_maybe; /* those whose answer was lost */
};

static struct store *open_in(const char *namespace)
{
    struct store *s = NULL;
    struct err e = ERR_NULL;
    char url[512];

    (void)snprintf(url, sizeof(url), "kubernetes:?namespace=%s&kubeconfig=%s", namespace,
        getenv("WEFT_TEST_KUBECONFIG"));
    if (store_open(&s, url, 0, &e) != 0)
        fail_msg("%s", err_text(&e));
    return s;
}

static void on_reported(void *ctx, const struct store_item *item)
{
    struct counter *c = ctx;

    assert_non_null(item);
    assert_true(item->revision > c->revision);
    /* Each change of the key is told, and none is lost or done twice. */
    assert_int_equal(strtol(item->value, NULL, 10), c->value + 1);
    c->revision = item->revision;
    c->value++;
}

static void on_counted(void *ctx, const struct store_answer *a)
{
    struct counter *c = ctx;

    c->r = a->r;
    c->n_done += a->r == 0;
    c->n_maybe += a->r == STORE_E_UNKNOWN;
    if (a->r != 0 && a->r != STORE_E_CONFLICT && a->r != STORE_E_UNKNOWN && a->r != -EAGAIN)
        fail_msg("%d: %s", a->r, err_text(a->e));
}

static void count_up(struct counter *c)
{
    char value[24];
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = "count", .value = value, .expect = c->revision};
    struct err e = ERR_NULL;

    (void)snprintf(value, sizeof(value), "%ld", c->value + 1);
    c->r = 1000;
    assert_int_equal(store_commit(c->s, &op, 1, 0, on_counted, c, &e), 0);
}

static int keep_value(void *ctx, const struct store_item *item)
{
    *(long *)ctx = strtol(item->value, NULL, 10);
    return 0;
}

/* Two hubs and one key, while the server dies and comes back. */
static void test_two_hubs(void **state)
{
    const char *text = getenv("WEFT_TEST_SECONDS");
    nsec_t until = clock_now() + (nsec_t)(text ? strtoul(text, NULL, 10) : 2) * NSEC_PER_SEC;
    struct counter c[2] = {{.s = open_in("hubs")}, {.s = open_in("hubs")}};
    struct err e = ERR_NULL;
    unsigned n_done;
    unsigned n_maybe;
    long value = 0;
    int r;

    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(store_watch(c[i].s, "count", 1, on_reported, &c[i], &c[i].w, &e), 0);
    while (clock_now() < until)
        for (unsigned i = 0; i < 2; i++) {
            if (c[i].r != 1000)
                count_up(&c[i]);
            store_dispatch(c[i].s);
        }
    for (unsigned i = 0; i < 2; i++)
        store_wait(c[i].s);
    n_done = c[0].n_done + c[1].n_done;
    n_maybe = c[0].n_maybe + c[1].n_maybe;
    /* Nobody has told the server's end that this is over: it may be dead just now. */
    until = clock_now() + 60 * NSEC_PER_SEC;
    do
        r = store_now_get(c[0].s, "count", keep_value, &value, &e);
    while (r == -EAGAIN && clock_now() < until);
    assert_int_equal(r, 0);
    printf("FIGURE two hubs counted to %ld; acknowledged %u, answers lost %u\n", value, n_done,
        n_maybe);
    assert_true(n_done > 10 && c[0].n_done > 0 && c[1].n_done > 0);
    assert_in_range(value, n_done, n_done + n_maybe);
    for (unsigned i = 0; i < 2; i++) {
        store_watch_close(c[i].w);
        store_free(c[i].s);
    }
}

static void put(struct store *s, const char *key, const char *value, uint32_t ttl)
{
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = key,
        .value = value,
        .expect = STORE_EXPECT_ANY,
        .ttl_seconds = ttl};
    struct err e = ERR_NULL;
    int r = store_now_commit(s, &op, 1, 0, NULL, NULL, &e);

    if (r != 0)
        fail_msg("%d: %s", r, err_text(&e));
}

/* What one hub knows by its watch, while another one writes and cuts the journal. */
struct follower {
    unsigned n;
    bool is_gone; /* of the key "first" */
    char last[16];
};

static void on_follow(void *ctx, const struct store_item *item)
{
    struct follower *f = ctx;

    f->n++;
    if (item && strcmp(item->key, "first") == 0)
        f->is_gone = item->value == NULL;
    if (item && strcmp(item->key, "last") == 0)
        (void)snprintf(f->last, sizeof(f->last), "%s", item->value);
}

static int count_items(void *ctx, const struct store_item *item)
{
    *(unsigned *)ctx += 1;
    return 0;
}

/* What hubs left that died while they wrote: two to be removed, and one that may be needed. */
static const char *const pieces[] = {
    "part-00000000000000aa-1-1-0", "state-0000000000000000-0", "part-00000000000000aa-2-1100-0"};

static void make_pieces(struct kube_client *c)
{
    char where[512];
    struct err e = ERR_NULL;

    (void)snprintf(
        where, sizeof(where), "?namespace=cut&kubeconfig=%s", getenv("WEFT_TEST_KUBECONFIG"));
    assert_int_equal(kube_client_init(c, where, &e), 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(
            kube_client_write(c, pieces[i], "x", NULL, clock_now() + 10 * NSEC_PER_SEC, &e), 0);
}

/* Wait until the pieces are gone that nobody needs. */
static void await_pieces(struct kube_client *c)
{
    nsec_t until = clock_now() + 30 * NSEC_PER_SEC;
    struct kube_record record = KUBE_RECORD_NULL;
    struct err e = ERR_NULL;

    for (size_t i = 0; i < 2; i++)
        while (kube_client_read(c, pieces[i], until, &record, &e) == 0) {
            kube_record_deinit(&record);
            assert_true(clock_now() < until);
        }
    assert_int_equal(kube_client_read(c, pieces[2], until, &record, &e), 0);
    kube_record_deinit(&record);
    kube_client_deinit(c);
}

static void on_deleted(void *ctx, const struct store_answer *a)
{
    uint64_t *since = ctx;

    assert_int_equal(a->r, 0);
    assert_int_equal(a->n_items, 1);
    assert_string_equal(a->items[0].key, "first");
    assert_true(a->items[0].revision >= a->since);
    *since = a->since;
}

/* More entries than are kept: who opens it begins at a state, and who was there has heard all. */
static void test_journal_is_cut(void **state)
{
    struct store *writer = open_in("cut");
    struct store *other = open_in("cut");
    struct store_op gone = {.kind = STORE_OP_DELETE, .key = "first", .expect = STORE_EXPECT_ANY};
    struct follower f = {0};
    struct store_watch *w = NULL;
    struct err e = ERR_NULL;
    struct kube_client client;
    uint64_t revision;
    uint64_t since = 0;
    unsigned n = 0;
    char key[24];

    make_pieces(&client);
    assert_int_equal(store_watch(other, "", 1, on_follow, &f, &w, &e), 0);
    put(writer, "first", "1", 0);
    put(writer, "leased", "1", 60);
    for (unsigned i = 0; i < 1200; i++) {
        (void)snprintf(key, sizeof(key), "k/%u", i % 100);
        put(writer, key, "1", 0);
    }
    assert_int_equal(store_now_commit(writer, &gone, 1, 0, &revision, NULL, &e), 0);
    put(writer, "last", "yes", 0);
    /* A read is answered when everything before it is known. */
    assert_int_equal(store_now_list(other, "", count_items, &n, NULL, &e), 0);
    assert_int_equal(n, 102);
    assert_true(f.is_gone);
    assert_string_equal(f.last, "yes");
    assert_int_equal(store_revision(other), revision + 1);
    store_watch_close(w);
    store_free(other);
    /* From the state, with its leases. */
    other = open_in("cut");
    assert_int_equal(store_revision(other), revision + 1);
    assert_int_equal(store_due(other), 60 * NSEC_PER_SEC);
    n = 0;
    assert_int_equal(store_now_list(other, "", count_items, &n, NULL, &e), 0);
    assert_int_equal(n, 102);
    /* With what was deleted since that state. */
    assert_int_equal(store_deleted(other, on_deleted, &since, &e), 0);
    store_wait(other);
    assert_true(since > 1);
    await_pieces(&client);
    store_free(other);
    store_free(writer);
}

/* A hub that sleeps for so long that the journal does not reach back: its exit status. */
static int sleep_and_follow(void)
{
    struct store *s = open_in("slept");
    struct follower f = {0};
    struct store_watch *w = NULL;
    struct err e = ERR_NULL;
    unsigned n = 0;

    if (store_watch(s, "", store_revision(s) + 1, on_follow, &f, &w, &e) != 0)
        return 2;
    (void)raise(SIGSTOP);
    if (store_now_list(s, "", count_items, &n, NULL, &e) != 0)
        return 3;
    store_watch_close(w);
    store_free(s);
    if (n != 101 || !f.is_gone || strcmp(f.last, "yes") != 0)
        return 4;
    /* What is different, and not each step to it. */
    return f.n == 102 ? 0 : 5;
}

static void test_slept(void **state)
{
    struct store_op gone = {.kind = STORE_OP_DELETE, .key = "first", .expect = STORE_EXPECT_ANY};
    struct store *writer = open_in("slept");
    struct err e = ERR_NULL;
    char key[24];
    int status;
    pid_t pid;

    put(writer, "first", "1", 0);
    store_free(writer);
    pid = fork();
    if (pid == 0)
        _exit(sleep_and_follow());
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    writer = open_in("slept");
    for (unsigned i = 0; i < 1200; i++) {
        (void)snprintf(key, sizeof(key), "k/%u", i % 100);
        put(writer, key, "1", 0);
    }
    assert_int_equal(store_now_commit(writer, &gone, 1, 0, NULL, NULL, &e), 0);
    put(writer, "last", "yes", 0);
    (void)kill(pid, SIGCONT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    store_free(writer);
}

/* A commit that no Record can hold is in parts, and is there whole. */
static void test_large_commit(void **state)
{
    struct store *s = open_in("large");
    struct store *other;
    char *big = malloc(STORE_VALUE_MAX + 1);
    struct store_op ops[60];
    char keys[60][16];
    struct err e = ERR_NULL;
    unsigned n = 0;

    memset(big, '"', STORE_VALUE_MAX);
    big[STORE_VALUE_MAX] = '\0';
    for (size_t i = 0; i < 60; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "big/%zu", i);
        ops[i] = (struct store_op){.kind = STORE_OP_PUT, .key = keys[i], .value = big};
    }
    assert_int_equal(store_now_commit(s, ops, 60, 0, NULL, NULL, &e), 0);
    store_free(s);
    other = open_in("large");
    assert_int_equal(store_now_list(other, "", count_items, &n, NULL, &e), 0);
    assert_int_equal(n, 60);
    store_free(other);
    free(big);
}

int main(void)
{
    static const struct CMUnitTest forms[] = {
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_entries_that_no_hub_wrote),
        cmocka_unit_test(test_floors),
        cmocka_unit_test(test_leftovers),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_kubeconfigs),
        cmocka_unit_test(test_urls),
    };
    static const struct CMUnitTest on_server[] = {
        cmocka_unit_test(test_journal_is_cut),
        cmocka_unit_test(test_slept),
        cmocka_unit_test(test_large_commit),
        cmocka_unit_test(test_two_hubs),
    };

    const char *only = getenv("WEFT_TEST_ONLY");

    if (only && only[0] == '!')
        cmocka_set_skip_filter(only + 1);
    else if (only)
        cmocka_set_test_filter(only);
    if (getenv("WEFT_TEST_KUBECONFIG"))
        return cmocka_run_group_tests(on_server, NULL, NULL);
    return cmocka_run_group_tests(forms, NULL, NULL);
}
