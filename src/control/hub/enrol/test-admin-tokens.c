/*
 * test-admin-tokens.c - whom an admin token identifies, until when, and how often one may guess.
 *
 * Tokens are made through the API of a hub in this process; times are arguments.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "hub/enrol/enrol.h"
#include "os/clock.h"
#include "test/support/captured_log.h"
#include "test/support/sample_hub.h"
#include "test/support/store_now.h"

#define HOUR 3600

/* The text of a new token for an hour; @network: "" for all. free() */
static char *make(struct sample_hub *s, const char *name, const char *role, const char *network)
{
    char body[256];
    json_t *json;
    char *text;

    (void)snprintf(body, sizeof(body), "{\"name\":\"%s\",\"role\":\"%s\",\"ttlSeconds\":%d%s%s%s}",
        name, role, HOUR, network[0] ? ",\"network\":\"" : "", network, network[0] ? "\"" : "");
    assert_int_equal(
        sample_hub_ask(s, API_ACCESS_ADMIN, NULL, "POST", "/v1/admin-tokens", body, &json), 201);
    text = strdup(json_string_value(json_object_get(json, "token")));
    json_decref(json);
    return text;
}

static int ask(struct sample_hub *s, const char *method, const char *path, const char *body)
{
    return sample_hub_ask(s, API_ACCESS_ADMIN, NULL, method, path, body, NULL);
}

static enum caller_verdict identify(
    struct sample_hub *s, const char *text, const char *from, int64_t wall_s, struct caller *ret)
{
    struct endpoint ep;

    *ret = (struct caller){ROLE_NONE};
    assert_int_equal(endpoint_parse(&ep, from, NULL), 0);
    return admin_tokens_identify(&s->hub->admins, text, &ep.addr, s->now, wall_s, ret);
}

static const char here[] = "198.51.100.7:1";

static void test_known_until_its_end(void **state)
{
    struct caller caller;
    struct sample_hub s;
    int64_t expires;
    char *text;

    sample_hub_begin(&s);
    text = make(&s, "ci", "operator", "");
    expires = s.hub->admins.items[0].record.expires_at;
    assert_true(expires >= clock_wall_s() + HOUR - 60 && expires <= clock_wall_s() + HOUR);
    assert_int_equal(identify(&s, text, here, expires - 1, &caller), CALLER_KNOWN);
    assert_string_equal(caller.name, "admin:ci");
    assert_int_equal(caller.role, ROLE_OPERATOR);
    assert_string_equal(caller.network, "");
    assert_int_equal(s.hub->admins.items[0].last_used_at, expires - 1);
    assert_int_equal(identify(&s, text, here, expires, &caller), CALLER_EXPIRED);
    assert_int_equal(caller.role, ROLE_NONE);
    free(text);
    sample_hub_end(&s);
}

static void test_wrong_texts(void **state)
{
    struct caller caller;
    struct sample_hub s;
    char *text;

    sample_hub_begin(&s);
    text = make(&s, "ci", "admin", "");
    assert_int_equal(identify(&s, "", here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    assert_int_equal(identify(&s, "weft-admin1.", here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    assert_int_equal(identify(&s, text + 1, here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    text[strlen("weft-admin1.") + 3] ^= 1;
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    assert_int_equal(caller.role, ROLE_NONE);
    text[strlen("weft-admin1.") + 3] ^= 1;
    text[strlen(text) - 2] = '\0';
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    assert_int_equal(s.hub->admins.n_failed, 5);
    free(text);
    sample_hub_end(&s);
}

/* Each token is its own, also when another one has gone. */
static void test_several(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    static const enum role roles[] = {ROLE_VIEWER, ROLE_OPERATOR, ROLE_ADMIN};
    static const char *const names_of_roles[] = {"viewer", "operator", "admin"};
    struct err e = ERR_NULL;
    struct admin_tokens at;
    struct caller caller;
    struct sample_hub s;
    char *texts[3];

    sample_hub_begin(&s);
    for (unsigned i = 0; i < 3; i++)
        texts[i] = make(&s, names[i], names_of_roles[i], "");
    assert_int_equal(s.hub->admins.n_coming, 0);
    assert_int_equal(ask(&s, "DELETE", "/v1/admin-tokens/a", NULL), 204);
    assert_int_equal(s.hub->admins.n, 2);
    assert_null(admin_tokens_find(&s.hub->admins, "a"));
    /* A hub that starts finds the same. */
    admin_tokens_init(&at, &s.hub->model, &s.hub->admins.rng);
    assert_int_equal(admin_tokens_load(&at, &e), 0);
    assert_int_equal(at.n, 2);
    assert_non_null(admin_tokens_find(&at, "b"));
    assert_int_equal(at.items[0].revision, s.hub->admins.items[0].revision);
    admin_tokens_deinit(&at);
    assert_null(at.items);
    assert_int_equal(at.n, 0);
    for (unsigned i = 0; i < 3; i++) {
        char name[16];
        bool is_there = i > 0;

        assert_int_equal(identify(&s, texts[i], here, clock_wall_s(), &caller),
            is_there ? CALLER_KNOWN : CALLER_UNKNOWN);
        (void)snprintf(name, sizeof(name), "admin:%s", names[i]);
        assert_string_equal(caller.name, is_there ? name : "");
        assert_int_equal(caller.role, is_there ? roles[i] : ROLE_NONE);
        free(texts[i]);
    }
    sample_hub_end(&s);
}

/* What is stored of a new token. */
static void test_what_is_made(void **state)
{
    struct admin_request rq = {.name = "ci", .role = ROLE_OPERATOR, .ttl_seconds = HOUR};
    const struct x25519_public hub_key = {{7}};
    struct err e = ERR_NULL;
    struct admin_record record;
    struct token_write made;
    char text[ADMIN_TEXT_MAX];
    char other[ADMIN_TEXT_MAX];
    struct sample_hub s;

    sample_hub_begin(&s);
    (void)snprintf(rq.network, sizeof(rq.network), "default");
    assert_int_equal(
        admin_tokens_make(&s.hub->admins, &rq, &hub_key, "uid:0", 1000, &made, text, &e), 0);
    assert_string_equal(made.key, "admin/ci");
    assert_ptr_equal(made.op.key, made.key);
    assert_ptr_equal(made.op.value, made.value);
    assert_int_equal(made.op.kind, STORE_OP_PUT);
    assert_true(made.op.expect == STORE_EXPECT_ABSENT);
    assert_int_equal(made.op.ttl_seconds, HOUR + 86400);
    assert_int_equal(admin_record_decode(&record, made.key, made.value, &e), 0);
    assert_string_equal(record.name, "ci");
    assert_string_equal(record.network, "default");
    assert_string_equal(record.created_by, "uid:0");
    assert_int_equal(record.role, ROLE_OPERATOR);
    assert_int_equal(record.created_at, 1000);
    assert_int_equal(record.expires_at, 1000 + HOUR);
    assert_true(x25519_public_equal(&record.hub_key, &hub_key));
    assert_memory_equal(text, "weft-admin1.", 12);
    assert_int_equal(strlen(text), 12 + 43);
    token_write_deinit(&made);
    assert_null(made.value);
    /* No two are the same. */
    assert_int_equal(
        admin_tokens_make(&s.hub->admins, &rq, &hub_key, "uid:0", 1000, &made, other, &e), 0);
    assert_string_not_equal(text, other);
    token_write_deinit(&made);
    /* Those that are on their way to the store are there as well. */
    s.hub->admins.n_coming = ADMIN_TOKENS_MAX;
    assert_int_equal(
        admin_tokens_make(&s.hub->admins, &rq, &hub_key, "uid:0", 1000, &made, text, &e),
        ADMIN_E_FULL);
    assert_string_equal(err_text(&e),
        "there are 256 admin tokens, as many as a hub keeps: \"weft admin ls\" lists them, \"weft "
        "admin rm NAME\" removes one");
    s.hub->admins.n_coming = 0;
    sample_hub_end(&s);
}

static void put_record(struct sample_hub *s, const char *key, const char *value)
{
    struct store_op op = {.kind = value ? STORE_OP_PUT : STORE_OP_DELETE,
        .key = key,
        .value = value,
        .expect = STORE_EXPECT_ANY};
    struct err e = ERR_NULL;

    assert_int_equal(store_now_commit(s->hub->store, &op, 1, 1, NULL, NULL, &e), 0);
}

/* A record that cannot be understood opens nothing, and keeps its name. */
static void test_a_damaged_record(void **state)
{
    struct admin_request rq = {.name = "ci", .role = ROLE_VIEWER};
    struct err e = ERR_NULL;
    struct token_write made;
    char new_text[ADMIN_TEXT_MAX];
    struct captured_log log;
    struct caller caller;
    struct sample_hub s;
    char *text;

    sample_hub_begin(&s);
    text = make(&s, "ci", "admin", "");
    free(make(&s, "other", "admin", ""));
    assert_int_equal(admin_tokens_make(&s.hub->admins, &rq, &(struct x25519_public){{0}}, "", 0,
                         &made, new_text, &e),
        ADMIN_E_EXISTS);
    log = captured_log_begin();
    put_record(&s, "admin/ci", "{}");
    captured_log_end(&log,
        "error: hub: the record \"admin/ci\" is set aside and left as it is (see weft-hub(8)): "
        "admin token: \"hash\" is missing\n");
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    assert_int_equal(s.hub->admins.n, 1);
    assert_non_null(damaged_find(&s.hub->model.damaged, "admin/ci"));
    assert_int_equal(admin_tokens_make(&s.hub->admins, &rq, &(struct x25519_public){{0}}, "", 0,
                         &made, new_text, &e),
        ADMIN_E_EXISTS);
    assert_string_equal(
        err_text(&e), "there is an admin token \"ci\" already: \"weft admin rm ci\" removes it");
    free(text);
    sample_hub_end(&s);
}

/* The file's token: as long as may be, without the end of its line. */
static void test_what_a_file_may_hold(void **state)
{
    static const struct {
        unsigned len;
        const char *end;
        bool is_good;
    } cases[] = {{15, "\n", false}, {16, "\r\n", true}, {64, "\n", true}, {65, "", false}};
    struct ip_addr from = {{0}};
    struct sample_hub s;
    char made[2][64];
    char path[128];
    char sentence[256];

    sample_hub_begin(&s);
    (void)snprintf(path, sizeof(path), "%s/other.token", s.dir);
    (void)snprintf(sentence, sizeof(sentence),
        "\"%s\" does not hold an admin token of 16 to 64 characters; it is left as it is: remove "
        "it "
        "to have one made",
        path);
    for (unsigned i = 0; i < 4; i++) {
        struct caller caller = {ROLE_NONE};
        struct admin_tokens at;
        struct err e = ERR_NULL;
        char text[80] = "";
        FILE *file = fopen(path, "we");

        memset(text, 'x', cases[i].len);
        assert_non_null(file);
        (void)fprintf(file, "%s%s", text, cases[i].end);
        (void)fclose(file);
        admin_tokens_init(&at, &s.hub->model, &s.hub->admins.rng);
        assert_int_equal(admin_tokens_open_file(&at, path, &e), cases[i].is_good ? 0 : -EUCLEAN);
        assert_int_equal(at.has_file, cases[i].is_good);
        if (!cases[i].is_good)
            assert_string_equal(err_text(&e), sentence);
        assert_int_equal(admin_tokens_identify(&at, text, &from, s.now, 0, &caller),
            cases[i].is_good ? CALLER_KNOWN : CALLER_UNKNOWN);
        admin_tokens_deinit(&at);
        admin_tokens_deinit(&at);
    }
    /* Where there is none one is made, and always another one. */
    for (unsigned i = 0; i < 2; i++) {
        struct admin_tokens at;
        struct err e = ERR_NULL;
        FILE *file;

        assert_int_equal(unlink(path), 0);
        admin_tokens_init(&at, &s.hub->model, &s.hub->admins.rng);
        assert_int_equal(admin_tokens_open_file(&at, path, &e), 0);
        assert_true(at.has_file);
        file = fopen(path, "re");
        assert_non_null(file);
        assert_non_null(fgets(made[i], sizeof(made[i]), file));
        (void)fclose(file);
        assert_int_equal(strlen(made[i]), 43);
        admin_tokens_deinit(&at);
        assert_null(at.items);
        assert_int_equal(at.n, 0);
    }
    assert_string_not_equal(made[0], made[1]);
    sample_hub_end(&s);
}

static void test_removed(void **state)
{
    struct caller caller;
    struct sample_hub s;
    char *text;

    sample_hub_begin(&s);
    text = make(&s, "ci", "admin", "");
    assert_int_equal(ask(&s, "DELETE", "/v1/admin-tokens/ci", NULL), 204);
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    free(text);
    sample_hub_end(&s);
}

/* A network that was made again under the same name is another one. */
static void test_for_one_network(void **state)
{
    struct caller caller;
    struct sample_hub s;
    char *text;

    sample_hub_begin(&s);
    assert_int_equal(
        ask(&s, "POST", "/v1/networks", "{\"name\":\"other\",\"cidr4\":\"10.60.0.0/16\"}"), 201);
    text = make(&s, "ci", "viewer", "other");
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_KNOWN);
    assert_string_equal(caller.network, "other");
    assert_int_equal(ask(&s, "DELETE", "/v1/networks/other", NULL), 204);
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    assert_int_equal(
        ask(&s, "POST", "/v1/networks", "{\"name\":\"other\",\"cidr4\":\"10.61.0.0/16\"}"), 201);
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    assert_int_equal(caller.role, ROLE_NONE);
    free(text);
    sample_hub_end(&s);
}

/* After ten failures not even the right token is looked at; elsewhere it is. */
static void test_guesses(void **state)
{
    struct caller caller;
    struct sample_hub s;
    char *text;

    sample_hub_begin(&s);
    text = make(&s, "ci", "admin", "");
    for (unsigned i = 0; i < GUESSES_BURST; i++)
        assert_int_equal(identify(&s, "guess", here, clock_wall_s(), &caller), CALLER_UNKNOWN);
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_LIMITED);
    assert_int_equal(caller.role, ROLE_NONE);
    assert_int_equal(identify(&s, text, "198.51.100.8:1", clock_wall_s(), &caller), CALLER_KNOWN);
    s.now += GUESSES_EACH;
    assert_int_equal(identify(&s, text, here, clock_wall_s(), &caller), CALLER_KNOWN);
    free(text);
    sample_hub_end(&s);
}

/* The token of the file has no end; a new one takes its place at once. */
static void test_file(void **state)
{
    struct caller caller;
    struct sample_hub s;
    char path[128];
    char text[64] = "";
    FILE *file;

    sample_hub_begin(&s);
    (void)snprintf(path, sizeof(path), "%s/admin.token", s.dir);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    (void)fclose(file);
    text[strcspn(text, "\n")] = '\0';
    assert_int_equal(identify(&s, text, here, INT64_MAX, &caller), CALLER_KNOWN);
    assert_string_equal(caller.name, "file:admin.token");
    assert_int_equal(caller.role, ROLE_ADMIN);
    assert_int_equal(ask(&s, "POST", "/v1/admin-token-file", NULL), 200);
    assert_int_equal(identify(&s, text, here, 0, &caller), CALLER_UNKNOWN);
    sample_hub_end(&s);
}

static void test_bounded(void **state)
{
    struct admin_record record;
    struct sample_hub s;
    char body[64];
    char *value;

    sample_hub_begin(&s);
    for (unsigned i = 0; i < ADMIN_TOKENS_MAX; i++) {
        (void)snprintf(body, sizeof(body), "{\"name\":\"t%u\",\"role\":\"viewer\"}", i);
        assert_int_equal(ask(&s, "POST", "/v1/admin-tokens", body), 201);
    }
    assert_int_equal(
        ask(&s, "POST", "/v1/admin-tokens", "{\"name\":\"x\",\"role\":\"viewer\"}"), 409);
    /* Another hub of the store may have made one more. */
    record = s.hub->admins.items[0].record;
    (void)snprintf(record.name, sizeof(record.name), "more");
    value = admin_record_encode(&record);
    put_record(&s, "admin/more", value);
    free(value);
    assert_int_equal(s.hub->admins.n, ADMIN_TOKENS_MAX);
    assert_null(admin_tokens_find(&s.hub->admins, "more"));
    put_record(&s, "admin/more", NULL);
    assert_int_equal(ask(&s, "DELETE", "/v1/admin-tokens/t7", NULL), 204);
    assert_int_equal(
        ask(&s, "POST", "/v1/admin-tokens", "{\"name\":\"x\",\"role\":\"viewer\"}"), 201);
    sample_hub_end(&s);
}

/* Join tokens are bounded by network, and counted also when the hub is started anew. */
static void test_join_tokens_are_bounded(void **state)
{
    static const char path[] = "/v1/networks/default/tokens";
    struct model_network *net;
    struct sample_hub s;
    json_t *json = NULL;
    char one[128];

    sample_hub_begin(&s);
    assert_int_equal(
        ask(&s, "POST", "/v1/networks", "{\"name\":\"other\",\"cidr4\":\"10.60.0.0/16\"}"), 201);
    net = model_find_network(&s.hub->model, "default");
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask(&s, "POST", path, "{}"), 201);
    assert_int_equal(net->n_tokens, 3);
    assert_int_equal(model_find_network(&s.hub->model, "other")->n_tokens, 0);

    net->n_tokens = ENROL_TOKENS_MAX;
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "POST", path, "{}", &json), 409);
    assert_non_null(strstr(json_string_value(json_object_get(json, "error")),
        "network \"default\" has 16384 join tokens, as many as a hub keeps for one"));
    json_decref(json);
    assert_int_equal(ask(&s, "POST", "/v1/networks/other/tokens", "{}"), 201);

    /* One that is removed makes room for one. */
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "GET", path, NULL, &json), 200);
    (void)snprintf(one, sizeof(one), "%s/%s", path,
        json_string_value(
            json_object_get(json_array_get(json_object_get(json, "tokens"), 0), "id")));
    json_decref(json);
    assert_int_equal(ask(&s, "DELETE", one, NULL), 204);
    assert_int_equal(net->n_tokens, ENROL_TOKENS_MAX - 1);
    assert_int_equal(ask(&s, "POST", path, "{}"), 201);
    sample_hub_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_until_its_end),
        cmocka_unit_test(test_wrong_texts),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_what_is_made),
        cmocka_unit_test(test_a_damaged_record),
        cmocka_unit_test(test_what_a_file_may_hold),
        cmocka_unit_test(test_removed),
        cmocka_unit_test(test_for_one_network),
        cmocka_unit_test(test_guesses),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_join_tokens_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
