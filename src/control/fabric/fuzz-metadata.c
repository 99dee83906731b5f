/* fuzz-metadata.c - the answers of each cloud's metadata service: the first byte says which cloud.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "fabric/metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_field(const char *text)
{
    assert(strnlen(text, METADATA_FIELD_MAX) < METADATA_FIELD_MAX);
    for (; *text != '\0'; text++)
        assert(*text >= ' ' && *text <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct metadata_answers answers;
    struct metadata_place place;
    struct err e = ERR_NULL;

    if (len < 1)
        return 0;
    answers.cloud = (enum metadata_cloud)(data[0] % METADATA_CLOUD_N);
    len = len - 1 < METADATA_ANSWER_MAX - 1 ? len - 1 : METADATA_ANSWER_MAX - 1;
    memcpy(answers.text, data + 1, len);
    answers.text[len] = '\0';
    if (metadata_decode(&place, &answers, &e) != 0) {
        assert(e.text[0] != '\0');
        return 0;
    }
    check_field(place.machine);
    check_field(place.zone);
    check_field(place.group);
    check_field(place.block);
    check_field(place.host);
    assert(place.asked_together == (place.group[0] != '\0'));
    return 0;
}
