"""redis-py over TLS, with its own parser or that of hiredis: clients.py PARSER. See main.go."""
import os
import sys
import threading
import time

import redis
import redis.connection

prefix = os.environ["CLIENT_PREFIX"]
commands, counters, counts, bulk = 1000, 4, 10, b"x" * (1 << 20)


def connect():
    pool = redis.ConnectionPool(
        connection_class=redis.SSLConnection, parser_class=getattr(redis.connection, sys.argv[1]), host="localhost", port=int(os.environ["CLIENT_PORT"]),
        username=os.environ["CLIENT_USER"], password=os.environ["CLIENT_PASSWORD"], ssl_ca_certs=os.environ["CLIENT_CA"], ssl_check_hostname=True)
    return redis.Redis(connection_pool=pool)


def check(got, wanted):
    if got != wanted:
        raise AssertionError(f"got {got!r:.200}, want {wanted!r:.200}")


def refused(call, word):
    try:
        call()
    except redis.RedisError as e:
        if word in str(e) or word in type(e).__name__:
            return
        raise
    raise AssertionError(f"not refused with {word}")


def eventually(call):
    end = time.time() + 20
    while True:
        try:
            return call()
        except (redis.RedisError, OSError, AssertionError):
            if time.time() > end:
                raise
            time.sleep(0.05)


def count(key):
    c = connect()
    done = 0
    while done < counts:
        with c.pipeline() as p:
            p.watch(key)
            n = int(p.get(key) or 0)
            p.multi()
            p.set(key, n + 1)
            try:
                p.execute()
                done += 1
            except redis.WatchError:
                pass


c = connect()
refused(lambda: c.set("foreign", 1), "NoPermission")
refused(c.flushall, "NoPermission")
with c.pipeline(transaction=False) as p:
    for i in range(commands):
        p.incrby(prefix + "sum", i)
    check(p.execute()[-1], commands * (commands - 1) // 2)
c.hset(prefix + "hash", "f", "v")
check(c.hgetall(prefix + "hash"), {b"f": b"v"})
c.set(prefix + "bulk", bulk)
check(c.get(prefix + "bulk"), bulk)
threads = [threading.Thread(target=count, args=(prefix + "n",)) for _ in range(counters)]
for t in threads:
    t.start()
for t in threads:
    t.join()
check(c.get(prefix + "n"), str(counters * counts).encode())
threading.Timer(0.05, lambda: c.rpush(prefix + "list", "element")).start()
check(c.blpop([prefix + "none", prefix + "list"], 20), ((prefix + "list").encode(), b"element"))
check(c.blpop(prefix + "none", 1), None)
listener = c.pubsub(ignore_subscribe_messages=True)
listener.subscribe(prefix + "channel")


def publish():
    while listener.get_message(timeout=0.1):
        pass  # whatever has come before; after the restart this connects again
    check(c.publish(prefix + "channel", "message"), 1)
    end = time.time() + 5
    message = None
    while message is None and time.time() < end:
        message = listener.get_message(timeout=1)
    check(message and message["data"], b"message")


eventually(publish)
print("restart", flush=True)
sys.stdin.readline()
eventually(lambda: check(c.get(prefix + "bulk"), bulk))
eventually(publish)
