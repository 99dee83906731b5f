/* test-origin.c - which "Host" and "Origin" each kind of access takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "api/content/route.h"
#include "base/err.h"

#define LONG "very-long-very-long-very-long-very-long-very-long-very-long-very-long-very-long"

enum where { PUBLIC, V4, V6, UNIX, REMOTE, FIGURES, PAGE };

static const struct {
    enum where where;
    const char *host;
    const char *origin;
    bool is_taken;
} rows[] = {
    {PUBLIC, "anything.example", "http://evil.example", true},
    {REMOTE, "hub.example:8443", NULL, true},
    {REMOTE, "hub.example:8443", "http://evil.example", false},
    {PAGE, "hub.example:8443", "https://hub.example:8443", true},
    {V4, "10.42.0.1:8443", NULL, true},
    {V4, "10.42.0.1", NULL, true},
    {V4, NULL, NULL, true},
    {V4, "10.42.0.1:8443", "http://10.42.0.1:8443", false},
    {V4, "10.42.0.1:8443", "null", false},
    {V4, "10.42.0.1:8443", "", false},
    {V4, "10.42.0.2:8443", NULL, false},
    {V4, "10.42.0.1.evil.example", NULL, false},
    {V4, "evil.example:8443", NULL, false},
    {V4, "hub", NULL, false},
    {V4, "", NULL, false},
    {V4, LONG, NULL, false},
    {V6, "[fd00::1]:8443", NULL, true},
    {V6, "[fd00::1]", NULL, true},
    {V6, "[fd00::2]", NULL, false},
    {V6, "[", NULL, false},
    {V6, "[]", NULL, false},
    {V6, "[" LONG "]", NULL, false},
    {UNIX, "localhost", NULL, true},
    {UNIX, "hub", NULL, true},
    {UNIX, NULL, NULL, true},
    {UNIX, "hub", "http://localhost", false},
    {UNIX, "evil.example", NULL, false},
    {UNIX, "127.0.0.1:80", NULL, false},
    {UNIX, "[::1]", NULL, false},
    {UNIX, "", NULL, false},
    {FIGURES, "10.42.0.1:9586", NULL, true},
    {FIGURES, "192.0.2.1", NULL, true},
    {FIGURES, "[fd00::1]:9586", NULL, true},
    {FIGURES, "[fd00::1]", NULL, true},
    {FIGURES, NULL, NULL, true},
    {FIGURES, "gpu-1:9586", NULL, true},
    {FIGURES, "localhost", NULL, true},
    {FIGURES, "gpu-1.default.weft:9586", NULL, true},
    {FIGURES, "gpu-1.weft", NULL, true},
    {FIGURES, "10.42.0.1:9586", "http://evil.example", false},
    {FIGURES, "evil.example:9586", NULL, false},
    {FIGURES, "evil.weft.example", NULL, false},
    {FIGURES, "notweft.example", NULL, false},
    {FIGURES, ".weft", NULL, false},
    {FIGURES, "[evil", NULL, false},
    {FIGURES, ":9586", NULL, false},
    {FIGURES, "", NULL, false},
};

static void test_rows(void **state)
{
    static const uint8_t v6[16] = {0xfd, [15] = 1};

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        static const enum api_access accesses[] = {[PUBLIC] = API_ACCESS_PUBLIC,
            [V4] = API_ACCESS_OVERLAY,
            [V6] = API_ACCESS_OVERLAY,
            [UNIX] = API_ACCESS_ADMIN,
            [REMOTE] = API_ACCESS_ADMIN,
            [PAGE] = API_ACCESS_ADMIN,
            [FIGURES] = API_ACCESS_METRICS};
        struct origin o = {.host = rows[i].host,
            .origin = rows[i].origin,
            .access = accesses[rows[i].where],
            .is_unix = rows[i].where == UNIX,
            .is_page = rows[i].where == PAGE};
        struct err e = ERR_NULL;
        int r;

        o.own = rows[i].where == V6 ? ip_addr_v6(v6) : ip_addr_v4((const uint8_t[4]){10, 42, 0, 1});
        r = origin_check(&o, &e);
        if (r != (rows[i].is_taken ? 0 : -EPERM) || (r != 0 && e.text[0] == '\0'))
            fail_msg("row %zu: %d", i + 1, r);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
