/* job.c - a rank of a job that meets by NCCL, connects its rings and trees, and sends to the next.
 *
 *   job RANK RANKS FILE    rank 0 writes NCCL's identifier into FILE, the others wait for it
 *   job                    makes an identifier, and says so
 *
 * RANK and RANKS are one digit. Each rank sends BYTES of its own to the next one and receives those
 * of the one before, at the same time, ROUNDS times. Prints a line for each of that. Works with any
 * library that has NCCL's calls.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 50

/* Several slots of a connection, and no multiple of them. */
#define BYTES  (512u * 1024 + 12345)
#define ROUNDS 2
#define INT8   0 /* ncclInt8 */

struct unique_id {
    char b[128]; /* NCCL_UNIQUE_ID_BYTES */
};

/* Those of nccl.h, which RCCL has as well. */
int ncclGetUniqueId(struct unique_id *ret);
__attribute__((weak)) int ncclCommInitRank(void **ret, int ranks, struct unique_id id, int rank);
__attribute__((weak)) int ncclCommDestroy(void *comm);
__attribute__((weak)) int ncclGroupStart(void);
__attribute__((weak)) int ncclGroupEnd(void);
__attribute__((weak)) int ncclSend(
    const void *from, size_t n, int type, int peer, void *comm, void *stream);
__attribute__((weak)) int ncclRecv(
    void *to, size_t n, int type, int peer, void *comm, void *stream);

/* Of HIP, whose memory is the host's here. */
__attribute__((weak)) int hipStreamCreateWithFlags(void **ret, unsigned flags);
__attribute__((weak)) int hipStreamSynchronize(void *stream);

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

/* The bytes of a rank in a round: xorshift, so that a slot in the wrong place is seen. */
static void fill(uint32_t *to, int rank, int round)
{
    uint32_t x = 2463534242u + (uint32_t)(rank * ROUNDS + round);

    for (size_t i = 0; i < BYTES / sizeof(x); i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        to[i] = x;
    }
}

static int exchange(void *comm, void *stream, int rank, int ranks, int round)
{
    int before = (rank + ranks - 1) % ranks;
    uint32_t *sent = calloc(1, BYTES);
    uint32_t *got = calloc(1, BYTES);
    uint32_t *wanted = calloc(1, BYTES);
    int r;

    if (!sent || !got || !wanted)
        return fail("memory", -1);
    fill(sent, rank, round);
    fill(wanted, before, round);
    if ((r = ncclGroupStart()) != 0 ||
        (r = ncclSend(sent, BYTES, INT8, (rank + 1) % ranks, comm, stream)) != 0 ||
        (r = ncclRecv(got, BYTES, INT8, before, comm, stream)) != 0 || (r = ncclGroupEnd()) != 0 ||
        (r = hipStreamSynchronize(stream)) != 0)
        return fail("an exchange", r);
    if (memcmp(got, wanted, BYTES) != 0)
        return fail("other bytes than were sent", round);
    (void)printf("job: rank %d has %u bytes of rank %d, round %d\n", rank, BYTES, before, round);
    free(sent);
    free(got);
    free(wanted);
    return 0;
}

/* Says that this rank has all, and waits for the others: who leaves earlier takes its proxy away
 * with what it has not sent yet. */
static int wait_for_all(const char *path, int rank, int ranks)
{
    char name[4096];
    FILE *f;

    (void)snprintf(name, sizeof(name), "%s.%d", path, rank);
    f = fopen(name, "w");
    if (!f || fclose(f) != 0)
        return -1;
    for (int i = 0; i < ranks; i++) {
        (void)snprintf(name, sizeof(name), "%s.%d", path, i);
        while (access(name, F_OK) != 0)
            (void)poll(NULL, 0, LOOK_AGAIN_MS);
    }
    return 0;
}

static int exchange_all(void *comm, int rank, int ranks)
{
    void *stream = NULL;
    int r = hipStreamCreateWithFlags(&stream, 0);

    for (int round = 0; r == 0 && round < ROUNDS; round++)
        r = exchange(comm, stream, rank, ranks, round);
    return r;
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
    if (exchange_all(comm, rank, ranks) != 0 || wait_for_all(argv[3], rank, ranks) != 0)
        return 1;
    r = ncclCommDestroy(comm);
    return r == 0 ? 0 : fail("ncclCommDestroy", r);
}
