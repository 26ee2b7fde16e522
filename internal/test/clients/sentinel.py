"""redis-py with Sentinel. See sentinel.go."""
import os
import sys
import time

import redis
from redis.sentinel import Sentinel

prefix = os.environ["CLIENT_PREFIX"]
addresses = [tuple(a.split(":")) for a in os.environ["CLIENT_SENTINELS"].split(",")]
c = Sentinel(addresses, socket_timeout=1).master_for("main", socket_timeout=1)
c.set(prefix + "before", 1)
time.sleep(0.2)  # that the replica has it
print("restart", flush=True)
sys.stdin.readline()
end = time.time() + 20
while True:
    try:
        c.set(prefix + "after", 2)
        break
    except (redis.RedisError, OSError):
        if time.time() > end:
            raise
        time.sleep(0.05)
assert (c.get(prefix + "before"), c.get(prefix + "after")) == (b"1", b"2")
