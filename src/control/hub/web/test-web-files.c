/* test-web-files.c - the page's files are all there, are small, and keep to the page's policy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "hub/web/web_files.h"

#define ALL_MAX 300000

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text);

    return len >= strlen(end) && strcmp(text + len - strlen(end), end) == 0;
}

static void test_all_are_there(void **state)
{
    size_t all = 0;

    assert_non_null(web_file_find("index.html"));
    assert_string_equal(web_file_find("app.js")->type, "text/javascript; charset=utf-8");
    assert_null(web_file_find("nothing.js"));
    assert_null(web_file_find(""));
    for (const struct web_file *f = web_files; f->name; f++) {
        assert_int_equal(strlen(f->text), f->len);
        all += f->len;
    }
    assert_true(all < ALL_MAX);
}

/* What a file names of the others is there: "/web/dom.js". */
static void test_what_is_named_is_there(void **state)
{
    unsigned n = 0;

    for (const struct web_file *f = web_files; f->name; f++)
        for (const char *p = f->text; (p = strstr(p, "\"/web/")); n++) {
            char name[64];

            p += strlen("\"/web/");
            (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(p, "\""), p);
            if (strcmp(name, "codes.json") != 0 && !web_file_find(name))
                fail_msg("%s names %s", f->name, name);
        }
    assert_true(n > 20);
}

/* Nothing is taken from elsewhere, and no text becomes markup or code. */
static void test_nothing_of_these(void **state)
{
    static const char *const none[] = {"innerHTML =", "outerHTML =", "insertAdjacentHTML",
        "document.write", "eval(", "new Function", "\"style\"", "style=", "onclick=\"", "<script>",
        "<style>", "http://", "https://", "url(", "@import", "localStorage", "sessionStorage"};

    for (const struct web_file *f = web_files; f->name; f++)
        for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
            const char *p = strstr(f->text, none[i]);

            /* The name space of SVG is no address. */
            if (p && strncmp(p, "http://www.w3.org/2000/svg", 26) != 0)
                fail_msg("%s has %s", f->name, none[i]);
        }
    for (const struct web_file *f = web_files; f->name; f++)
        assert_true(ends_with(f->text, "\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_there),
        cmocka_unit_test(test_what_is_named_is_there),
        cmocka_unit_test(test_nothing_of_these),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
