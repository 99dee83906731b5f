/* test-machine.c - which machine is it: moved, copied, or the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "os/machine.h"

static const struct machine_traits here = {
    .id = "aaaaaaaaaaaaaaaa", .cards = {"1111111111111111", "2222222222222222"}, .n_cards = 2};

static void test_agree(void **state)
{
    struct machine_traits other = here;

    assert_true(machine_traits_agree(&here, &other));
    /* A card was taken out, and another one put in. */
    memcpy(other.cards[0], "3333333333333333", MACHINE_TRAIT_MAX);
    assert_true(machine_traits_agree(&here, &other));
    /* A copied image: the number of the installation, and other cards. */
    memcpy(other.cards[1], "4444444444444444", MACHINE_TRAIT_MAX);
    assert_false(machine_traits_agree(&here, &other));
    /* The disk's network card went along, into another installation. */
    other = here;
    memcpy(other.id, "bbbbbbbbbbbbbbbb", MACHINE_TRAIT_MAX);
    assert_false(machine_traits_agree(&here, &other));
    /* Nothing is known of the cards of either. */
    other = here;
    other.n_cards = 0;
    assert_false(machine_traits_agree(&here, &other));
    assert_true(machine_traits_agree(&other, &other));
}

static void test_json(void **state)
{
    struct machine_traits back;
    json_t *json = machine_traits_encode(&here);
    static const char *const damaged[] = {"{}", "[]", "{\"id\": 1, \"cards\": []}",
        "{\"id\": \"short\", \"cards\": []}", "{\"id\": \"\", \"cards\": [7]}",
        "{\"id\": \"\", \"cards\": [\"x\"]}",
        "{\"id\": \"\", \"cards\": [\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"]}"};

    assert_true(machine_traits_decode(&back, json));
    json_decref(json);
    assert_true(machine_traits_agree(&here, &back));
    assert_int_equal(back.n_cards, 2);
    for (size_t i = 0; i < sizeof(damaged) / sizeof(*damaged); i++) {
        json = json_loads(damaged[i], 0, NULL);
        assert_false(machine_traits_decode(&back, json));
        json_decref(json);
    }
}

/* What this machine says of itself stays the same. */
static void test_this_one(void **state)
{
    struct machine_traits a;
    struct machine_traits b;
    char place[2][MACHINE_PLACE_MAX];

    machine_traits_read(&a);
    machine_traits_read(&b);
    assert_true(machine_traits_agree(&a, &b));
    machine_place(place[0]);
    machine_place(place[1]);
    assert_string_equal(place[0], place[1]);
    assert_int_equal(strlen(place[0]), MACHINE_PLACE_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agree),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_this_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
