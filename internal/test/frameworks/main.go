// Program frameworks does the main job of Go's frameworks against a server: frameworks PORT PHASE. See frameworks.mjs. It is a module
// of its own, so that Stave does not depend on them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const (
	jobs    = 50 // that wait during the restart
	timeout = 60 * time.Second
)

var (
	address string
	ctx     = context.Background()
	failed  bool
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "frameworks PORT before|after")
		os.Exit(2)
	}
	address = "127.0.0.1:" + os.Args[1]
	if os.Args[2] == "before" {
		check("github.com/hibiken/asynq", "enqueue, schedule, then a restart", asynqBefore)
		check("github.com/go-redsync/redsync/v4", "lock, then a restart", redsyncBefore)
		check("github.com/ThreeDotsLabs/watermill-redisstream", "publish, work, then a restart", watermillBefore)
	} else {
		check("github.com/hibiken/asynq", "work after the restart: process, retry, schedule, unique, inspect", asynqAfter)
		check("github.com/go-redsync/redsync/v4", "refuse after the restart, lock, extend, unlock", redsyncAfter)
		check("github.com/ThreeDotsLabs/watermill-redisstream", "work after the restart: subscribe, nack, claim", watermillAfter)
		check("github.com/redis/go-redis/v9", "script, function, pipeline, transaction", goRedis)
	}
	if failed {
		os.Exit(1)
	}
}

// check runs a job and writes its result.
func check(module, job string, run func() error) {
	version, result := "", "ok"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == module {
				version = dep.Version
			}
		}
	}
	if err := run(); err != nil {
		result, failed = "FAILED: "+err.Error(), true
	}
	fmt.Printf("%s\t%s\t%s\t%s\n", module, version, job, result)
}

func client() *redis.Client { return redis.NewClient(&redis.Options{Addr: address}) }

func asynqBefore() error {
	c := asynq.NewClient(asynq.RedisClientOpt{Addr: address})
	defer c.Close()
	for i := range jobs {
		if _, err := c.Enqueue(asynq.NewTask("work", []byte{byte(i)}), asynq.MaxRetry(3), asynq.Retention(time.Hour)); err != nil {
			return err
		}
	}
	_, err := c.Enqueue(asynq.NewTask("work", []byte{jobs}), asynq.ProcessIn(time.Second), asynq.Retention(time.Hour))
	return err
}

// worker processes tasks, of which the first fails once, until it has seen all.
func worker(seen map[byte]int) error {
	var mu sync.Mutex
	all := make(chan struct{})
	tries := 0
	srv := asynq.NewServer(asynq.RedisClientOpt{Addr: address}, asynq.Config{
		Concurrency: 4, LogLevel: asynq.FatalLevel, DelayedTaskCheckInterval: time.Second,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Second },
	})
	err := srv.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		mu.Lock()
		defer mu.Unlock()
		n := task.Payload()[0]
		if n == 0 && tries == 0 {
			tries++
			return errors.New("once")
		}
		if seen[n]++; len(seen) == jobs+1 && seen[n] == 1 {
			close(all)
		}
		return nil
	}))
	if err != nil {
		return err
	}
	defer srv.Shutdown()
	select {
	case <-all:
		return nil
	case <-time.After(timeout):
		mu.Lock()
		defer mu.Unlock()
		return fmt.Errorf("%d different tasks", len(seen))
	}
}

func asynqAfter() error {
	seen := map[byte]int{}
	if err := worker(seen); err != nil {
		return err
	}
	for n, times := range seen {
		if times != 1 {
			return fmt.Errorf("task %d was processed %d times", n, times)
		}
	}
	c := asynq.NewClient(asynq.RedisClientOpt{Addr: address})
	defer c.Close()
	task := asynq.NewTask("unique", []byte("x"))
	if _, err := c.Enqueue(task, asynq.Unique(time.Minute), asynq.Queue("other")); err != nil {
		return err
	}
	if _, err := c.Enqueue(task, asynq.Unique(time.Minute), asynq.Queue("other")); !errors.Is(err, asynq.ErrDuplicateTask) {
		return fmt.Errorf("a duplicate: %v", err)
	}
	inspector := asynq.NewInspector(asynq.RedisClientOpt{Addr: address})
	defer inspector.Close()
	info, err := inspector.GetQueueInfo("default")
	if err != nil {
		return err
	}
	if info.Completed != jobs+1 || info.Pending+info.Active+info.Retry+info.Scheduled+info.Archived != 0 {
		return fmt.Errorf("queue: %+v", info)
	}
	if n, err := inspector.DeleteAllPendingTasks("other"); err != nil || n != 1 {
		return fmt.Errorf("deleted %d, %w", n, err)
	}
	return nil
}

func redsyncBefore() error {
	return redsync.New(goredis.NewPool(client())).NewMutex("go:restart", redsync.WithExpiry(2*time.Minute)).Lock()
}

func redsyncAfter() error {
	r := redsync.New(goredis.NewPool(client()))
	if r.NewMutex("go:restart", redsync.WithTries(1)).Lock() == nil {
		return errors.New("the lock was lost")
	}
	m := r.NewMutex("go:lock")
	if err := m.Lock(); err != nil {
		return err
	}
	if r.NewMutex("go:lock", redsync.WithTries(1)).Lock() == nil {
		return errors.New("locked twice")
	}
	if ok, err := m.Extend(); !ok || err != nil {
		return fmt.Errorf("extended: %v, %w", ok, err)
	}
	if ok, err := m.Unlock(); !ok || err != nil {
		return fmt.Errorf("unlocked: %v, %w", ok, err)
	}
	return r.NewMutex("go:lock", redsync.WithTries(1)).Lock()
}

func goRedis() error {
	c := client()
	defer c.Close()
	source := "#!lua name=golib\nredis.register_function('goadd', function(keys, args) return redis.call('INCRBY', keys[1], args[1]) end)"
	if err := c.FunctionLoadReplace(ctx, source).Err(); err != nil {
		return err
	}
	if err := c.Del(ctx, "go:n").Err(); err != nil {
		return err
	}
	script := redis.NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
	n, err := script.Run(ctx, c, []string{"go:n"}, 2).Int()
	if err != nil {
		return err
	}
	m, err := c.FCall(ctx, "goadd", []string{"go:n"}, 3).Int()
	if err != nil {
		return err
	}
	var last *redis.Cmd
	_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.IncrBy(ctx, "go:n", 4)
		last = p.FCall(ctx, "goadd", []string{"go:n"}, 1)
		return nil
	})
	if err != nil || n != 2 || m != 5 || last.Val() != int64(10) {
		return fmt.Errorf("%d, %d, %v, %w", n, m, last, err)
	}
	libraries, err := c.FunctionList(ctx, redis.FunctionListQuery{LibraryNamePattern: "golib", WithCode: true}).Result()
	if err != nil || len(libraries) != 1 || libraries[0].Code != source || len(libraries[0].Functions) != 1 {
		return fmt.Errorf("libraries: %v, %w", libraries, err)
	}
	dump, err := c.FunctionDump(ctx).Result()
	if err != nil {
		return err
	}
	if c.FunctionRestore(ctx, dump).Err() == nil {
		return errors.New("FUNCTION RESTORE has replaced libraries that were there")
	}
	return nil
}
