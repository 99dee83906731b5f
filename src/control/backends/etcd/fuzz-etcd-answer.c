/* fuzz-etcd-answer.c - what an etcd may answer, in each place where an answer is read. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/etcd/etcd_codec.h"
#include "backends/etcd/etcd_updates.h"
#include "test/support/fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_value(const struct etcd_kv *kv)
{
    struct etcd_value v;
    struct etcd_value again;
    size_t len = 0;
    char *raw;

    etcd_value_decode(kv->value, kv->len, &v);
    assert(v.text >= kv->value && v.text + v.len == kv->value + kv->len);
    raw = etcd_value_encode(&v, &len);
    assert(raw);
    etcd_value_decode(raw, len, &again);
    assert(again.len == v.len && memcmp(again.text, v.text, v.len) == 0);
    assert(again.ttl_seconds == v.ttl_seconds && again.revision == v.revision);
    assert(again.is_unwatched == v.is_unwatched);
    free(raw);
}

static void check_kvs(struct etcd_kvs *kvs)
{
    for (size_t i = 0; i < kvs->n; i++) {
        assert(strlen(kvs->items[i].name) <= ETCD_NAME_MAX && kvs->items[i].mod > 0);
        if (kvs->items[i].value)
            check_value(&kvs->items[i]);
    }
    etcd_kvs_deinit(kvs);
}

static void check_answer(const char *text, size_t len)
{
    json_t *json = json_loadb(text, len, 0, NULL);
    struct etcd_kvs kvs;
    uint64_t revision = 0;

    if (etcd_answer_revision(json, &revision, NULL) == 0)
        assert(revision > 0 && revision <= INT64_MAX);
    (void)etcd_answer_succeeded(json);
    if (etcd_answer_kvs(json, "/weft/", &kvs, NULL) == 0)
        check_kvs(&kvs);
    for (size_t i = 0; i < 3; i++)
        if (etcd_answer_nth(json, i, "/weft/", &kvs, NULL) == 0)
            check_kvs(&kvs);
    json_decref(json);
}

/* Lines of a watch, as commits. */
static void check_line(const char *text, size_t len, struct etcd_updates *updates)
{
    struct etcd_watch_line line;
    const struct etcd_commit_seen *seen = NULL;

    if (etcd_watch_line_decode(text, len, "/weft/", &line, NULL) != 0)
        return;
    if (line.events.n > 0 && line.events.items[0].mod > updates->position) {
        assert(etcd_updates_take(updates, line.events.items[0].mod, &line.events, &seen) == 0);
        if (seen) {
            struct store_job *job = etcd_updates_job(&seen->changes, seen->revision);

            etcd_updates_done(updates, job);
            assert(updates->log.n <= STORE_LOG_MAX + job->n_ops);
            store_job_free(job);
        }
    }
    etcd_kvs_deinit(&line.events);
}

static void check_part(char *text, size_t len)
{
    char *p = text;
    struct store_op op;

    while (etcd_part_next(&p, text + len, &op))
        assert(p <= text + len && op.value <= p && strlen(op.key) <= STORE_KEY_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = fuzz_text(data, len);
    struct etcd_large_head head;
    struct etcd_refusal refusal;
    struct etcd_updates updates;

    check_answer(text, len);
    etcd_refusal_decode(text, len, &refusal);
    assert(strlen(refusal.text) < sizeof(refusal.text));
    etcd_updates_init(&updates, 10, 10);
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
        check_line(line, (size_t)(end - line), &updates);
    etcd_updates_deinit(&updates);
    if (etcd_large_head_parse(&head, text)) {
        char again[ETCD_LARGE_HEAD_MAX];

        assert(strlen(etcd_large_head_format(&head, again)) <= strlen(text));
    }
    check_part(text, len);
    free(text);
    return 0;
}
