"""The main job of each Python framework against a server: frameworks.py PORT PHASE. See frameworks.mjs. What is not installed is left out."""
import asyncio
import importlib.metadata
import os
import subprocess
import sys
import time
import traceback

port = int(os.environ.get("FRAMEWORKS_PORT") or sys.argv[1])  # the former in a worker
phase = sys.argv[-1]
url = f"redis://127.0.0.1:{port}/0"
jobs = 50  # that wait during the restart
results = []


def check(name, job, run):
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        print("left out:", name, file=sys.stderr)
        return
    try:
        result = run()
    except Exception as e:  # whatever goes wrong is the result
        traceback.print_exc()
        result = "FAILED: " + " ".join(str(e).split())
    results.append(result)
    print("redis-py" if name == "redis" else name, version, job, result, sep="\t", flush=True)


def same(got, want):
    return "ok" if got == want else f"{got!r}, want {want!r}"


def client():
    import redis
    return redis.Redis(port=port)


def redis_py():
    import redis
    r = client()
    lock = r.lock("py:lock", timeout=10)
    first = lock.acquire(blocking=False)
    second = r.lock("py:lock", timeout=10).acquire(blocking=False)
    lock.extend(10)
    lock.release()
    r.delete("py:n")
    with r.pipeline() as p:
        p.watch("py:n")
        p.multi()
        p.incr("py:n")
        p.incrby("py:n", 4)
        counts = p.execute()
    added = r.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")(keys=["py:n"], args=[2])
    r.function_load("#!lua name=pylib\nredis.register_function('pyget', function(keys) return redis.call('GET', keys[1]) end)", replace=True)
    called = r.fcall("pyget", 1, "py:n")
    listener = r.pubsub()
    listener.subscribe("py:channel")
    listener.get_message(timeout=5)
    r.publish("py:channel", "hello")
    message = listener.get_message(timeout=5)
    listener.close()
    try:
        lock.release()
        released = "twice"
    except redis.exceptions.LockError:
        released = "once"
    return same((first, second, counts, added, called, message["data"], released), (True, False, [1, 5], 7, b"7", b"hello", "once"))


def job_of_rq(n):
    client().rpush("rq:seen", n)
    return n


def failing():
    raise ValueError("on purpose")


def rq_before():
    import rq
    q = rq.Queue("q", connection=client())
    for i in range(jobs):
        q.enqueue("frameworks.job_of_rq", i)
    q.enqueue("frameworks.failing", retry=rq.Retry(max=1))
    from datetime import timedelta
    q.enqueue_in(timedelta(milliseconds=100), "frameworks.job_of_rq", jobs)
    return "ok"


def rq_after():
    from rq.registry import FailedJobRegistry, FinishedJobRegistry
    import rq
    r = client()
    q = rq.Queue("q", connection=r)
    here = os.path.dirname(os.path.abspath(__file__))
    worker = [sys.executable, "-m", "rq.cli", "worker", "--burst", "--with-scheduler", "--quiet", "--url", url, "--path", here, "-w", "rq.worker.SimpleWorker", "q"]
    for _ in range(20):
        subprocess.run(worker, timeout=60, check=True, env={**os.environ, "PYTHONPATH": here, "FRAMEWORKS_PORT": str(port)})
        if r.llen("rq:seen") > jobs:
            break
    seen = sorted(int(n) for n in r.lrange("rq:seen", 0, -1))
    return same((seen, FinishedJobRegistry(queue=q).count, FailedJobRegistry(queue=q).count), (list(range(jobs + 1)), jobs + 1, 1))


def celery_app():
    import celery
    app = celery.Celery("frameworks", broker=url, backend=url)
    app.conf.update(broker_connection_retry_on_startup=True, worker_hijack_root_logger=False)

    @app.task(bind=True, name="add", max_retries=2)
    def add(self, a, b):
        if a == 0 and self.request.retries == 0:
            raise self.retry(countdown=0.1)
        return a + b

    return app, add


def celery_before():
    _, add = celery_app()
    ids = [add.delay(i, 1).id for i in range(jobs)]
    client().rpush("celery:ids", *ids)
    return "ok"


def celery_after():
    from celery import group
    app, add = celery_app()
    here = os.path.dirname(os.path.abspath(__file__))
    code = "import frameworks; frameworks.celery_app()[0].worker_main(['worker', '-P', 'solo', '-l', 'ERROR', '--without-gossip'])"
    worker = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": here, "FRAMEWORKS_PORT": str(port)}, stdout=subprocess.DEVNULL)
    try:
        ids = [i.decode() for i in client().lrange("celery:ids", 0, -1)]
        kept = [app.AsyncResult(i).get(timeout=40) for i in ids]
        delayed = add.apply_async((40, 2), countdown=0.3).get(timeout=40)
        grouped = group(add.s(i, i) for i in range(1, 5))().get(timeout=40)
        alive = app.control.ping(timeout=2)
    finally:
        worker.terminate()
        worker.wait(30)
    return same((kept, delayed, grouped, len(alive)), ([i + 1 for i in range(jobs)], 42, [2, 4, 6, 8], 1))


def django(run):
    from django.conf import settings
    if not settings.configured:
        settings.configure(CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": url}})
    from django.core.cache import cache
    return run(cache)


def django_before(cache):
    cache.set_many({f"k{i}": {"n": i} for i in range(jobs)}, timeout=300)
    return "ok"


def django_after(cache):
    kept = cache.get_many([f"k{i}" for i in range(jobs)])
    cache.set("a", 1)
    cache.incr("a", 4)
    added = cache.add("a", 9)
    cache.set("soon", 1, timeout=1)
    ttl = cache.ttl("soon")
    with cache.lock("dj:lock", timeout=5):
        locked = "dj:lock"
    keys = sorted(cache.keys("k1*"))
    deleted = cache.delete_pattern("k1*")
    return same((len(kept), cache.get("a"), added, ttl, locked, len(keys), deleted, cache.get("k1")), (jobs, 5, False, 1, "dj:lock", 11, 11, None))


def channels(run):
    from channels_redis.core import RedisChannelLayer

    async def body():
        layer = RedisChannelLayer(hosts=[("127.0.0.1", port)], capacity=1000)
        try:
            return await asyncio.wait_for(run(layer), 30)
        finally:
            await layer.close_pools()
    return asyncio.run(body())


async def channels_before(layer):
    for i in range(jobs):
        await layer.send("mailbox", {"type": "t", "n": i})
    await layer.group_add("room", "member")
    return "ok"


async def channels_after(layer):
    kept = [(await layer.receive("mailbox"))["n"] for _ in range(jobs)]
    await layer.group_send("room", {"type": "t", "text": "hello"})
    heard = await layer.receive("member")
    await layer.group_discard("room", "member")
    await layer.group_send("room", {"type": "t", "text": "again"})
    try:
        await asyncio.wait_for(layer.receive("member"), 1)
        silent = False
    except asyncio.TimeoutError:
        silent = True
    return same((kept, heard["text"], silent), (list(range(jobs)), "hello", True))


def main():
    if phase == "before":
        check("rq", "enqueue, delay, then a restart", rq_before)
        check("celery", "delay, then a restart", celery_before)
        check("django-redis", "set, then a restart", lambda: django(django_before))
        check("channels-redis", "send, group, then a restart", lambda: channels(channels_before))
    elif phase == "after":
        check("redis", "lock, transaction, script, function, publish", redis_py)
        check("rq", "work after the restart: process, retry, fail, schedule", rq_after)
        check("celery", "work after the restart: process, retry, countdown, group, ping", celery_after)
        check("django-redis", "get after the restart, incr, add, lock, delete by pattern", lambda: django(django_after))
        check("channels-redis", "receive after the restart, group send", lambda: channels(channels_after))
    sys.exit(0 if all(r == "ok" for r in results) else 1)


if __name__ == "__main__":
    main()
