/* fuzz-access.c - records of admin tokens and of the audit log, and the bodies that ask for them.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "base/err.h"
#include "hub/record/record.h"
#include "test/support/fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What loads is written as what loads again, the same. */
static void check_admin(const char *key, const char *text)
{
    struct admin_record a;
    struct admin_record b;
    struct err e = ERR_NULL;
    char buf[RECORD_KEY_MAX];
    char *again;

    if (admin_record_decode(&a, key, text, &e) != 0)
        return;
    again = admin_record_encode(&a);
    assert(again);
    assert(admin_record_decode(&b, admin_record_key(buf, a.name), again, &e) == 0);
    assert(strcmp(a.name, b.name) == 0 && a.role == b.role && a.expires_at == b.expires_at);
    assert(memcmp(&a.hash, &b.hash, sizeof(a.hash)) == 0);
    assert(strcmp(a.network, b.network) == 0 && strcmp(a.created_by, b.created_by) == 0);
    free(again);
}

static void check_audit(const char *key, const char *text)
{
    struct audit_record a;
    struct audit_record b;
    struct err e = ERR_NULL;
    char buf[RECORD_KEY_MAX];
    char *again;
    json_t *json;

    if (audit_record_decode(&a, key, text, &e) != 0)
        return;
    again = audit_record_encode(&a);
    json = audit_record_json(&a);
    assert(again && json && audit_id_check(a.id));
    assert(audit_record_decode(&b, audit_record_key(buf, a.kind, a.id), again, &e) == 0);
    assert(a.kind == b.kind && strcmp(a.id, b.id) == 0 && a.time == b.time);
    assert(strcmp(a.actor, b.actor) == 0 && strcmp(a.object, b.object) == 0);
    assert(strcmp(a.operation, b.operation) == 0 && strcmp(a.why, b.why) == 0);
    assert(a.old_revision == b.old_revision && a.new_revision == b.new_revision);
    assert(a.status == b.status && a.count == b.count && a.first == b.first);
    json_decref(json);
    free(again);
}

static void check_body(const char *text)
{
    struct admin_request rq;
    struct err e = ERR_NULL;
    json_t *json = NULL;

    if (body_parse(&json, text, strlen(text), &e) != 0)
        return;
    if (admin_request_decode(&rq, json, &e) == 0)
        assert(rq.role > ROLE_NONE && rq.role < ROLE_N && rq.name[0]);
    else
        assert(e.text[0]);
    json_decref(json);
}

/* The first line is the key, the rest the value. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = fuzz_text(data, len);
    char *value;

    check_body(text);
    value = strchr(text, '\n');
    if (value) {
        *value++ = '\0';
        check_admin(text, value);
        check_audit(text, value);
    }
    free(text);
    return 0;
}
