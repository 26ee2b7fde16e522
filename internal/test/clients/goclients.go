package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

func goClients() []client {
	const goRedisPath, rueidisPath, redigoPath = "github.com/redis/go-redis/v9", "github.com/redis/rueidis", "github.com/gomodule/redigo"
	return []client{
		{goRedisPath, moduleVersion(goRedisPath), "RESP2", usualJobs, func(e *env) error { return goRedis(e, 2) }},
		{goRedisPath, moduleVersion(goRedisPath), "RESP3", usualJobs, func(e *env) error { return goRedis(e, 3) }},
		{rueidisPath, moduleVersion(rueidisPath), "RESP2", usualJobs, func(e *env) error { return rueidisClient(e, false) }},
		{rueidisPath, moduleVersion(rueidisPath), "RESP3", usualJobs + ", client-side caching", func(e *env) error { return rueidisClient(e, true) }},
		{redigoPath, moduleVersion(redigoPath), "RESP2", usualJobs, redigoClient},
	}
}

func goRedis(e *env, protocol int) error {
	ctx := context.Background()
	c := goredis.NewClient(&goredis.Options{Addr: e.server.address(), Username: e.user, Password: e.password, Protocol: protocol, TLSConfig: e.tls})
	defer c.Close()
	key := e.prefix + "key"
	if err := errors.Join(wantError("a foreign key", c.Set(ctx, "foreign", 1, 0).Err(), "NOPERM"), wantError("a forbidden command", c.FlushAll(ctx).Err(), "NOPERM")); err != nil {
		return err
	}
	if err := goRedisPipeline(c, e.prefix+"hash"); err != nil {
		return err
	}
	if err := c.ZAdd(ctx, e.prefix+"zset", goredis.Z{Score: 1.5, Member: "m"}).Err(); err != nil {
		return err
	}
	score, err := c.ZScore(ctx, e.prefix+"zset", "m").Result()
	if err := want("ZSCORE", score, 1.5, err); err != nil {
		return err
	}
	if err := c.Set(ctx, key, bulk, 0).Err(); err != nil {
		return err
	}
	value, err := c.Get(ctx, key).Result()
	if err := want("GET", value, bulk, err); err != nil {
		return err
	}
	if err := together(counters, func(int) error { return goRedisCount(c, e.prefix+"n") }); err != nil {
		return err
	}
	n, err := c.Get(ctx, e.prefix+"n").Int()
	if err := want("WATCH", n, counters*counts, err); err != nil {
		return err
	}
	time.AfterFunc(50*time.Millisecond, func() { c.RPush(ctx, e.prefix+"list", "element") })
	popped, err := c.BLPop(ctx, patience, e.prefix+"none", e.prefix+"list").Result()
	if err := want("BLPOP", fmt.Sprint(popped), fmt.Sprintf("[%slist element]", e.prefix), err); err != nil {
		return err
	}
	if _, err := c.BLPop(ctx, time.Second, e.prefix+"none").Result(); !errors.Is(err, goredis.Nil) {
		return fmt.Errorf("BLPOP of nothing: %w", err)
	}
	subscription := c.Subscribe(ctx, e.prefix+"channel")
	defer subscription.Close()
	if _, err := subscription.Receive(ctx); err != nil {
		return err
	}
	messages := subscription.Channel()
	published := func() error { return goRedisPublish(c, e.prefix+"channel", messages) }
	if err := published(); err != nil {
		return err
	}
	e.restart()
	if err := eventually("the value after the restart", func() error {
		value, err := c.Get(ctx, key).Result()
		return want("GET", value, bulk, err)
	}); err != nil {
		return err
	}
	return eventually("the subscription after the restart", published)
}

// goRedisPipeline makes a hash.
func goRedisPipeline(c *goredis.Client, key string) error {
	ctx := context.Background()
	replies, err := c.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i := range pipelined {
			p.HSet(ctx, key, strconv.Itoa(i), i)
		}
		p.HLen(ctx, key)
		return nil
	})
	if err != nil {
		return err
	}
	all, err := c.HGetAll(ctx, key).Result()
	return errors.Join(want("pipeline", replies[pipelined].(*goredis.IntCmd).Val(), pipelined, nil), want("HGETALL", len(all), pipelined, err))
}

// goRedisCount increments a key by WATCH and MULTI.
func goRedisCount(c *goredis.Client, key string) error {
	ctx := context.Background()
	for done := 0; done < counts; {
		err := c.Watch(ctx, func(tx *goredis.Tx) error {
			n, err := tx.Get(ctx, key).Int()
			if err != nil && !errors.Is(err, goredis.Nil) {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p goredis.Pipeliner) error { return p.Set(ctx, key, n+1, 0).Err() })
			return err
		}, key)
		if err == nil {
			done++
		} else if !errors.Is(err, goredis.TxFailedErr) {
			return err
		}
	}
	return nil
}

func goRedisPublish(c *goredis.Client, channel string, messages <-chan *goredis.Message) error {
	receivers, err := c.Publish(context.Background(), channel, "message").Result()
	if err := want("PUBLISH", receivers, 1, err); err != nil {
		return err
	}
	select {
	case m := <-messages:
		return want("message", m.Channel+m.Payload, channel+"message", nil)
	case <-time.After(patience):
		return errors.New("no message")
	}
}

func rueidisClient(e *env, resp3 bool) error {
	ctx := context.Background()
	option := rueidis.ClientOption{
		InitAddress: []string{e.server.address()}, Username: e.user, Password: e.password, TLSConfig: e.tls, AlwaysRESP2: !resp3, DisableCache: !resp3,
	}
	c, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := wantError("a foreign key", c.Do(ctx, c.B().Set().Key("foreign").Value("1").Build()).Error(), "NOPERM"); err != nil {
		return err
	}
	if err := rueidisPipeline(c, e.prefix+"set"); err != nil {
		return err
	}
	key := e.prefix + "key"
	get := func() error {
		value, err := c.Do(ctx, c.B().Get().Key(key).Build()).ToString()
		return want("GET", value, bulk, err)
	}
	if err := errors.Join(c.Do(ctx, c.B().Set().Key(key).Value(bulk).Build()).Error(), get()); err != nil {
		return err
	}
	if err := together(counters, func(int) error { return rueidisCount(c, e.prefix+"n") }); err != nil {
		return err
	}
	n, err := c.Do(ctx, c.B().Get().Key(e.prefix+"n").Build()).AsInt64()
	if err := want("WATCH", n, counters*counts, err); err != nil {
		return err
	}
	time.AfterFunc(50*time.Millisecond, func() { c.Do(ctx, c.B().Zadd().Key(e.prefix+"zset").ScoreMember().ScoreMember(2.5, "m").Build()) })
	popped, err := c.Do(ctx, c.B().Bzpopmin().Key(e.prefix+"none", e.prefix+"zset").Timeout(patience.Seconds()).Build()).ToArray()
	if err := want("BZPOPMIN", len(popped), 3, err); err != nil {
		return err
	}
	if resp3 {
		if err := rueidisCached(c, e.prefix+"cached"); err != nil {
			return err
		}
	}
	messages := make(chan string, 16)
	listening, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // as programs do: Receive returns when the connection is lost
		for listening.Err() == nil {
			_ = c.Receive(listening, c.B().Subscribe().Channel(e.prefix+"channel").Build(), func(m rueidis.PubSubMessage) { messages <- m.Message })
		}
	}()
	published := func() error { return rueidisPublish(c, e.prefix+"channel", messages) }
	if err := eventually("the subscription", published); err != nil {
		return err
	}
	e.restart()
	if err := errors.Join(eventually("the value after the restart", get), eventually("the subscription after the restart", published)); err != nil {
		return err
	}
	if resp3 {
		return eventually("the cache after the restart", func() error { return rueidisCached(c, e.prefix+"cached") })
	}
	return nil
}

// rueidisPipeline makes a set.
func rueidisPipeline(c rueidis.Client, key string) error {
	var commands rueidis.Commands
	for i := range pipelined {
		commands = append(commands, c.B().Sadd().Key(key).Member(strconv.Itoa(i)).Build())
	}
	for _, reply := range c.DoMulti(context.Background(), commands...) {
		if err := reply.Error(); err != nil {
			return err
		}
	}
	members, err := c.Do(context.Background(), c.B().Smembers().Key(key).Build()).AsStrSlice()
	return want("SMEMBERS", len(members), pipelined, err)
}

func rueidisCount(c rueidis.Client, key string) error {
	ctx := context.Background()
	return c.Dedicated(func(d rueidis.DedicatedClient) error {
		for done := 0; done < counts; {
			if err := d.Do(ctx, d.B().Watch().Key(key).Build()).Error(); err != nil {
				return err
			}
			n, err := d.Do(ctx, d.B().Get().Key(key).Build()).AsInt64()
			if err != nil && !rueidis.IsRedisNil(err) {
				return err
			}
			replies := d.DoMulti(ctx, d.B().Multi().Build(), d.B().Set().Key(key).Value(strconv.FormatInt(n+1, 10)).Build(), d.B().Exec().Build())
			switch err := replies[2].Error(); {
			case err == nil:
				done++
			case !rueidis.IsRedisNil(err):
				return err
			}
		}
		return nil
	})
}

// rueidisCached reads a key twice, the second time from the client's memory, and sees that another's write ends that.
func rueidisCached(c rueidis.Client, key string) error {
	ctx := context.Background()
	for _, value := range []string{"one", "two", "three"} {
		if err := c.Do(ctx, c.B().Set().Key(key).Value(value).Build()).Error(); err != nil {
			return err
		}
		read := func() (string, bool, error) {
			r := c.DoCache(ctx, c.B().Get().Key(key).Cache(), time.Minute)
			text, err := r.ToString()
			return text, r.IsCacheHit(), err
		}
		if err := eventually("an invalidated key", func() error {
			got, _, err := read()
			return want("GET", got, value, err)
		}); err != nil {
			return err
		}
		got, hit, err := read()
		if err := want("cached GET", got, value, err); err != nil {
			return err
		}
		if !hit {
			return errors.New("the second GET is not served from the cache")
		}
	}
	return nil
}

func rueidisPublish(c rueidis.Client, channel string, messages <-chan string) error {
	receivers, err := c.Do(context.Background(), c.B().Publish().Channel(channel).Message("message").Build()).AsInt64()
	if err := want("PUBLISH", receivers, 1, err); err != nil {
		return err
	}
	select {
	case m := <-messages:
		return want("message", m, "message", nil)
	case <-time.After(patience):
		return errors.New("no message")
	}
}

func redigoClient(e *env) error {
	pool := &redigo.Pool{MaxIdle: 8, Dial: func() (redigo.Conn, error) {
		return redigo.Dial("tcp", e.server.address(), redigo.DialUseTLS(true), redigo.DialTLSConfig(e.tls), redigo.DialUsername(e.user), redigo.DialPassword(e.password))
	}}
	defer pool.Close()
	c := pool.Get()
	defer c.Close()
	_, err := c.Do("SET", "foreign", 1)
	if err := wantError("a foreign key", err, "NOPERM"); err != nil {
		return err
	}
	for i := range pipelined {
		if err := c.Send("RPUSH", e.prefix+"list", i); err != nil {
			return err
		}
	}
	if err := c.Flush(); err != nil {
		return err
	}
	for i := range pipelined {
		n, err := redigo.Int(c.Receive())
		if err := want("pipeline", n, i+1, err); err != nil {
			return err
		}
	}
	key := e.prefix + "key"
	get := func() error {
		c := pool.Get()
		defer c.Close()
		value, err := redigo.String(c.Do("GET", key))
		return want("GET", value, bulk, err)
	}
	if _, err := c.Do("SET", key, bulk); err != nil {
		return err
	}
	if err := errors.Join(get(), together(counters, func(int) error { return redigoCount(pool, e.prefix+"n") })); err != nil {
		return err
	}
	n, err := redigo.Int(c.Do("GET", e.prefix+"n"))
	if err := want("WATCH", n, counters*counts, err); err != nil {
		return err
	}
	time.AfterFunc(50*time.Millisecond, func() {
		other := pool.Get()
		defer other.Close()
		_, _ = other.Do("XADD", e.prefix+"stream", "*", "field", "value") // without it the wait below has no result
	})
	streams, err := redigo.Values(redigo.DoWithTimeout(c, 2*patience, "XREAD", "BLOCK", patience.Milliseconds(), "STREAMS", e.prefix+"stream", "$"))
	if err := want("XREAD", len(streams), 1, err); err != nil {
		return err
	}
	if err := redigoListen(pool, e.prefix+"channel"); err != nil {
		return err
	}
	e.restart()
	if err := eventually("the value after the restart", get); err != nil {
		return err
	}
	return eventually("a subscription after the restart", func() error { return redigoListen(pool, e.prefix+"channel") })
}

func redigoCount(pool *redigo.Pool, key string) error {
	c := pool.Get()
	defer c.Close()
	for done := 0; done < counts; {
		if _, err := c.Do("WATCH", key); err != nil {
			return err
		}
		n, err := redigo.Int(c.Do("GET", key))
		if err != nil && !errors.Is(err, redigo.ErrNil) {
			return err
		}
		if err := errors.Join(c.Send("MULTI"), c.Send("SET", key, n+1)); err != nil {
			return err
		}
		reply, err := c.Do("EXEC")
		if err != nil {
			return err
		}
		if reply != nil {
			done++
		}
	}
	return nil
}

// redigoListen subscribes, publishes and receives.
func redigoListen(pool *redigo.Pool, channel string) error {
	listener := redigo.PubSubConn{Conn: pool.Get()}
	defer listener.Close()
	if err := listener.Subscribe(channel); err != nil {
		return err
	}
	if subscribed, ok := listener.ReceiveWithTimeout(patience).(redigo.Subscription); !ok || subscribed.Count != 1 {
		return fmt.Errorf("SUBSCRIBE: %+v", subscribed)
	}
	c := pool.Get()
	defer c.Close()
	receivers, err := redigo.Int(c.Do("PUBLISH", channel, "message"))
	if err := want("PUBLISH", receivers, 1, err); err != nil {
		return err
	}
	switch m := listener.ReceiveWithTimeout(patience).(type) {
	case redigo.Message:
		return want("message", string(m.Data), "message", nil)
	default:
		return fmt.Errorf("no message: %v", m)
	}
}

// refused sees clients without the right password turned away. It comes last: after some wrong passwords the server takes none from an
// address for a while.
func refused(e *env) error {
	ctx := context.Background()
	c := goredis.NewClient(&goredis.Options{Addr: e.server.address(), Username: e.user, Password: "wrong", TLSConfig: e.tls, MaxRetries: -1})
	defer c.Close()
	_, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{e.server.address()}, Username: e.user, Password: "wrong", TLSConfig: e.tls})
	_, err2 := redigo.Dial("tcp", e.server.address(), redigo.DialUseTLS(true), redigo.DialTLSConfig(e.tls), redigo.DialUsername(e.user), redigo.DialPassword("wrong"))
	anonymous := goredis.NewClient(&goredis.Options{Addr: e.server.address(), TLSConfig: e.tls, MaxRetries: -1})
	defer anonymous.Close()
	return errors.Join(wantError("go-redis", c.Ping(ctx).Err(), "WRONGPASS"), wantError("rueidis", err, "WRONGPASS"), wantError("redigo", err2, "WRONGPASS"),
		wantError("nobody", anonymous.Ping(ctx).Err(), "NOAUTH"))
}
