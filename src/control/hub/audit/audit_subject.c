/* audit_subject.c - see audit_subject.h. */
#include "hub/audit/audit_subject.h"

#include <stdio.h>
#include <string.h>

#include "hub/record/admin_record.h"
#include "store/store.h"

struct audit_subject audit_subject_of(const struct store_op *op)
{
    struct record_key k = record_key_parse(op->key);
    struct audit_subject s = {.kind = k.kind};

    s.prefix = k.object ? k.object->prefix : record_prefix(k.kind);
    memcpy(s.network, k.network, sizeof(s.network));
    memcpy(s.name, k.name, sizeof(s.name));
    s.is_admin = strncmp(op->key, ADMIN_RECORD_PREFIX, strlen(ADMIN_RECORD_PREFIX)) == 0;
    if (s.is_admin) {
        s.prefix = ADMIN_RECORD_PREFIX;
        (void)snprintf(s.name, sizeof(s.name), "%.63s", op->key + strlen(ADMIN_RECORD_PREFIX));
    }
    return s;
}

void audit_subject_learn(struct audit_subject *s, const char *key, const char *value)
{
    struct admin_record admin;
    struct token_record token;

    if (s->is_admin && admin_record_decode(&admin, key, value, NULL) == 0)
        memcpy(s->network, admin.network, sizeof(s->network));
    if (s->kind == RECORD_TOKEN && record_token_decode(&token, value, NULL) == 0)
        memcpy(s->network, token.network, sizeof(s->network));
}

struct audit_subject_around audit_subject_around_of(const struct store_op *ops, size_t n_ops)
{
    struct audit_subject_around all = {.has_network = false};

    for (size_t i = 0; i < n_ops; i++) {
        enum record_kind kind = record_key_parse(ops[i].key).kind;
        bool is_put = ops[i].kind == STORE_OP_PUT;

        if (ops[i].kind == STORE_OP_CHECK)
            continue;
        all.has_network |= kind == RECORD_NETWORK;
        all.adds_node |= kind == RECORD_NODE && is_put;
        all.removes_node |= kind == RECORD_NODE && !is_put;
    }
    return all;
}

bool audit_subject_is_told(const struct audit_subject *s, const struct audit_subject_around *all)
{
    switch (s->kind) {
    case RECORD_NETWORK:
        return true;
    case RECORD_NODE:
    case RECORD_OBJECT:
        return !all->has_network;
    case RECORD_EDGE:
        return !all->removes_node;
    case RECORD_TOKEN:
        return !all->adds_node;
    case RECORD_NONE:
        return s->is_admin;
    case RECORD_IPAM:
    case RECORD_REPORT:
    case RECORD_N:
        break;
    }
    return false;
}

void audit_subject_fill(const struct audit_subject *s, const struct store_op *op,
    uint64_t new_revision, struct audit_record *record)
{
    const char *prefix = s->prefix;
    bool is_put = op->kind == STORE_OP_PUT;
    const char *word = s->revision == 0 ? "create" : "change";

    (void)snprintf(record->operation, sizeof(record->operation), "%s", is_put ? word : "remove");
    if (s->is_admin)
        (void)snprintf(record->object, sizeof(record->object), "%s%s", prefix, s->name);
    else if (s->kind == RECORD_TOKEN)
        (void)snprintf(
            record->object, sizeof(record->object), "%s%.*s", prefix, AUDIT_TOKEN_ID_LEN, s->name);
    else
        (void)snprintf(record->object, sizeof(record->object), "%s%s%s%s", prefix, s->network,
            s->name[0] ? "/" : "", s->name);
    memcpy(record->network, s->network, sizeof(record->network));
    record->old_revision = s->revision;
    record->new_revision = is_put ? new_revision : 0;
}
