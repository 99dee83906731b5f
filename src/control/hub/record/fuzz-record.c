/* fuzz-record.c - keys and values of the store, as a damaged one may hold them. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/record/record.h"
#include "test/support/fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_key(const char *text)
{
    struct record_key k = record_key_parse(text);
    char key[RECORD_KEY_MAX];

    if (k.kind != RECORD_NONE && strlen(text) < RECORD_KEY_MAX && text[strlen(text) - 1] != '/')
        assert(strcmp(record_key(key, k.kind, k.network, k.name), text) == 0);
}

static void check_value(const char *text)
{
    struct report_record report = {0};
    struct token_record token;
    struct network_maker maker;
    struct owner_record owner;
    struct heartbeat_record heartbeat;
    struct err e = ERR_NULL;
    struct token_hash hash;
    struct network network;
    struct object edge;
    struct node node;
    uint32_t next;
    uint32_t high;
    int64_t at;

    if (record_node_decode(&node, &hash, text, &e) == 0) {
        char *again = record_node_encode(&node, &hash);

        assert(again);
        node_deinit(&node);
        assert(record_node_decode(&node, &hash, again, &e) == 0);
        node_deinit(&node);
        free(again);
    }
    if (record_object_decode(&edge, &mesh_edge_kind, text, &e) == 0)
        object_deinit(&edge);
    if (record_report_decode(&report, text, &e) == 0) {
        /* Who reads less of it reads the same. */
        if (record_report_is_by(text, report.by, &at))
            assert(at == report.last_seen_at);
        report_record_deinit(&report);
    }
    if (record_network_decode(&network, &maker, text, &e) == 0)
        network_deinit(&network);
    (void)heartbeat_record_decode(&heartbeat, text, &e);
    (void)owner_record_decode(&owner, text, &e);
    (void)record_ipam_decode(&next, &high, text, &e);
    (void)record_token_decode(&token, text, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = fuzz_text(data, len);

    check_key(text);
    check_value(text);
    free(text);
    return 0;
}
