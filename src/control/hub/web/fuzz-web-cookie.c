/* fuzz-web-cookie.c - the header Cookie, as any browser or anybody else sends it. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hub/web/web_access.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = strndup((const char *)data, len);
    char value[WEB_SECRET_MAX];
    char with_name[sizeof(WEB_COOKIE) + WEB_SECRET_MAX];

    assert(text);
    if (web_cookie_read(text, value)) {
        assert(strlen(value) == WEB_SECRET_MAX - 1 && !strpbrk(value, ";"));
        memcpy(with_name, WEB_COOKIE "=", sizeof(WEB_COOKIE));
        memcpy(with_name + sizeof(WEB_COOKIE), value, WEB_SECRET_MAX);
        assert(strstr(text, with_name));
    }
    free(text);
    return 0;
}
