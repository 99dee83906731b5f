/* job.c - a rank of a job that meets by NCCL, and connects its rings and trees.
 *
 *   job RANK RANKS FILE    rank 0 writes NCCL's identifier into FILE, the others wait for it
 *   job                    makes an identifier, and says so
 *
 * RANK and RANKS are one digit. Prints a line when it is through. Works with any library that has
 * NCCL's calls.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_AGAIN_MS 50

struct unique_id {
    char b[128]; /* NCCL_UNIQUE_ID_BYTES */
};

/* Those of nccl.h, which RCCL has as well. */
int ncclGetUniqueId(struct unique_id *ret);
__attribute__((weak)) int ncclCommInitRank(void **ret, int ranks, struct unique_id id, int rank);
__attribute__((weak)) int ncclCommDestroy(void *comm);

static int fail(const char *what, int code)
{
    (void)fprintf(stderr, "job: %s: %d\n", what, code);
    return 1;
}

static int tell(const char *path, const struct unique_id *id)
{
    char made[4096];
    FILE *f;

    (void)snprintf(made, sizeof(made), "%s.made", path);
    f = fopen(made, "w");
    if (!f || fwrite(id, sizeof(*id), 1, f) != 1 || fclose(f) != 0)
        return -1;
    return rename(made, path);
}

static int hear(const char *path, struct unique_id *id)
{
    FILE *f;
    size_t n;

    while (!(f = fopen(path, "r")))
        (void)poll(NULL, 0, LOOK_AGAIN_MS);
    n = fread(id, sizeof(*id), 1, f);
    (void)fclose(f);
    return n == 1 ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct unique_id id;
    void *comm = NULL;
    int ranks = 1;
    int rank = 0;
    int r;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 3) {
        rank = argv[1][0] - '0';
        ranks = argv[2][0] - '0';
    }
    if (rank == 0 && (r = ncclGetUniqueId(&id)) != 0)
        return fail("ncclGetUniqueId", r);
    if (argc < 4) {
        (void)printf("job: has an identifier\n");
        return 0;
    }
    if ((rank == 0 ? tell(argv[3], &id) : hear(argv[3], &id)) != 0)
        return fail(argv[3], -1);
    r = ncclCommInitRank(&comm, ranks, id, rank);
    if (r != 0)
        return fail("ncclCommInitRank", r);
    (void)printf("job: rank %d of %d is connected\n", rank, ranks);
    r = ncclCommDestroy(comm);
    return r == 0 ? 0 : fail("ncclCommDestroy", r);
}
