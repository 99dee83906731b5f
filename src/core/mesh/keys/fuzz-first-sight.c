/* fuzz-first-sight.c - the file of what a node remembers; what is taken must survive being written.
 */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "mesh/keys/first_sight.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int64_t answered(void *ctx, const struct x25519_public *key)
{
    return 1700000000;
}

static void taken(void *ctx, const struct first_sight_peer *peer)
{
    assert(peer->offered_at == 0 && peer->seen_at != 0);
}

static void write_again(struct first_sight *a, struct err *e)
{
    const struct first_sight_facts facts = {.at = 1700000100, .answered = answered};
    struct first_sight b;
    json_t *first = first_sight_encode(a);
    json_t *again;

    assert(first && first_sight_decode(&b, first, "fuzz", e) == 0);
    assert(a->n == b.n && a->n_offered == b.n_offered);
    again = first_sight_encode(&b);
    assert(json_equal(first, again));
    json_decref(first);
    json_decref(again);
    first_sight_look(&b, &facts, taken, NULL);
    for (size_t i = 0; i < b.n; i++)
        (void)first_sight_state(&b, &b.peers[i], facts.at);
    first_sight_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);
    struct first_sight a;
    struct err e = ERR_NULL;

    if (!json)
        return 0;
    if (first_sight_decode(&a, json, "fuzz", &e) != 0) {
        assert(e.text[0] != '\0');
    } else {
        write_again(&a, &e);
        first_sight_deinit(&a);
    }
    json_decref(json);
    return 0;
}
