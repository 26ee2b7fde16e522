package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

const (
	sentinelJobs = "Sentinel: the master is killed"
	sentinelName = "main"
)

// sentinels are two servers, of which one is the replica of the other, and three Sentinels that watch them.
type sentinels struct {
	stave, dir string
	servers    map[string]*exec.Cmd // by port
	all        []*exec.Cmd
	addresses  []string // of the Sentinels
}

// startSentinels starts them.
func startSentinels(stave string) (s *sentinels, err error) {
	s = &sentinels{stave: stave, servers: map[string]*exec.Cmd{}}
	if s.dir, err = os.MkdirTemp("", "sentinels"); err != nil {
		return nil, err
	}
	master := ""
	for i := range 2 {
		port, err := freePort()
		if err != nil {
			return s, err
		}
		arguments := []string{"serve", "--dir", filepath.Join(s.dir, "store"+strconv.Itoa(i)), "--addr", "127.0.0.1:" + port}
		if master == "" {
			master = port
		} else {
			arguments = append(arguments, "--replicaof", "127.0.0.1:"+master)
		}
		cmd := exec.Command(stave, arguments...)
		if err := s.start(cmd); err != nil {
			return s, err
		}
		s.servers[port] = cmd
	}
	if err := eventually("the replica", func() error {
		c := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:" + master})
		defer c.Close()
		text, err := c.Info(context.Background(), "replication").Result()
		if err == nil && !strings.Contains(text, "state=online") {
			err = errors.New("is not online")
		}
		return err
	}); err != nil {
		return s, err
	}
	for i := range 3 {
		port, err := freePort()
		if err != nil {
			return s, err
		}
		file := filepath.Join(s.dir, fmt.Sprintf("sentinel%d.conf", i))
		text := fmt.Sprintf("bind 127.0.0.1\nport %s\ndir %s\nsentinel monitor %s 127.0.0.1 %s 2\nsentinel down-after-milliseconds %[3]s 1000\nsentinel failover-timeout %[3]s 6000\n",
			port, s.dir, sentinelName, master)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return s, err
		}
		if err := s.start(exec.Command("redis-sentinel", file)); err != nil {
			return s, err
		}
		s.addresses = append(s.addresses, "127.0.0.1:"+port)
	}
	return s, s.awaitKnown()
}

func (s *sentinels) start(cmd *exec.Cmd) error {
	err := cmd.Start()
	if err == nil {
		s.all = append(s.all, cmd)
	}
	return err
}

// awaitKnown waits until each Sentinel knows the others and the replica.
func (s *sentinels) awaitKnown() error {
	return eventually("the Sentinels", func() error {
		for _, address := range s.addresses {
			c := goredis.NewSentinelClient(&goredis.Options{Addr: address})
			state, err := c.Master(context.Background(), sentinelName).Result()
			_ = c.Close()
			if err != nil {
				return err
			}
			if state["num-slaves"] != "1" || state["num-other-sentinels"] != "2" {
				return fmt.Errorf("one knows %s replicas and %s others", state["num-slaves"], state["num-other-sentinels"])
			}
		}
		return nil
	})
}

// kill kills the server that the Sentinels call the master.
func (s *sentinels) kill() error {
	c := goredis.NewSentinelClient(&goredis.Options{Addr: s.addresses[0]})
	defer c.Close()
	address, err := c.GetMasterAddrByName(context.Background(), sentinelName).Result()
	if err != nil {
		return err
	}
	cmd := s.servers[address[1]]
	if cmd == nil {
		return fmt.Errorf("the Sentinels call %s the master", net.JoinHostPort(address[0], address[1]))
	}
	err = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	return err
}

// close ends everything.
func (s *sentinels) close() error {
	for _, cmd := range s.all {
		_ = cmd.Process.Kill() // one of them was before
		_ = cmd.Wait()
	}
	return os.RemoveAll(s.dir)
}

// sentinelClients are the clients that ask Sentinels.
func sentinelClients() []client {
	const goRedisPath, rueidisPath = "github.com/redis/go-redis/v9", "github.com/redis/rueidis"
	list := []client{
		{goRedisPath, moduleVersion(goRedisPath), "RESP3", sentinelJobs, goRedisSentinel},
		{rueidisPath, moduleVersion(rueidisPath), "RESP3", sentinelJobs, rueidisSentinel},
	}
	if version, ok := installed("node", `(\d+\.\d+\.\d+)`, "-p", "require('./node_modules/ioredis/package.json').version"); ok {
		list = append(list, client{"ioredis", version, "RESP2", sentinelJobs, func(e *env) error { return sentinelScript(e, "node", "sentinel.mjs") }})
	}
	if version, ok := installed(python, `(\d+\.\d+\.\d+)`, "-c", pythonVersion("redis")); ok {
		list = append(list, client{"redis-py", version, "RESP2", sentinelJobs, func(e *env) error { return sentinelScript(e, python, "sentinel.py") }})
	}
	return list
}

// runSentinels lets them write, kills the master, and lets them go on. Without a redis-sentinel they are left out.
func runSentinels(stave string) (rows []string, err error) {
	if _, err := exec.LookPath("redis-sentinel"); err != nil {
		fmt.Println("left out: clients with Sentinel")
		return nil, nil
	}
	s, err := startSentinels(stave)
	if s != nil {
		defer func() { err = errors.Join(err, s.close()) }()
	}
	if err != nil {
		return nil, err
	}
	list := sentinelClients()
	gate := &barrier{finished: make(chan struct{})}
	rows, failures := make([]string, len(list)), make([]error, len(list))
	var clients sync.WaitGroup
	for i, c := range list {
		killed, end := gate.of()
		e := &env{sentinels: s.addresses, restart: killed, prefix: "sentinel:" + strings.ReplaceAll(c.name, "/", ".") + ":"}
		clients.Go(func() {
			defer end()
			if failures[i] = c.run(e); failures[i] != nil {
				failures[i] = fmt.Errorf("%s with Sentinel: %w", c.name, failures[i])
			}
			rows[i] = c.row(failures[i])
		})
	}
	gate.arrived.Wait()
	err = s.kill()
	close(gate.finished)
	clients.Wait()
	return rows, errors.Join(append(failures, err)...)
}

// followed writes, waits for the death of the master, and writes again with the same client.
func followed(e *env, set func(key, value string) error, get func(key string) (string, error)) error {
	if err := set(e.prefix+"before", "1"); err != nil {
		return err
	}
	time.Sleep(200 * time.Millisecond) // that the replica has it
	e.restart()
	if err := eventually("SET after the master was killed", func() error { return set(e.prefix+"after", "2") }); err != nil {
		return err
	}
	before, err := get(e.prefix + "before")
	if err := want("GET", before, "1", err); err != nil {
		return err
	}
	after, err := get(e.prefix + "after")
	return want("GET", after, "2", err)
}

func goRedisSentinel(e *env) error {
	ctx := context.Background()
	c := goredis.NewFailoverClient(&goredis.FailoverOptions{MasterName: sentinelName, SentinelAddrs: e.sentinels})
	defer c.Close()
	return followed(e, func(key, value string) error { return c.Set(ctx, key, value, 0).Err() }, func(key string) (string, error) { return c.Get(ctx, key).Result() })
}

func rueidisSentinel(e *env) error {
	ctx := context.Background()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: e.sentinels, Sentinel: rueidis.SentinelOption{MasterSet: sentinelName}})
	if err != nil {
		return err
	}
	defer c.Close()
	return followed(e, func(key, value string) error { return c.Do(ctx, c.B().Set().Key(key).Value(value).Build()).Error() },
		func(key string) (string, error) { return c.Do(ctx, c.B().Get().Key(key).Build()).ToString() })
}

// sentinelScript runs a program that prints "restart" where the master is to be killed, and reads a line when it was.
func sentinelScript(e *env, name string, arguments ...string) error {
	return converse(e, []string{"CLIENT_SENTINELS=" + strings.Join(e.sentinels, ","), "CLIENT_PREFIX=" + e.prefix}, name, arguments...)
}
