/* fuzz-etcd-url.c - what may stand behind "--store etcd:". */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/etcd/etcd_codec.h"
#include "base/err.h"
#include "test/support/fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct etcd_url url;
    struct err e = ERR_NULL;
    char *text = fuzz_text(data, len);

    for (int is_tls = 0; is_tls < 2; is_tls++) {
        if (etcd_url_parse(&url, text, is_tls, &e) != 0) {
            assert(e.text[0] != '\0');
            continue;
        }
        assert(url.n_servers >= 1 && url.n_servers <= REMOTE_HTTP_SERVERS_MAX);
        assert(url.prefix[strlen(url.prefix) - 1] == '/');
        assert(!url.cert_file == !url.key_file);
    }
    free(text);
    return 0;
}
