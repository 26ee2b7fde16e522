// Command cache asks a full cache for keys through the wire, puts those that are missing, and says how many requests hit:
// Stave's CLOCK beside LRU and LFU of redis-server and exact LRU and SIEVE, with as many keys and the same requests.
//
// redis-server bounds bytes: its maxmemory is what it has used when it holds as many keys as the others may. How many it
// holds at the end is in the table.
//
//	go run ./cache
//	go run ./cache -keys 100000 -requests 2000000 -seed 7
//	go run ./cache -keys 1000000 -full 1h     what writers wait where the cache is full, and whether it keeps its bound
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/bench/internal/servers"
	"github.com/stavedb/stave/internal/test/caches"
)

type settings struct {
	keys     int
	requests int
	seed     uint64
	full     time.Duration
	rate     int
	stave    string
	dir      string
}

func main() {
	var s settings
	flag.IntVar(&s.keys, "keys", 10_000, "keys that a cache holds, of ten times as many that are asked for")
	flag.IntVar(&s.requests, "requests", 200_000, "requests of each trace")
	flag.Uint64Var(&s.seed, "seed", 1, "of the random numbers")
	flag.DurationVar(&s.full, "full", 0, "how long to write to a full cache, and to a store without a bound, instead")
	flag.IntVar(&s.rate, "rate", 0, "with -full: writes a second of each client; 0: as many as it can")
	flag.StringVar(&s.stave, "stave", "", "`binary` of stave; default: built from this checkout")
	flag.StringVar(&s.dir, "dir", "", "`directory` for the servers' files; default: a temporary one")
	flag.Parse()
	servers.Main("cache", func(ctx context.Context, out io.Writer) error { return compare(ctx, s, out) })
}

// indexed is how many bytes of the index a key takes that holds a string.
const indexed = 20

// contender is a server with a policy.
type contender struct {
	*servers.Server
	policy   string
	maxBytes string // its maxmemory; empty: what it has used when it is full
}

// compare starts the servers, asks them, and writes the table.
func compare(ctx context.Context, s settings, out io.Writer) (err error) {
	switch {
	case s.keys < writers || s.requests < 1 || s.rate < 0:
		return fmt.Errorf("-requests must be positive, -keys at least %d, and -rate no less than 0", writers)
	case s.full > 0:
		return full(ctx, s, out)
	}
	root, stave, err := servers.Workplace(ctx, s.dir, s.stave)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	redis, err := servers.StartRedis(ctx, filepath.Join(root, "redis"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, redis.Stop()) }()
	v, err := servers.StartStave(ctx, "stave", stave, filepath.Join(root, "data"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Stop()) }()
	all := []contender{{v, "allkeys-lru", strconv.Itoa(indexed * s.keys)}, {redis, "allkeys-lru", ""}, {redis, "allkeys-lfu", ""}}

	fmt.Fprintf(out, "%d requests for %d keys, of which %d are held. Per cent that hit, and keys at the end:\n\n", s.requests, 10*s.keys, s.keys)
	fmt.Fprint(out, "| requests | stave | redis-server LRU | redis-server LFU | exact LRU | exact SIEVE | keys: stave, LRU, LFU |\n|---|---|---|---|---|---|---|\n")
	for _, trace := range caches.Traces(rand.New(rand.NewPCG(s.seed, 1)), 10*s.keys) {
		numbers := make([]int, s.requests)
		for i := range numbers {
			numbers[i] = trace.Next()
		}
		var hits, held []string
		percent := func(n int) string { return fmt.Sprintf("%.1f", 100*float64(n)/float64(s.requests)) }
		for _, c := range all {
			n, keys, err := c.ask(ctx, numbers, s.keys)
			if err != nil {
				return fmt.Errorf("%s, %s, %s: %w", trace.Name, c.Name, c.policy, err)
			}
			hits, held = append(hits, percent(n)), append(held, strconv.FormatInt(keys, 10))
		}
		for _, exact := range []*caches.Cache{caches.NewLRU(s.keys), caches.NewSieve(s.keys)} {
			n := 0
			for _, number := range numbers {
				if exact.Get(number) {
					n++
				}
			}
			hits = append(hits, percent(n))
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", trace.Name, strings.Join(hits, " | "), strings.Join(held, ", "))
	}
	return nil
}

// ask sends the requests to an empty server that may hold so many keys, and returns how many hit, and the keys at the end.
func (c contender) ask(ctx context.Context, numbers []int, most int) (hits int, keys int64, err error) {
	for _, command := range [][]string{{"CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", c.policy}, {"FLUSHALL"}} {
		if _, err := c.Do(command...); err != nil {
			return 0, 0, err
		}
	}
	if c.maxBytes != "" {
		if _, err := c.Do("CONFIG", "SET", "maxmemory", c.maxBytes); err != nil {
			return 0, 0, err
		}
	}
	value := strings.Repeat("v", 100)
	for missed := 0; len(numbers) > 0 && ctx.Err() == nil; numbers = numbers[1:] {
		key := fmt.Sprintf("key:%09d", numbers[0])
		reply, err := c.Do("GET", key)
		if err != nil {
			return 0, 0, err
		}
		if !reply.Null {
			hits++
			continue
		}
		if _, err := c.Do("SET", key, value); err != nil {
			return 0, 0, err
		}
		if missed++; missed == most && c.maxBytes == "" {
			if err := c.boundAsItIs(); err != nil {
				return 0, 0, err
			}
		}
	}
	reply, err := c.Do("DBSIZE")
	return hits, reply.Int, errors.Join(err, ctx.Err())
}

// boundAsItIs lets the server have the memory that it has now.
func (c contender) boundAsItIs() error {
	info, err := c.Do("INFO", "memory")
	if err != nil {
		return err
	}
	_, used, _ := strings.Cut(string(info.Text), "used_memory:")
	used, _, _ = strings.Cut(used, "\r")
	_, err = c.Do("CONFIG", "SET", "maxmemory", used)
	return err
}
