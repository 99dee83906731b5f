/* test-lock-words.c - what an operator reads before it is signed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "mesh/lock/lock_fields.h"
#include "mesh/lock/lock_words.h"
#include "test/support/sample_lock.h"

#define BODY(k, ...) ((struct lock_body){.kind = (k), __VA_ARGS__})
#define HEAD         "entry 3 of the lock of network \"lab\", made 2026-09-21 14:13:50 UTC: "

/* @words with the keys that it names: <k gpu-1> of a node, and <s alice> of who signs. */
static void add_keys(const char *words, struct str *out)
{
    while (words[0] != '\0') {
        size_t len = strcspn(words, "<");
        char name[64], text[ED25519_BASE64_MAX];
        struct x25519_public key;
        struct ed25519_public signing;

        str_add_bytes(out, words, len);
        words += len;
        if (words[0] == '\0')
            return;
        len = strcspn(words, ">");
        (void)snprintf(name, sizeof(name), "%.*s", (int)len - 3, words + 3);
        key = sample_lock_key(name);
        signing = sample_lock_signing(name);
        str_add(out, words[1] == 'k' ? x25519_public_format(&key, text)
                                     : ed25519_public_format(&signing, text));
        words += len + 1;
    }
}

/* The next entry says this; @by signs it. */
static void expect(struct sample_lock *s, struct lock_body body, const char *by, const char *words)
{
    struct lock_entry entry = sample_lock_make(s, &body, by);
    struct str expected = STR_NULL;
    struct str said = STR_NULL;

    add_keys(words, &expected);
    lock_words(&entry, &s->chain.state, &said);
    assert_string_equal(str_text(&said), str_text(&expected));
    str_deinit(&said);
    str_deinit(&expected);
    lock_entry_deinit(&entry);
}

static void test_time(void **state)
{
    static const struct {
        uint64_t at;
        const char *text;
    } rows[] = {
        {0, "1970-01-01 00:00:00 UTC"},
        {951827696, "2000-02-29 12:34:56 UTC"},
        {1790000000, "2026-09-21 14:13:20 UTC"},
        {LOCK_TIME_MAX, "9999-12-31 23:59:59 UTC"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct str text = STR_NULL;

        lock_time_format(rows[i].at, &text);
        assert_string_equal(str_text(&text), rows[i].text);
        str_deinit(&text);
    }
}

static void test_genesis(void **state)
{
    struct sample_lock s;
    struct lock_genesis g = sample_lock_genesis();

    (void)state;
    sample_lock_init(&s, NULL);
    g.signers = sample_lock_signers(1, "alice", "code-1");
    expect(&s, BODY(LOCK_GENESIS, .genesis = g), "alice",
        "entry 0 of the lock of network \"lab\", made 2026-09-21 14:13:20 UTC: the lock begins\n"
        "  IPv4 block: 10.7.0.0/16\n"
        "  IPv6 block: fd07::/64\n"
        "  topology: hub\n"
        "  cipher: aes256gcm\n"
        "  isolation: strict\n"
        "  demanded of handshakes: psk\n"
        "  key rotation: 7 d 0 h\n"
        "  peers believed after the lock has expired: 1 d 0 h\n"
        "  signers: alice <s alice>\n"
        "  signatures demanded: 1 of 1\n"
        "  keys of recovery codes: <s code-1>\n"
        "  expires: 2027-01-15 08:00:00 UTC\n"
        "  signed by: alice\n");
    sample_lock_deinit(&s);
}

static void test_nodes(void **state)
{
    struct sample_lock s;
    struct node n = sample_lock_node("gpu-3", 4);

    (void)state;
    sample_lock_begin(&s);
    sample_lock_label(&n, "role", "gpu");
    sample_lock_label(&n, "zone", "a, role=admin");
    sample_lock_route(&n, "10.9.0.0/24,10.10.0.0/24");
    expect(&s, BODY(LOCK_NODE, .node = n), "alice",
        HEAD "the node \"gpu-3\" is accepted\n"
             "  key: <k gpu-3>\n"
             "  IPv4 address: 10.7.0.4\n"
             "  IPv6 address: fd07::4\n"
             "  routes: 10.9.0.0/24, 10.10.0.0/24\n"
             "  labels: role=gpu, zone=\"a, role=admin\"\n"
             "  signed by: alice\n");
    n = sample_lock_node("gpu-1", 9);
    n.relay = true;
    expect(&s, BODY(LOCK_NODE, .node = n), "",
        HEAD "the node \"gpu-1\" changes\n"
             "  IPv4 address: 10.7.0.9 (was 10.7.0.2)\n"
             "  IPv6 address: fd07::9 (was fd07::2)\n"
             "  relay: yes (was no)\n");
    expect(&s, BODY(LOCK_NODE, .node = sample_lock_node("gpu-1", 2)), "",
        HEAD "the node \"gpu-1\" changes\n"
             "  all as before\n");
    expect(&s,
        BODY(LOCK_TOMBSTONE,
            .tombstone = {.name = "gpu-2", .key = sample_lock_key("gpu-2"), .counter = 1}),
        "",
        HEAD "the node \"gpu-2\" is removed, and its keys are never accepted again\n"
             "  key: <k gpu-2>\n"
             "  tombstone: 1\n");
    sample_lock_deinit(&s);
}

static void test_keys(void **state)
{
    struct sample_lock s;
    struct lock_key *keys = calloc(2, sizeof(*keys));

    (void)state;
    assert_non_null(keys);
    sample_lock_begin(&s);
    (void)snprintf(keys[0].name, sizeof(keys[0].name), "gpu-1");
    (void)snprintf(keys[1].name, sizeof(keys[1].name), "gpu-2");
    keys[0].key = sample_lock_key("gpu-1");
    keys[1].key = sample_lock_key("gpu-1 next");
    expect(&s, BODY(LOCK_KEYS, .keys = {.items = keys, .n = 2}), "",
        HEAD "2 nodes have these keys\n"
             "  gpu-1: <k gpu-1>\n"
             "  gpu-2: <k gpu-1 next> (was <k gpu-2>)\n");
    sample_lock_deinit(&s);
}

static void test_tokens(void **state)
{
    struct sample_lock s;
    struct lock_token token;

    (void)state;
    sample_lock_begin(&s);
    token = sample_lock_token(&s, "token-1", 5);
    token.ephemeral = true;
    (void)snprintf(token.island, sizeof(token.island), "east");
    expect(&s, BODY(LOCK_TOKEN, .token = token), "",
        HEAD "the token <s token-1> lets nodes in\n"
             "  nodes that it lets in: 5\n"
             "  until: 2026-09-22 14:13:50 UTC\n"
             "  island that they may be in: east\n"
             "  they are ephemeral: yes\n");
    expect(&s, BODY(LOCK_TOKEN_END, .token_end = token.key), "",
        HEAD "the token <s token-1> lets nobody in any more\n");
    expect(&s, BODY(LOCK_JOIN, .join = {.token = token.key, .node = sample_lock_node("gpu-3", 4)}),
        "token-1",
        HEAD "the node \"gpu-3\" comes in by the token <s token-1>\n"
             "  key: <k gpu-3>\n"
             "  IPv4 address: 10.7.0.4\n"
             "  IPv6 address: fd07::4\n"
             "  signed by: <s token-1>\n");
    sample_lock_deinit(&s);
}

static void test_the_rest(void **state)
{
    struct sample_lock s;
    struct mesh_edge edge = sample_lock_edge("gpu-1", "gpu-2");

    (void)state;
    sample_lock_begin(&s);
    edge.path = EDGE_PATH_OFF;
    expect(&s, BODY(LOCK_EDGE, .edge = edge), "",
        HEAD "the edge \"gpu-1--gpu-2\" is held to this\n"
             "  off: yes\n"
             "  pinned endpoints: gpu-1 at any, gpu-2 at any\n"
             "  pinned keys: gpu-1 with any, gpu-2 with any\n");
    expect(&s, BODY(LOCK_HUBS, .hubs = {.names = {"gpu-2", "gpu-1"}, .n = 2}), "",
        HEAD "hubs follow each other in this order\n"
             "  1: gpu-2\n"
             "  2: gpu-1\n");
    expect(&s, BODY(LOCK_RULE, .rule = sample_lock_rule("ssh", "members", "hub", "tcp/22")), "",
        HEAD "the rule \"ssh\" holds\n"
             "  from: members\n"
             "  to: hub\n"
             "  allows: tcp/22\n");
    expect(&s, BODY(LOCK_RULE_END, .rule_end = "ssh"), "", HEAD "the rule \"ssh\" is removed\n");
    expect(&s,
        BODY(LOCK_SETTINGS, .settings = {.topology = TOPOLOGY_HUB,
                                .cipher = CIPHER_AES256GCM,
                                .isolation = ISOLATION_OPEN,
                                .demand = LOCK_DEMAND_PSK,
                                .trust_for = 86400}),
        "",
        HEAD "the network is held to this\n"
             "  isolation: open (was strict)\n"
             "  key rotation: never (was 7 d 0 h)\n");
    expect(&s, BODY(LOCK_RENEW, .renew = {.version = 2, .valid_until = 1810000000}), "",
        HEAD "the lock is good for longer\n"
             "  expires: 2027-05-11 01:46:40 UTC\n"
             "  version: 2\n");
    sample_lock_deinit(&s);
}

static void test_signers(void **state)
{
    struct sample_lock s;
    struct lock_signers signers = sample_lock_signers(1, "alice bob carol", "code-1 code-2");

    (void)state;
    sample_lock_begin(&s);
    expect(&s, BODY(LOCK_SIGNERS, .signers = signers), "alice carol",
        HEAD "these sign from now on\n"
             "  signatures demanded: 1 of 3 (was 2 of 3)\n"
             "  signed by: carol\n"
             "  signed by: alice\n");
    expect(&s,
        BODY(LOCK_RECOVER, .recover = {.key = sample_lock_signing("code-1"), .signers = signers}),
        "",
        HEAD "by a code of recovery, these sign from now on\n"
             "  signatures demanded: 1 of 3 (was 2 of 3)\n");
    sample_lock_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_genesis),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_the_rest),
        cmocka_unit_test(test_signers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
