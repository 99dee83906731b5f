/* fuzz-dns.c - any datagram is a query or not; what is one is answered, within its room. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "wire/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const uint8_t v4[4] = {10, 77, 0, 2};
    struct ip_addr address = ip_addr_v4(v4);
    uint8_t out[DNS_ANSWER_MAX];
    struct dns_answer a = {.addresses = &address, .n_addresses = 1};
    struct dns_query q;
    struct ip_addr reverse;
    size_t n;
    int e;

    if (len > DNS_QUERY_MAX)
        return 0;
    e = dns_decode_query(&q, data, len);
    if (e == DNS_E_OTHER)
        return 0;
    if (e == 0) {
        assert(strlen(q.name) < DNS_NAME_MAX && DNS_HEADER_LEN + q.question_len <= len);
        assert(q.udp_len >= DNS_UDP_LEN);
        if (dns_parse_reverse(&reverse, q.name))
            a.target = "gpu-1.default.weft";
    } else {
        a = (struct dns_answer){.rcode = DNS_FORMAT_ERROR};
    }
    n = dns_encode_answer(&q, data, &a, out);
    assert(n >= DNS_HEADER_LEN && n <= sizeof(out));
    /* The answer is no query, so two such servers never answer each other. */
    assert(dns_decode_query(&q, out, n) == DNS_E_OTHER);
    return 0;
}
