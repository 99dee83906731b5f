/*
 * test-etcd.c - what only the etcd store can promise: another writer beside it, large commits that
 * are cut off, compaction, TLS, users, and members that are away.
 *
 * The part of the contract that every store has is in test-store.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/etcd/etcd_codec.h"
#include "backends/store_open.h"
#include "base/err.h"
#include "store/store.h"
#include "test/support/netns.h"
#include "test/support/sample_etcd.h"
#include "test/support/store_fixture.h"
#include "test/support/store_now.h"

static struct sample_etcd *cluster; /* of one member; of the tests that do not make their own */
static struct err words;

static int start_cluster(void **state)
{
    static const struct sample_etcd_options opt = {.n = 1};

    cluster = sample_etcd_start(&opt);
    return cluster ? 0 : -1;
}

static int end_cluster(void **state)
{
    cluster = sample_etcd_free(cluster);
    return 0;
}

static struct store *open_at(struct sample_etcd *c, const char *prefix)
{
    struct store *s = NULL;
    char url[256];

    if (store_open(&s, sample_etcd_url(c, prefix, url, sizeof(url)), 0, &words) != 0)
        fail_msg("%s", words.text);
    return s;
}

static uint64_t put(struct store *s, const char *key, const char *value, uint64_t expect)
{
    struct store_op op = {.kind = STORE_OP_PUT, .key = key, .value = value, .expect = expect};
    uint64_t revision = 0;
    int r = store_now_commit(s, &op, 1, 0, &revision, NULL, &words);

    if (r != 0)
        fail_msg("put %s: %d %s", key, r, words.text);
    return revision;
}

static void assert_all(struct store *s, const char *prefix, const char *expected)
{
    struct store_said said = {0};

    assert_int_equal(store_now_list(s, prefix, store_said_item, &said, NULL, &words), 0);
    assert_string_equal(said.text, expected);
}

/* Dispatch until @said has @n items. */
static void wait_said(struct store *s, const struct store_said *said, unsigned n)
{
    for (unsigned i = 0; i < 2000 && said->n < n; i++) {
        struct pollfd p = {.fd = store_fd(s), .events = POLLIN};

        if (poll(&p, 1, 10) > 0)
            store_dispatch(s);
    }
    if (said->n != n)
        fail_msg("%u changes instead of %u: %s", said->n, n, said->text);
}

/* ---- URLs ----------------------------------------------------------------------------------- */

static void test_url(void **state)
{
    struct etcd_url u;

    assert_int_equal(
        etcd_url_parse(&u, "//a,b:1,[fd00::1],[fd00::2]:3?prefix=/x", false, &words), 0);
    assert_int_equal(u.n_servers, 4);
    assert_string_equal(u.servers[0], "http://a:2379");
    assert_string_equal(u.servers[1], "http://b:1");
    assert_string_equal(u.servers[2], "http://[fd00::1]:2379");
    assert_string_equal(u.servers[3], "http://[fd00::2]:3");
    assert_string_equal(u.prefix, "/x/");
    assert_null(u.user);
    assert_int_equal(
        etcd_url_parse(&u, "//a?cacert=/c&cert=/d&key=/e&user=u&password-file=/p", true, &words),
        0);
    assert_string_equal(u.servers[0], "https://a:2379");
    assert_string_equal(u.prefix, "/weft/");
    assert_string_equal(u.ca_file, "/c");
    assert_string_equal(u.cert_file, "/d");
    assert_string_equal(u.key_file, "/e");
    assert_string_equal(u.user, "u");
    assert_string_equal(u.password_file, "/p");
}

static void test_bad_urls(void **state)
{
    static const struct {
        const char *url;
        const char *says;
    } bad[] = {{"etcd:a", "is not \"etcd://HOST"}, {"etcd://", "\"\" in the store's URL"},
        {"etcd://a,,b", "is not HOST[:PORT]"}, {"etcd://a b", "\"a b\""},
        {"etcd://a:0", "port \"0\""}, {"etcd://a:70000", "port \"70000\""},
        {"etcd://u:p@a", "must not hold a password"}, {"etcd://a?prefix=", "is not NAME=VALUE"},
        {"etcd://a?prefix=/a b", "the prefix \"/a b\""}, {"etcd://a?what=1", "option \"what\""},
        {"etcd://a?prefix=/a&prefix=/b", "or is there twice"},
        {"etcd://a?cacert=/a", "say etcds://"}, {"etcds://a?cert=/a", "both are needed"},
        {"etcd://a?password-file=/a", "without user"},
        {"etcd://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a", "more than 16 etcd servers"}};

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(store_open_check(bad[i].url, &words), -EINVAL);
        if (!strstr(words.text, bad[i].says))
            fail_msg("%s: \"%s\" does not say \"%s\"", bad[i].url, words.text, bad[i].says);
    }
    assert_int_equal(store_open_check("etcd://a", &words), 0);
}

static void test_values(void **state)
{
    static const struct etcd_value values[] = {{.text = "plain"}, {.text = ""},
        {.text = "\x01t1\n"},
        {.text = "x", .ttl_seconds = UINT32_MAX, .is_unwatched = true, .revision = INT64_MAX},
        {.text = "x", .is_unwatched = true}, {.text = "{}", .revision = 1}};

    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        struct etcd_value v = values[i];
        struct etcd_value again;
        size_t len = 0;
        char *raw;

        v.len = strlen(v.text);
        raw = etcd_value_encode(&v, &len);
        etcd_value_decode(raw, len, &again);
        assert_int_equal(again.len, v.len);
        assert_memory_equal(again.text, v.text, v.len);
        assert_int_equal(again.ttl_seconds, v.ttl_seconds);
        assert_int_equal(again.is_unwatched, v.is_unwatched);
        assert_true(again.revision == v.revision);
        if (i < 2)
            assert_string_equal(raw, v.text);
        free(raw);
    }
}

/* ---- two hubs ------------------------------------------------------------------------------- */

/* Two stores of one prefix: each is told of what the other does, in order, and once. */
static void test_two_hubs(void **state)
{
    struct store *a = open_at(cluster, "/two/");
    struct store *b = open_at(cluster, "/two/");
    struct store_op stale = {.kind = STORE_OP_PUT, .key = "k", .value = "stale", .expect = 1};
    struct store_op lease = {.kind = STORE_OP_PUT,
        .key = "l",
        .value = "1",
        .expect = STORE_EXPECT_ANY,
        .ttl_seconds = 30};
    struct store_op unwatched = {.kind = STORE_OP_PUT,
        .key = "u",
        .value = "1",
        .expect = STORE_EXPECT_ANY,
        .is_unwatched = true};
    struct store_watch *w = NULL;
    struct store_said said = {0};

    assert_int_equal(store_watch(b, "", 1, store_said_change, &said, &w, &words), 0);
    assert_int_equal(put(a, "k", "a1", STORE_EXPECT_ABSENT), 1);
    wait_said(b, &said, 1);
    assert_int_equal(put(b, "k", "b2", 1), 2);
    assert_int_equal(store_now_commit(a, &stale, 1, 0, NULL, NULL, &words), STORE_E_CONFLICT);
    assert_non_null(strstr(words.text, "\"k\""));
    assert_int_equal(store_now_commit(a, &unwatched, 1, 0, NULL, NULL, &words), 0);
    assert_int_equal(store_now_commit(a, &lease, 1, 0, NULL, NULL, &words), 0);
    wait_said(b, &said, 3);
    assert_string_equal(said.text, "k=a1@1 k=b2@2 l=1@4");
    assert_true(store_due(b) != NSEC_NEVER);
    assert_all(b, "", "k=b2@2 l=1@4 u=1@3");
    store_watch_close(w);
    store_free(a);
    store_free(b);
    /* Another one finds the same, with the same revisions, and the lease. */
    a = open_at(cluster, "/two/");
    assert_true(store_revision(a) >= 4);
    assert_int_equal(store_due(a), 30 * NSEC_PER_SEC);
    assert_all(a, "", "k=b2@2 l=1@4 u=1@3");
    store_free(a);
}

/* A tool that is no hub writes below the prefix: keys are told, and what is no key is left out. */
static void test_other_writer(void **state)
{
    struct store *s = open_at(cluster, "/tool/");
    struct store_watch *w = NULL;
    struct store_said said = {0};

    assert_int_equal(store_watch(s, "", 1, store_said_change, &said, &w, &words), 0);
    assert_int_equal(sample_etcd_ctl(cluster, "put '/tool/k/white space' 1"), 0);
    assert_int_equal(sample_etcd_ctl(cluster, "put /tool/k/a 7"), 0);
    assert_int_equal(sample_etcd_ctl(cluster, "put /tool/s/nobody what"), 0);
    assert_int_equal(sample_etcd_ctl(cluster, "del /tool/k/a"), 0);
    wait_said(s, &said, 2);
    assert_string_equal(said.text, "a=7@2 a=(gone)@4");
    assert_all(s, "", "");
    /* A value longer than a hub writes is shown as it is. */
    assert_int_equal(sample_etcd_ctl(cluster,
                         "put /tool/k/huge -- \"$(head -c 100000 /dev/zero | tr '\\0' x)\""),
        0);
    wait_said(s, &said, 3);
    store_watch_close(w);
    store_free(s);
}

static void test_wrong_prefix(void **state)
{
    struct store *s = NULL;
    char url[256];

    assert_int_equal(sample_etcd_ctl(cluster, "put /registry/pods/a 1"), 0);
    (void)sample_etcd_url(cluster, "/registry", url, sizeof(url));
    assert_int_equal(store_open(&s, url, 0, &words), -EINVAL);
    assert_non_null(strstr(words.text, "\"/registry/\" holds something else"));
    assert_int_equal(sample_etcd_ctl(cluster, "put /later/about 'weft store 99'"), 0);
    (void)sample_etcd_url(cluster, "/later", url, sizeof(url));
    assert_int_equal(store_open(&s, url, 0, &words), -EINVAL);
    assert_non_null(strstr(words.text, "\"weft store 99\""));
}

/* ---- large commits -------------------------------------------------------------------------- */

#define LARGE 1000

/* Commit LARGE keys at once. */
static int put_many(struct store *s, const char *value, uint64_t expect, uint64_t *ret_revision)
{
    struct store_op *ops = calloc(LARGE, sizeof(*ops));
    char(*keys)[16] = calloc(LARGE, sizeof(*keys));
    int r;

    for (size_t i = 0; i < LARGE; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "m/%04zu", i);
        ops[i] = (struct store_op){
            .kind = STORE_OP_PUT, .key = keys[i], .value = value, .expect = expect};
    }
    r = store_now_commit(s, ops, LARGE, 0, ret_revision, NULL, &words);
    free(keys);
    free(ops);
    return r;
}

/* All that are told or read have the same value and the same revision. */
struct alike {
    char value[8];
    uint64_t revision;
    unsigned n;
};

static int take_alike(void *ctx, const struct store_item *item)
{
    struct alike *a = ctx;

    if (a->n++ == 0)
        (void)snprintf(a->value, sizeof(a->value), "%s", item->value);
    if (a->revision == 0)
        a->revision = item->revision;
    assert_string_equal(item->value, a->value);
    assert_int_equal(item->revision, a->revision);
    return 0;
}

static void told_alike(void *ctx, const struct store_item *item)
{
    (void)take_alike(ctx, item);
}

static void test_large_commit(void **state)
{
    struct store *a = open_at(cluster, "/large/");
    struct store *b = open_at(cluster, "/large/");
    struct store_watch *w = NULL;
    struct alike reported = {.n = 0};
    struct alike read = {.n = 0};
    uint64_t revision = 0;

    assert_int_equal(store_watch(b, "", 1, told_alike, &reported, &w, &words), 0);
    assert_int_equal(put_many(a, "1", STORE_EXPECT_ABSENT, &revision), 0);
    /* The other one sees it whole, with one revision, which is what a commit may expect. */
    assert_int_equal(store_now_list(b, "m/", take_alike, &read, NULL, &words), 0);
    assert_int_equal(read.n, LARGE);
    assert_int_equal(read.revision, revision);
    assert_int_equal(reported.n, LARGE);
    assert_int_equal(reported.revision, revision);
    store_watch_close(w);
    assert_int_equal(put_many(b, "2", STORE_EXPECT_ABSENT, NULL), STORE_E_CONFLICT);
    assert_int_equal(put_many(b, "2", revision, &revision), 0);
    assert_true(put(a, "m/0007", "3", revision) > revision);
    assert_int_equal(put_many(a, "4", revision, NULL), STORE_E_CONFLICT);
    assert_non_null(strstr(words.text, "\"m/0007\""));
    store_free(a);
    store_free(b);
    /* Nothing is left of it but the keys. */
    assert_int_not_equal(sample_etcd_ctl(cluster, "get --keys-only --prefix /large/d | grep ."), 0);
    assert_int_not_equal(sample_etcd_ctl(cluster, "get --keys-only /large/i | grep ."), 0);
}

/* A hub died after step 4 of etcd_commit.c, with one of its two parts done: whoever comes next does
 * the other one. */
static void test_large_commit_cut_off(void **state)
{
    struct store *s = open_at(cluster, "/cut/");
    struct store_watch *w = NULL;
    struct store_said said = {0};

    put(s, "b", "old", STORE_EXPECT_ABSENT);
    assert_int_equal(store_watch(s, "", 2, store_said_change, &said, &w, &words), 0);
    assert_int_equal(sample_etcd_ctl(cluster,
                         "put /cut/d/dead.5/0001 \"$(printf 'p a 0 0 3\\nnewd b 0 0 0\\n.')\""),
        0);
    assert_int_equal(sample_etcd_ctl(cluster, "put /cut/i 'apply dead 5 2'"), 0);
    /* A read sees it whole, and a commit comes after it. The part ends with a byte too many, or the
     * shell would take its last newline away; that makes it damaged, and nothing is done by halves.
     */
    assert_true(store_now_list(s, "", store_said_item, &(struct store_said){0}, NULL, &words) < 0);
    assert_non_null(strstr(words.text, "is no part of a large commit"));
    assert_int_equal(sample_etcd_ctl(cluster,
                         "put /cut/d/dead.5/0001 \"$(printf 'd b 0 0 0\\np a 0 0 3\\nnew')\""),
        0);
    assert_all(s, "", "a=new@3");
    wait_said(s, &said, 2);
    assert_string_equal(said.text, "b=(gone)@3 a=new@3");
    assert_true(put(s, "a", "next", 3) > 3);
    store_watch_close(w);
    store_free(s);
}

struct deleted {
    struct store_said said;
    uint64_t since;
};

static void on_deleted(void *ctx, const struct store_answer *a)
{
    struct deleted *d = ctx;

    assert_int_equal(a->r, 0);
    d->since = a->since;
    for (size_t i = 0; i < a->n_items; i++)
        assert_int_equal(store_said_item(&d->said, &a->items[i]), 0);
}

static void assert_deleted(struct store *s, uint64_t since, const char *expected)
{
    struct deleted d = {.since = 0};

    assert_int_equal(store_deleted(s, on_deleted, &d, &words), 0);
    store_wait(s);
    assert_int_equal(d.since, since);
    assert_string_equal(d.said.text, expected);
}

static void remove_key(struct store *s, const char *key)
{
    struct store_op op = {.kind = STORE_OP_DELETE, .key = key, .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_now_commit(s, &op, 1, 0, NULL, NULL, &words), 0);
}

/* A store that is opened anew knows what was deleted before, as far as etcd does. */
static void test_deleted_before(void **state)
{
    static const struct sample_etcd_options opt = {.n = 1};
    struct sample_etcd *c = sample_etcd_start(&opt);
    struct store *s;

    assert_non_null(c);
    s = open_at(c, "/deleted/");
    assert_deleted(s, 1, "");
    store_free(s);
    s = open_at(c, "/deleted/");
    put(s, "a", "1", STORE_EXPECT_ANY);
    put(s, "b", "1", STORE_EXPECT_ANY);
    remove_key(s, "a");
    put(s, "a", "2", STORE_EXPECT_ANY);
    store_free(s);
    s = open_at(c, "/deleted/");
    assert_deleted(s, 1, "a=(gone)@5");
    remove_key(s, "b");
    /* Etcd's revision is the store's and 2, which the mark of the prefix has. */
    assert_int_equal(sample_etcd_ctl(c, "compaction 8"), 0);
    store_free(s);
    s = open_at(c, "/deleted/");
    assert_deleted(s, 7, "b=(gone)@10");
    store_free(s);
    sample_etcd_free(c);
}

/* A hub died after step 2: nobody makes its commit, and others go on. The parts go when another
 * one opens the store. */
static void test_large_commit_given_up(void **state)
{
    struct store *s = open_at(cluster, "/dead/");

    assert_int_equal(
        sample_etcd_ctl(cluster, "put /dead/d/dead.5/0000 \"$(printf 'p a 0 0 3\\nnew')\""), 0);
    assert_int_equal(sample_etcd_ctl(cluster, "put /dead/i 'check dead 5 1'"), 0);
    put(s, "b", "1", STORE_EXPECT_ABSENT);
    assert_int_not_equal(sample_etcd_ctl(cluster, "get --keys-only /dead/i | grep ."), 0);
    store_free(s);
    s = open_at(cluster, "/dead/");
    assert_int_not_equal(sample_etcd_ctl(cluster, "get --keys-only --prefix /dead/d | grep ."), 0);
    store_free(s);
}

/* ---- users ---------------------------------------------------------------------------------- */

static int open_as(struct sample_etcd *c, const char *password, struct store **ret)
{
    char url[300];

    (void)sample_etcd_url(c, "/users/&user=root", url, sizeof(url));
    (void)setenv(ETCD_PASSWORD_VARIABLE, password, 1);
    return store_open(ret, url, 0, &words);
}

static void test_users(void **state)
{
    static const struct sample_etcd_options opt = {.n = 1};
    struct sample_etcd *c = sample_etcd_start(&opt);
    struct store *s = NULL;
    char url[256];

    assert_non_null(c);
    assert_int_equal(sample_etcd_ctl(c, "user add root:sesame"), 0);
    assert_int_equal(sample_etcd_ctl(c, "auth enable"), 0);
    (void)sample_etcd_url(c, "/users/", url, sizeof(url));
    assert_true(store_open(&s, url, 0, &words) < 0);
    assert_non_null(strstr(words.text, "refuses"));
    assert_int_equal(open_as(c, "wrong", &s), -EACCES);
    assert_non_null(strstr(words.text, "authentication failed"));
    assert_null(strstr(words.text, "wrong"));
    assert_int_equal(open_as(c, "", &s), -EINVAL);
    assert_non_null(strstr(words.text, ETCD_PASSWORD_VARIABLE));
    assert_int_equal(open_as(c, "sesame", &s), 0);
    put(s, "k", "1", STORE_EXPECT_ABSENT);
    /* Tokens of before users were changed are refused, and so are those that a member has
     * forgotten, because it was started again or because they are too old. */
    assert_int_equal(sample_etcd_ctl(c, "--user root:sesame user add other:pw"), 0);
    put(s, "k", "2", 1);
    sample_etcd_kill(c, 0);
    sample_etcd_revive(c, 0);
    put(s, "k", "3", 2);
    assert_all(s, "", "k=3@3");
    store_free(s);
    sample_etcd_free(c);
}

/* ---- TLS ------------------------------------------------------------------------------------ */

static void make_certificates(char *dir)
{
    char command[2048];

    assert_non_null(mkdtemp(dir));
    (void)snprintf(command, sizeof(command),
        "cd %s && exec >log 2>&1 && "
        "printf 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n' >ext && "
        "key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out $1.key; } && "
        "authority() { key $1 && openssl req -x509 -new -key $1.key -subj /CN=$1 -days 2 -out "
        "$1.pem; } && sign() { key $1 && openssl req -new -key $1.key -subj /CN=$1 -out $1.csr && "
        "openssl x509 -req -in $1.csr -CA $2.pem -CAkey $2.key -CAcreateserial -days 2 -extfile "
        "ext "
        "-out $1.pem; } && authority ca && authority other && sign server ca && sign client ca && "
        "sign stranger other",
        dir);
    assert_int_equal(system(command), 0);
}

static int open_tls(struct sample_etcd *c, const char *dir, const char *authority, const char *who,
    struct store **ret)
{
    char prefix[400];
    char url[600];

    (void)snprintf(prefix, sizeof(prefix), "/tls/&cacert=%s/%s.pem%s%s%s%s%s%s%s%s", dir, authority,
        who ? "&cert=" : "", who ? dir : "", who ? "/" : "", who ? who : "", who ? ".pem&key=" : "",
        who ? dir : "", who ? "/" : "", who ? who : "");
    if (who)
        (void)snprintf(prefix + strlen(prefix), sizeof(prefix) - strlen(prefix), ".key");
    (void)sample_etcd_url(c, prefix, url, sizeof(url));
    return store_open(ret, url, 0, &words);
}

static void test_tls(void **state)
{
    char dir[] = "/tmp/weft-test-tls.XXXXXX";
    struct sample_etcd_options opt = {.n = 1, .tls_dir = dir};
    struct sample_etcd *c;
    struct store *s = NULL;
    char command[64];

    make_certificates(dir);
    c = sample_etcd_start(&opt);
    assert_non_null(c);
    assert_int_equal(open_tls(c, dir, "ca", "client", &s), 0);
    put(s, "k", "1", STORE_EXPECT_ABSENT);
    store_free(s);
    s = NULL;
    assert_int_equal(open_tls(c, dir, "other", "client", &s), -EACCES);
    assert_non_null(strstr(words.text, "certificate"));
    /* A server says no to a client only after it was asked, so this is tried for a while. */
    assert_int_equal(open_tls(c, dir, "ca", "stranger", &s), -EIO);
    assert_non_null(strstr(words.text, "etcd is away"));
    assert_non_null(strstr(words.text, "https://127.0.0.1:"));
    assert_true(open_tls(c, dir, "nobody", NULL, &s) < 0);
    assert_non_null(strstr(words.text, "nobody.pem\" cannot be read"));
    sample_etcd_free(c);
    (void)snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

/* ---- three members --------------------------------------------------------------------------- */

/* A store that knows one member, which was away while the others wrote and compacted: it is told
 * what has become of each key. */
static void test_compacted(struct sample_etcd *c)
{
    struct store *a = open_at(c, "/gap/");
    struct store *b = NULL;
    struct store_watch *w = NULL;
    struct store_watch *late = NULL;
    struct store_said said = {0};
    struct store_said past = {0};
    char url[128];

    put(a, "gone", "1", STORE_EXPECT_ABSENT);
    put(a, "same", "1", STORE_EXPECT_ABSENT);
    (void)snprintf(url, sizeof(url), "etcd://%s?prefix=/gap/", sample_etcd_server(c, 2));
    assert_int_equal(store_open(&b, url, 0, &words), 0);
    assert_int_equal(
        store_watch(b, "", store_revision(b) + 1, store_said_change, &said, &w, &words), 0);
    sample_etcd_kill(c, 2);
    put(a, "changed", "1", STORE_EXPECT_ABSENT);
    assert_int_equal(put(a, "changed", "2", 3), 4);
    assert_int_equal(
        store_now_commit(a,
            &(struct store_op){.kind = STORE_OP_DELETE, .key = "gone", .expect = STORE_EXPECT_ANY},
            1, 0, NULL, NULL, &words),
        0);
    assert_int_equal(sample_etcd_ctl(c, "put /elsewhere 1"), 0);
    /* Etcd's revisions begin with 1: the mark of the prefix has 2, and this one 8. */
    assert_int_equal(sample_etcd_ctl(c, "compaction 8"), 0);
    sample_etcd_revive(c, 2);
    wait_said(b, &said, 2);
    assert_non_null(strstr(said.text, "gone=(gone)@"));
    assert_non_null(strstr(said.text, "changed=2@4"));
    assert_null(strstr(said.text, "changed=1"));
    /* The log begins anew behind the gap. */
    assert_int_equal(store_watch(b, "", 1, store_said_change, &past, &late, &words), 0);
    store_wait(b);
    assert_string_equal(past.text, "(compacted)");
    store_watch_close(late);
    store_watch_close(w);
    store_free(a);
    store_free(b);
}

static int ignore(void *ctx, const struct store_item *item)
{
    return 0;
}

static void test_majority_lost(struct sample_etcd *c)
{
    struct store *s = open_at(c, "/majority/");
    struct store_op op = {.kind = STORE_OP_PUT, .key = "k", .value = "2", .expect = 1};
    struct store_op stays = {.kind = STORE_OP_PUT, .key = "x", .value = "1"};
    int r;

    put(s, "k", "1", STORE_EXPECT_ABSENT);
    sample_etcd_kill(c, 0);
    sample_etcd_kill(c, 1);
    r = store_now_commit(s, &op, 1, 0, NULL, NULL, &words);
    assert_true(r == STORE_E_UNKNOWN || r == -EIO);
    assert_non_null(strstr(words.text, "most of its members must be up"));
    /* What comes next fails at once, and reads do as well. */
    assert_int_equal(store_now_commit(s, &stays, 1, 0, NULL, NULL, &words), -EIO);
    assert_int_equal(store_now_get(s, "k", ignore, NULL, &words), -EIO);
    sample_etcd_revive(c, 0);
    sample_etcd_revive(c, 1);
    do {
        r = store_now_commit(s, &stays, 1, 0, NULL, NULL, &words);
    } while (r == -EIO || r == STORE_E_UNKNOWN);
    /* A conflict: it was done by one of those whose answer was lost. */
    assert_true(r == 0 || r == STORE_E_CONFLICT);
    assert_int_equal(store_now_get(s, "x", ignore, NULL, &words), 0);
    store_free(s);
}

static void test_three_members(void **state)
{
    static const struct sample_etcd_options opt = {.n = 3};
    struct sample_etcd *c = sample_etcd_start(&opt);

    assert_non_null(c);
    test_compacted(c);
    test_majority_lost(c);
    sample_etcd_free(c);
}

int main(void)
{
    static const struct CMUnitTest pure[] = {
        cmocka_unit_test(test_url),
        cmocka_unit_test(test_bad_urls),
        cmocka_unit_test(test_values),
    };
    static const struct CMUnitTest real[] = {
        cmocka_unit_test(test_two_hubs),
        cmocka_unit_test(test_other_writer),
        cmocka_unit_test(test_wrong_prefix),
        cmocka_unit_test(test_large_commit),
        cmocka_unit_test(test_large_commit_cut_off),
        cmocka_unit_test(test_large_commit_given_up),
        cmocka_unit_test(test_deleted_before),
        cmocka_unit_test(test_users),
        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_three_members),
    };
    int r;

    netns_be_alone();
    r = cmocka_run_group_tests(pure, NULL, NULL);
    return sample_etcd_is_there() ? r + cmocka_run_group_tests(real, start_cluster, end_cluster)
                                  : r;
}
