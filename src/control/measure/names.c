/* names.c - see names.h. */
#include "measure/names.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "net/address/sockaddr.h"
#include "os/thread.h"

/* Shared by the caller and the thread. The last of the two to finish releases it. */
struct names_job {
    pthread_mutex_t lock;
    pthread_cond_t done;
    unsigned users; /* guarded by lock */
    bool is_done;   /* guarded by lock */
    bool is_left;   /* guarded by lock; the caller has stopped waiting */
    size_t n;
    struct order_name *names;     /* owns; immutable */
    struct names_answer *answers; /* owns; guarded by lock */
};

static void job_unref(struct names_job *job)
{
    bool last;

    (void)pthread_mutex_lock(&job->lock);
    last = --job->users == 0;
    (void)pthread_mutex_unlock(&job->lock);
    if (!last)
        return;
    (void)pthread_mutex_destroy(&job->lock);
    (void)pthread_cond_destroy(&job->done);
    free(job->names);
    free(job->answers);
    free(job);
}

static struct ip_addr look_up(const char *name)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    struct endpoint ep = {0};
    union sockaddr_inet sa;

    if (getaddrinfo(name, NULL, &hints, &list) != 0)
        return ep.addr;
    if (list && list->ai_family == AF_INET) {
        memcpy(&sa.v4, list->ai_addr, sizeof(sa.v4));
        (void)sockaddr_to_endpoint(&sa, &ep);
    }
    freeaddrinfo(list);
    return ep.addr;
}

static void *run(void *arg)
{
    struct names_job *job = arg;
    bool is_left = false;

    for (size_t i = 0; i < job->n && !is_left; i++) {
        struct ip_addr address = look_up(job->names[i].name);

        (void)pthread_mutex_lock(&job->lock);
        job->answers[i] = (struct names_answer){.address = address, .known = true};
        is_left = job->is_left;
        (void)pthread_mutex_unlock(&job->lock);
    }
    (void)pthread_mutex_lock(&job->lock);
    job->is_done = true;
    (void)pthread_cond_signal(&job->done);
    (void)pthread_mutex_unlock(&job->lock);
    job_unref(job);
    return NULL;
}

static struct names_job *job_new(const struct order_name *names, size_t n)
{
    struct names_job *job = calloc(1, sizeof(*job));
    pthread_condattr_t attr;

    if (!job)
        return NULL;
    job->names = calloc(n + 1, sizeof(*job->names));
    job->answers = calloc(n + 1, sizeof(*job->answers));
    if (!job->names || !job->answers) {
        free(job->names);
        free(job->answers);
        free(job);
        return NULL;
    }
    memcpy(job->names, names, n * sizeof(*names));
    job->n = n;
    job->users = 2;
    (void)pthread_mutex_init(&job->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&job->done, &attr);
    (void)pthread_condattr_destroy(&attr);
    return job;
}

int names_resolve(
    const struct order_name *names, size_t n, nsec_t deadline, struct names_answer *ret)
{
    struct timespec until = {.tv_sec = deadline / NSEC_PER_SEC, .tv_nsec = deadline % NSEC_PER_SEC};
    struct names_job *job = n > 0 ? job_new(names, n) : NULL;
    pthread_t thread;
    int r;

    if (n == 0)
        return 0;
    if (!job)
        return -ENOMEM;
    r = thread_start(&thread, "names", -1, run, job);
    if (r < 0) {
        job_unref(job);
        job_unref(job);
        return r;
    }
    (void)pthread_detach(thread);
    (void)pthread_mutex_lock(&job->lock);
    while (!job->is_done && pthread_cond_timedwait(&job->done, &job->lock, &until) == 0)
        continue;
    job->is_left = true;
    memcpy(ret, job->answers, n * sizeof(*ret));
    (void)pthread_mutex_unlock(&job->lock);
    job_unref(job);
    return 0;
}
