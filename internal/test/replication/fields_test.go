package replication_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/redisserver"
)

// timedCommand is a command on deadlines of fields, of one of few hashes, or one that meets them.
func timedCommand(rng *rand.Rand) []string {
	n := func(most int) string { return strconv.Itoa(rng.IntN(most)) }
	key, f, g := "hash:"+n(4), n(20), n(20)
	soon, later := strconv.Itoa(1+rng.IntN(40)), strconv.Itoa(1_000+rng.IntN(900))
	at := strconv.FormatInt(time.Now().Add(time.Duration(rng.IntN(60)-20)*time.Millisecond).UnixMilli(), 10)
	condition := []string{"NX", "XX", "GT", "LT"}[rng.IntN(4)]
	of := [][]string{
		{"HSET", key, f, n(100), g, n(100)}, {"HSET", key, f, n(100)}, {"HDEL", key, f}, {"HINCRBY", key, f, n(5)}, {"HINCRBYFLOAT", key, f, "0.5"}, {"HSETNX", key, f, n(9)},
		{"HPEXPIRE", key, soon, "FIELDS", "2", f, g}, {"HEXPIRE", key, later, "FIELDS", "2", f, g}, {"HEXPIRE", key, later, condition, "FIELDS", "1", f},
		{"HEXPIRE", key, later, "XX", []string{"GT", "LT"}[rng.IntN(2)], "FIELDS", "2", f, g}, // Valkey's alone
		{"HPEXPIREAT", key, at, "FIELDS", "1", f}, {"HPEXPIREAT", key, at, condition, "FIELDS", "1", f}, {"HPERSIST", key, "FIELDS", "2", f, g},
		{"HGETEX", key, "PX", soon, "FIELDS", "1", f}, {"HGETEX", key, "EX", later, "FIELDS", "2", f, g}, {"HGETEX", key, "PERSIST", "FIELDS", "1", f}, {"HGETDEL", key, "FIELDS", "2", f, g},
		{"HSETEX", key, "PX", soon, "FIELDS", "1", f, n(100)}, {"HSETEX", key, "EX", later, "FIELDS", "2", f, n(100), g, n(100)}, {"HSETEX", key, "KEEPTTL", "FIELDS", "1", f, n(100)},
		{"HSETEX", key, []string{"FNX", "FXX"}[rng.IntN(2)], "PXAT", at, "FIELDS", "1", f, n(100)}, {"HSETEX", key, "FIELDS", "1", f, n(100)},
		{"HSETEX", key, []string{"NX", "XX"}[rng.IntN(2)], "EX", later, "FIELDS", "1", f, n(100)}, // Valkey's alone
		{"COPY", key, "hash:" + n(4), "REPLACE"}, {"RENAME", key, "hash:" + n(4)}, {"MOVE", key, n(3)}, {"PEXPIRE", key, soon}, {"DEL", key},
		{"EVAL", "redis.call('HSET', KEYS[1], 'f', 1); return redis.call('HPEXPIRE', KEYS[1], ARGV[1], 'FIELDS', 1, 'f')", "1", key, soon},
		{"SET", "string:0", n(3)}, {"SET", "string:0", n(3), "IFEQ", n(3)}, {"DELIFEQ", "string:0", n(3)}, {"MSETEX", "2", "string:0", n(3), "string:1", n(3), "EX", later},
	}
	return of[rng.IntN(len(of))]
}

// workTimed executes such commands, between others.
func workTimed(t *testing.T, address string, rng *rand.Rand, commands int) {
	t.Helper()
	c := dial(t, address)
	for range commands / 10 {
		some := [][]string{randomCommand(rng)}
		for range 9 {
			some = append(some, timedCommand(rng))
		}
		c.pipeline(some...)
	}
	c.pipeline([]string{"EXEC"}, []string{"SELECT", "0"})
}

// expireFields waits until a master has deleted the fields that have expired.
func expireFields(master *client) {
	master.t.Helper()
	time.Sleep(60 * time.Millisecond)
	await(master.t, "the master deletes fields that have expired", func() bool {
		shown, held := 0, 0
		for n := range 3 {
			master.must("SELECT", strconv.Itoa(n))
			for _, key := range master.pipeline([]string{"KEYS", "hash:*"})[0].Items {
				name := string(key.Text)
				if master.must("TYPE", name) != "hash" {
					continue
				}
				held++ // that of a hash which has no fields any more
				if fields := master.pipeline([]string{"HGETALL", name})[0].Items; len(fields) > 0 {
					shown += 1 + len(fields)/2
				}
				size, err := strconv.Atoi(master.must("HLEN", name))
				if err != nil {
					master.t.Fatal(err)
				}
				held += size
			}
		}
		master.must("SELECT", "0")
		return shown == held
	})
}

// TestFieldDeadlines: those of fields are the same at both ends, as a file and as a stream, whoever is the master. It needs a
// redis-server of 7.4 or later, or of Valkey 9 under that name, in PATH.
func TestFieldDeadlines(t *testing.T) {
	probe := redisserver.StartMaster(t, "")
	if !knowsFieldDeadlines(dial(t, probe.Socket)) {
		t.Skip("redis-server is older than 7.4")
	}
	for _, ofStave := range []bool{true, false} {
		t.Run(fmt.Sprintf("Stave is the master %t", ofStave), func(t *testing.T) {
			rng := chance.Rand(t)
			address, _ := serve(t, dbtest.New(t), nil)
			stave := dial(t, address)
			stave.must("CONFIG", "SET", "repl-compat", "7.4")
			r := redisserver.StartMaster(t, "", "--repl-diskless-load", "swapdb")
			redis := dial(t, r.Socket)
			_, port, _ := net.SplitHostPort(address)
			master, replica := redis, stave
			follow, at := r.Port, r.Socket
			if ofStave {
				master, replica, follow, at = stave, redis, port, address
			}
			workTimed(t, at, rng, 2_000)
			replica.must("REPLICAOF", "127.0.0.1", follow)
			awaitCaughtUp(t, master, replica)
			for range 3 {
				workTimed(t, at, rng, 3_000)
				expireAll(master)
				expireFields(master)
				awaitCaughtUp(t, master, replica)
				wantSame(t, master, replica)
			}
			if ofStave {
				wantSyncs(t, master, replica, 1)
			}
		})
	}
}
