/* test-model-commit.c - what the hub writes on its way to the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/err.h"
#include "hub/model/model.h"
#include "store/store_backend.h"
#include "store/store.h"

static int keep_value(void *ctx, const struct store_item *item)
{
    (void)snprintf(ctx, 256, "%s", item->value);
    return 0;
}

/* What the model knows gets a sum; what it does not know stays as it is. */
static void test_sums(void **state)
{
    const struct model_listener nobody = {.ctx = NULL};
    struct model model;
    struct store *s;
    const struct store_op ops[] = {{.kind = STORE_OP_PUT,
                                       .key = "ipam/default",
                                       .value = "{\"next\":7}",
                                       .expect = STORE_EXPECT_ABSENT},
        {.kind = STORE_OP_PUT, .key = "mine/x", .value = "text", .expect = STORE_EXPECT_ABSENT},
        {.kind = STORE_OP_CHECK, .key = "mine/y", .expect = STORE_EXPECT_ABSENT}};
    struct err e = ERR_NULL;
    char value[256] = "";

    assert_int_equal(memory_open(&s, "", 1, &e), 0);
    model_init(&model, s, &nobody, 5);
    assert_int_equal(model_commit(&model, ops, 3, 1, NULL, NULL, &e), 0);
    store_wait(s);
    assert_int_equal(store_now_get(s, "ipam/default", keep_value, value, &e), 0);
    assert_true(seal_is_there(value));
    assert_int_equal(seal_check("ipam/default", value, &e), 0);
    assert_int_equal(store_now_get(s, "mine/x", keep_value, value, &e), 0);
    assert_string_equal(value, "text");
    model_deinit(&model);
    store_free(s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
