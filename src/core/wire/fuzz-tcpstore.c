/* fuzz-tcpstore.c - requests as a stranger sends them; what is taken is used to the last byte. */
#include <assert.h>
#include <stdint.h>

#include "wire/tcpstore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Every byte is read: a sanitizer sees one that is not there. */
static void use_bytes(struct tcpstore_bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        (void)*(const volatile uint8_t *)(b.p + i);
}

static void use(struct tcpstore_request *rq)
{
    uint64_t items = rq->op == TCPSTORE_MULTI_SET ? 2 * rq->count : rq->count;

    use_bytes(rq->key);
    use_bytes(rq->value);
    use_bytes(rq->desired);
    for (uint64_t i = 0; i < items; i++)
        use_bytes(tcpstore_next(&rq->items));
    assert(!rq->items.failed && reader_left(&rq->items) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    enum tcpstore_dialect dialect = tcpstore_dialect(data, len);
    size_t off = dialect == TCPSTORE_VALIDATED ? TCPSTORE_HELLO_SIZE : 0;
    struct tcpstore_request rq;
    size_t used;

    if (dialect == TCPSTORE_UNKNOWN)
        return 0;
    while (tcpstore_decode(&rq, dialect, data + off, len - off, &used) == 0) {
        struct tcpstore_request again;
        size_t most = used - 1;

        /* No shorter piece of it is a request. */
        assert(used >= 1 && used <= len - off);
        assert(tcpstore_decode(&again, dialect, data + off, most, &most) == TCPSTORE_E_MORE);
        assert(most == used);
        use(&rq);
        off += used;
    }
    return 0;
}
