// SPDX-License-Identifier: BSD-2-Clause
/*
 * The worker threads: a queue of jobs behind one lock.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "marks.h"
#include "pool.h"
#include "thread.h"

struct worker {
	pthread_t id;
	struct pool *pool;
	unsigned int stream;
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t work; /* a job came, or closing */
	pthread_cond_t done; /* the awaited job is done */
	struct job *first;   /* the queue: jobs with pieces that nobody took yet */
	struct job **last;
	const struct job *awaited;
	bool closing;
	unsigned int threads;
	struct worker workers[];
};

/*
 * The next piece; NULL when the pool closes. A job leaves the queue with its last piece, while earlier
 * ones may still run. The lock is held.
 */
static struct job *pool_take(struct pool *pool, unsigned int *piece)
{
	struct job *job;

	while (!pool->first && !pool->closing)
		pthread_cond_wait(&pool->work, &pool->lock);
	job = pool->first;
	if (!job)
		return NULL;
	*piece = job->taken++;
	if (job->taken == job->pieces) {
		pool->first = job->next;
		if (!pool->first)
			pool->last = &pool->first;
	}
	return job;
}

/*
 * `left` falls to zero only after `done` has returned: from then on the job may be reused by the
 * thread that waits for it.
 */
static void piece_finish(struct pool *pool, struct job *job)
{
	if (job->left == 1 && job->done) {
		pthread_mutex_unlock(&pool->lock);
		job->done(job);
		pthread_mutex_lock(&pool->lock);
	}
	if (--job->left == 0 && pool->awaited == job)
		pthread_cond_signal(&pool->done);
}

/* A thread's stream ends with the thread: nothing has to be left. */
static void *work(void *arg)
{
	const struct worker *worker = arg;
	struct pool *pool = worker->pool;
	struct job *job;
	unsigned int piece;

	stream_enter(worker->stream);
	pthread_mutex_lock(&pool->lock);
	while ((job = pool_take(pool, &piece))) {
		pthread_mutex_unlock(&pool->lock);
		job->run(job, piece);
		pthread_mutex_lock(&pool->lock);
		piece_finish(pool, job);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

int pool_open(struct pool **out, unsigned int threads)
{
	struct pool *pool;
	int err = 0;

	*out = NULL;
	pool = calloc(1, sizeof(*pool) + threads * sizeof(pool->workers[0]));
	if (!pool)
		return -ENOMEM;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	pthread_cond_init(&pool->done, NULL);
	pool->last = &pool->first;

	for (unsigned int i = 0; i < threads && !err; i++) {
		struct worker *worker = &pool->workers[i];

		worker->pool = pool;
		worker->stream = STREAM_OF_WORKER(i);
		err = thread_start(&worker->id, work, worker);
		if (!err)
			pool->threads++;
	}
	if (err) {
		pool_close(pool);
		return err;
	}
	*out = pool;
	return 0;
}

void pool_close(struct pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->closing = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned int i = 0; i < pool->threads; i++)
		pthread_join(pool->workers[i].id, NULL);
	pthread_cond_destroy(&pool->done);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

unsigned int pool_threads(const struct pool *pool)
{
	return pool->threads;
}

void pool_submit(struct pool *pool, struct job *job)
{
	job->taken = 0;
	job->left = job->pieces;
	job->next = NULL;
	pthread_mutex_lock(&pool->lock);
	*pool->last = job;
	pool->last = &job->next;
	if (job->pieces == 1)
		pthread_cond_signal(&pool->work);
	else
		pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
}

void pool_wait(struct pool *pool, struct job *job)
{
	pthread_mutex_lock(&pool->lock);
	pool->awaited = job;
	while (job->left)
		pthread_cond_wait(&pool->done, &pool->lock);
	pool->awaited = NULL;
	pthread_mutex_unlock(&pool->lock);
}
