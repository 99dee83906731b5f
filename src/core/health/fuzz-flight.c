/* fuzz-flight.c - the record of a flight recorder, which a process of the job writes. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "health/flight.h"
#include "health/pickle.h"
#include "mesh/object/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Each item of a container is a value, and there are no more than were made. */
static void check_values(const uint8_t *data, size_t len)
{
    struct pickle p = {.n_values = 0};
    size_t n = 0;

    if (pickle_read(&p, data, len, NULL) != 0) {
        assert(!p.values && !p.cells);
        return;
    }
    assert(p.n_values <= len && p.n_cells <= len * 2);
    for (size_t i = 0; i < p.n_values; i++) {
        uint32_t at = pickle_begin(&p.values[i]);

        while (pickle_next(&p, &at))
            n++;
    }
    assert(n == p.n_cells);
    (void)pickle_find(&p, pickle_root(&p), "entries");
    pickle_deinit(&p);
    pickle_deinit(&p);
}

/* What is told is read as it was written. */
static void check_again(const struct flight_record *record)
{
    static struct flight_places places;
    static struct flight_places again;
    struct fields f;
    json_t *json;

    places = (struct flight_places){.is_known = true, .n = record->n};
    again = (struct flight_places){.n = 0};
    memcpy(places.items, record->items, record->n * sizeof(record->items[0]));
    json = json_pack("{s:o*}", "flight", flight_places_encode(&places));
    f = fields_make(json, "sample", NULL);
    flight_places_read(&again, &f, "flight");
    assert(fields_end(&f) == 0 && again.n == places.n);
    for (unsigned i = 0; i < places.n; i++) {
        const struct flight_place *a = &places.items[i];
        const struct flight_place *b = &again.items[i];

        assert(a->key == b->key && a->rank == b->rank && a->n_ranks == b->n_ranks);
        assert(a->entered == b->entered && a->waits_in == b->waits_in);
        assert(a->wait_ms == b->wait_ms && a->elements == b->elements);
        assert(strcmp(a->group, b->group) == 0 && strcmp(a->operation, b->operation) == 0);
        assert(strcmp(a->type, b->type) == 0);
    }
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct flight_record record = {.n = UINT32_MAX};
    struct err e = ERR_NULL;

    check_values(data, len);
    if (flight_decode(&record, data, len, 3, 1760000100000000000, &e) != 0) {
        assert(e.text[0] != '\0' && record.n == UINT32_MAX);
        return 0;
    }
    assert(record.n <= FLIGHT_GROUPS_MAX);
    check_again(&record);
    return 0;
}
