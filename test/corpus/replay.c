/*
 * replay.c - runs a fuzz target over every sample of its corpus.
 *
 * Linked with a target when it is not built for the fuzzer, so that the normal
 * tests keep every input that once mattered.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define SAMPLE_MAX (4u << 20)

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *buf = malloc(SAMPLE_MAX);
    uint8_t *exact;
    size_t len;

    if (!f || !buf) {
        (void)fprintf(stderr, "%s: cannot be read\n", path);
        return 1;
    }
    len = fread(buf, 1, SAMPLE_MAX, f);
    (void)fclose(f);
    /* Its own allocation of the exact size, so that a sanitizer sees an overrun. */
    exact = malloc(len ? len : 1);
    if (!exact)
        return 1;
    memcpy(exact, buf, len);
    (void)LLVMFuzzerTestOneInput(exact, len);
    free(exact);
    free(buf);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned n = 0;

    for (int i = 1; i < argc; i++) {
        struct dirent **names;
        int count = scandir(argv[i], &names, NULL, alphasort);

        for (int k = 0; k < count; k++) {
            char path[4096];

            (void)snprintf(path, sizeof(path), "%s/%s", argv[i], names[k]->d_name);
            if (names[k]->d_name[0] != '.') {
                if (replay_file(path) != 0)
                    return 1;
                n++;
            }
            free(names[k]);
        }
        if (count >= 0)
            free(names);
    }
    if (n == 0) {
        (void)fprintf(stderr, "no sample found: a corpus must not be empty\n");
        return 1;
    }
    (void)printf("%u samples replayed\n", n);
    return 0;
}
