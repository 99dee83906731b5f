/* test-page.c - the page as a whole, against the one that is kept; and that nothing gets out of its
 * cell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <openssl/evp.h>

#include "base/text.h"
#include "os/file.h"
#include "page/page.h"

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);

    if (!json)
        fail_msg("line %d: %s", error.line, error.text);
    return json;
}

static json_t *sample(void)
{
    return parse("{\"network\":\"default\",\"at\":1795430000,\"version\":\"0.1.0\","
                 "\"nodes\":{\"nodes\":["
                 "{\"metadata\":{\"name\":\"gpu-1\"},\"reachable\":true,\"spec\":{\"address4\":"
                 "\"10.77.0.2\",\"island\":\"east\"},\"status\":{\"engine\":\"kernel\",\"version\":"
                 "\"<script>alert(1)</script>\"}},"
                 "{\"metadata\":{\"name\":\"gpu-2\"},\"reachable\":false,\"spec\":{\"address4\":"
                 "\"10.77.0.3\",\"island\":\"\"}},"
                 "{\"metadata\":{\"name\":\"hub\"},\"reachable\":true,\"spec\":{\"address4\":"
                 "\"10.77.0.1\",\"island\":\"\",\"hub\":{}}}]},"
                 "\"edges\":{\"counts\":{\"lan\":0,\"direct\":2,\"none\":1},\"edges\":["
                 "{\"name\":\"gpu-1--gpu-2\",\"state\":\"none\",\"trouble\":true,\"why\":"
                 "\"it says \\\"a & b\\\" \\u0007\"},"
                 "{\"name\":\"gpu-1--hub\",\"state\":\"direct\",\"trouble\":false,\"why\":\"\"}]},"
                 "\"jobs\":{\"jobs\":[{\"job\":\"llama\",\"run\":\"llama.3\",\"keys\":12,"
                 "\"limitHits\":1,\"lastLimit\":\"a request was too long\"}]},"
                 "\"findings\":{\"leftOut\":0,\"findings\":["
                 "{\"code\":\"WEFT-NODE-001\",\"severity\":\"critical\",\"subject\":\"gpu-2\","
                 "\"since\":1795420500,\"text\":\"gpu-2 is <gone>.\",\"fix\":\"Start it.\"},"
                 "{\"code\":\"WEFT-COST-001\",\"severity\":\"note\",\"subject\":\"llama\","
                 "\"since\":1795420000,\"text\":\"Nearly spent.\",\"fix\":\"Raise it.\"}]},"
                 "\"events\":{\"events\":["
                 "{\"time\":1795420000,\"type\":\"BudgetNear\",\"object\":\"llama\",\"text\":"
                 "\"80 % of the day's budget of job llama is spent\"},"
                 "{\"time\":1795421000,\"type\":\"NoPath\",\"object\":\"gpu-1--gpu-2\",\"text\":"
                 "\"there is no way\"}]},"
                 "\"cost\":{\"since\":\"2026-11-17\",\"until\":\"2026-11-23\",\"currency\":\"EUR\","
                 "\"total\":{\"bytes\":103000000000,\"cost\":13.725},"
                 "\"edges\":[{\"from\":\"gpu-2\",\"to\":\"gpu-1\",\"paths\":[\"lan\"],\"bytes\":7,"
                 "\"cost\":0},{\"from\":\"gpu-1\",\"to\":null,\"paths\":[\"direct\",\"relay\"],"
                 "\"bytes\":103000000000,\"cost\":13.725}],"
                 "\"jobs\":[{\"job\":null,\"bytes\":7,\"cost\":0},{\"job\":\"llama\",\"bytes\":"
                 "103000000000,\"cost\":13.725}],"
                 "\"days\":[{\"day\":\"2026-11-23\",\"bytes\":103000000007,\"cost\":13.725}],"
                 "\"disputes\":[{\"day\":\"2026-11-23\",\"from\":\"gpu-1\",\"to\":\"gpu-2\","
                 "\"sent\":9000000000,\"received\":1000000,\"counted\":1165536}],"
                 "\"budgets\":[{\"job\":\"llama\",\"share\":0.915,\"bytes\":103000000000,\"cost\":"
                 "13.725},{\"share\":1.2,\"bytes\":103000000007,\"cost\":13.725}]}}");
}

/* The page is kept; GOLDEN_REWRITE=1 writes it anew. */
static void test_whole(void **state)
{
    const char *root = getenv("WEFT_SOURCE_ROOT");
    json_t *facts = sample();
    struct str out = STR_NULL;
    char path[4096];
    char *kept = NULL;

    page_format(&out, facts);
    (void)snprintf(path, sizeof(path), "%s/test/golden/page.html", root ? root : ".");
    if (getenv("GOLDEN_REWRITE"))
        assert_int_equal(statefile_replace(path, str_text(&out), out.len, 0644, NULL), 0);
    assert_int_equal(statefile_read(path, 1 << 20, &kept, NULL, NULL), 0);
    assert_string_equal(str_text(&out), kept);
    assert_null(strstr(kept, "<script"));
    free(kept);
    str_deinit(&out);
    json_decref(facts);
}

static void test_escaping(void **state)
{
    static const struct {
        const char *text;
        const char *html;
    } cases[] = {
        {"a&b<c>\"d\"'e'", "a&amp;b&lt;c&gt;&quot;d&quot;&#39;e&#39;"},
        {"\x01\n\x7f", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc2\x9b"
         "2J\xc2\xa0",
            "\xef\xbf\xbd"
            "2J\xc2\xa0"},
        {"gr\xc3\xbc\xc3\x9f \xf0\x9f\x92\xbb", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x92\xbb"},
        /* A sequence that ends early, an overlong "<", a surrogate, and above U+10FFFF. */
        {"\xc3", "\xef\xbf\xbd"},
        {"\xc0\xbc", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe2\x82<", "\xef\xbf\xbd\xef\xbf\xbd&lt;"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct str out = STR_NULL;

        html_text(&out, cases[i].text);
        assert_string_equal(str_text(&out), cases[i].html);
        str_deinit(&out);
    }
}

/* The policy names the style that is there. */
static void test_hash(void **state)
{
    uint8_t digest[32];
    char text[BASE64_SIZE(sizeof(digest))];

    assert_int_equal(
        EVP_Digest(page_style(), strlen(page_style()), digest, NULL, EVP_sha256(), NULL), 1);
    base64_encode(digest, sizeof(digest), text);
    assert_string_equal(text, PAGE_STYLE_HASH);
}

/* Whatever the API answers: nothing at all, other types, and 10,000 nodes, which are cut. */
static void test_bounds(void **state)
{
    static const char *const strange[] = {"{}", "{\"nodes\":7,\"edges\":[],\"cost\":\"x\"}",
        "{\"network\":null,\"at\":-5,\"nodes\":{\"nodes\":[1,[],{\"spec\":4}]},\"jobs\":null,"
        "\"edges\":{\"counts\":{\"<b>\":3},\"edges\":{}},\"cost\":{\"edges\":[[]],\"budgets\":[1],"
        "\"jobs\":[0],\"days\":\"\",\"disputes\":[[]]},\"events\":{\"events\":[0]},"
        "\"findings\":{\"findings\":[7,{\"severity\":\"<b>\",\"since\":\"x\"}]}}"};
    json_t *facts = parse("{\"network\":\"n\",\"nodes\":{\"nodes\":[]}}");
    json_t *nodes = json_object_get(json_object_get(facts, "nodes"), "nodes");
    struct str out = STR_NULL;

    for (size_t i = 0; i < sizeof(strange) / sizeof(*strange); i++) {
        json_t *json = parse(strange[i]);

        page_format(&out, json);
        assert_null(strstr(str_text(&out), "<b>"));
        json_decref(json);
        str_deinit(&out);
    }
    for (int i = 0; i < 10000; i++)
        assert_int_equal(
            json_array_append_new(nodes, json_pack("{s:{s:s}, s:b}", "metadata", "name",
                                             i == 9999 ? "lost" : "found", "reachable", i != 9999)),
            0);
    page_format(&out, facts);
    assert_true(out.len < 32768);
    assert_non_null(strstr(str_text(&out), "<td>lost</td>"));
    assert_non_null(strstr(str_text(&out), "9900 more: <code>weft nodes</code>"));
    str_deinit(&out);
    json_decref(facts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_escaping),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
