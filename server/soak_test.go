package server_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server"
)

var soakFlag = flag.Duration("soak", 4*time.Second, "how long TestSoak runs, with both transports together; .ci/run takes a minute")

// TestSoak: 200 clients do what clients do, and check every reply, alongside 20 hostile ones, of which some are killed,
// while the store is merged and the settings are reloaded. No reply is wrong, and when all have left nothing is: no
// connection, goroutine or descriptor, and little memory.
func TestSoak(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		const good, hostile = 200, 20
		seed := chance.Seed(t)
		config, path, _, err := load(t, "")
		if err != nil {
			t.Fatal(err)
		}
		v, address := serve(t, &server.Options{Transport: transport, Config: config})
		admin := dial(t, address)
		admin.send("SETRANGE big 3000000 x\r\nMERGE STATUS\r\n")
		admin.expect(":3000001\r\n")
		goroutines, descriptors, heap := usage(t)

		ctx, cancel := context.WithTimeout(t.Context(), *soakFlag/2)
		defer cancel()
		var work sync.WaitGroup
		var rounds, attacks atomic.Int64
		for i := range good {
			work.Go(func() {
				if err := behave(ctx, address, i, rand.New(rand.NewPCG(seed, uint64(i))), &rounds); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
			})
		}
		for i := range hostile {
			work.Go(func() { attack(ctx, address, rand.New(rand.NewPCG(seed, uint64(good+i))), &attacks) })
		}
		kills, merges, reloads := disturb(ctx, t, v, address, path)
		work.Wait()

		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			g, d, h := usage(t)
			clients := v.Info("clients")
			if strings.Contains(clients, "connected_clients:1\r\n") && strings.Contains(clients, "blocked_clients:0\r\n") && g <= goroutines+5 && d <= descriptors+20 && h <= heap+32<<20 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("goroutines %d, before %d; descriptors %d, %d; heap %d, %d; %s", g, goroutines, d, descriptors, h, heap, clients)
			}
		}
		few := rounds.Load() == 0 || attacks.Load() == 0 || merges == 0 || reloads == 0
		if few || kills == 0 && *soakFlag >= time.Minute {
			t.Errorf("%d rounds, %d attacks, %d kills, %d merges, %d reloads", rounds.Load(), attacks.Load(), kills, merges, reloads)
		}
		t.Logf("%d rounds, %d attacks, %d kills, %d merges, %d reloads", rounds.Load(), attacks.Load(), kills, merges, reloads)
	})
}

// usage is what the process has: goroutines, descriptors, and bytes of the heap that are in use.
func usage(t *testing.T) (goroutines, descriptors int, heap uint64) {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if runtime.GOOS == "linux" {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		descriptors = len(list)
	}
	return runtime.NumGoroutine(), descriptors, m.HeapAlloc
}

// behave is a client that checks every reply. It has keys of its own, so it knows what they hold.
func behave(ctx context.Context, address string, id int, r *rand.Rand, rounds *atomic.Int64) (err error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for n := 1; ctx.Err() == nil; n++ {
		if n%50 == 0 { // some come and go
			if err := conn.Close(); err != nil {
				return err
			}
			if conn, err = net.Dial("tcp", address); err != nil {
				return err
			}
		}
		value := strings.Repeat(string(rune('a'+n%26)), 1+r.IntN(2000))
		k := fmt.Sprintf("good%d", id)
		bulk := fmt.Sprintf("$%d\r\n%s\r\n", len(value), value)
		steps := []struct{ ask, want string }{
			{"SET " + k + " " + value + "\r\nGET " + k + "\r\nSTRLEN " + k + "\r\n", "+OK\r\n" + bulk + fmt.Sprintf(":%d\r\n", len(value))},
			{fmt.Sprintf("INCR %s:n\r\n", k), fmt.Sprintf(":%d\r\n", n)},
			{fmt.Sprintf("RPUSH %s:l %s\r\nBLPOP %s:l 0\r\nLLEN %s:l\r\n", k, value, k, k), fmt.Sprintf(":1\r\n*2\r\n$%d\r\n%s:l\r\n%s:0\r\n", len(k)+2, k, bulk)},
			{fmt.Sprintf("DEL %s:h\r\nHSET %s:h f %s\r\nHGETALL %s:h\r\n", k, k, value, k), fmt.Sprintf(":%d\r\n:1\r\n*2\r\n$1\r\nf\r\n%s", min(n-1, 1), bulk)},
			{fmt.Sprintf("ZADD %s:z %d m\r\nZSCORE %s:z m\r\n", k, n, k), fmt.Sprintf(":%d\r\n$%d\r\n%d\r\n", max(2-n, 0), len(fmt.Sprint(n)), n)},
			{fmt.Sprintf("MULTI\r\nSET %s:m %d\r\nINCR %s:m\r\nEXEC\r\n", k, n, k), fmt.Sprintf("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n:%d\r\n", n+1)},
			{fmt.Sprintf("EVAL \"return redis.call('INCR', KEYS[1])\" 1 %s:e\r\n", k), fmt.Sprintf(":%d\r\n", n)},
			{fmt.Sprintf("SUBSCRIBE %s:c\r\nUNSUBSCRIBE %s:c\r\n", k, k), fmt.Sprintf("*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s:c\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$%d\r\n%s:c\r\n:0\r\n", len(k)+2, k, len(k)+2, k)},
		}
		for _, step := range steps {
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				return err
			}
			if _, err := io.WriteString(conn, step.ask); err != nil {
				return err
			}
			if err := expectText(conn, step.want); err != nil {
				return fmt.Errorf("round %d, %.60q: %w", n, step.ask, err)
			}
		}
		rounds.Add(1)
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	}
	return nil
}

// attack does what no client should. Whatever becomes of its connections is no error.
func attack(ctx context.Context, address string, r *rand.Rand, attacks *atomic.Int64) {
	for ; ctx.Err() == nil; attacks.Add(1) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
		_, _ = io.WriteString(conn, "CLIENT SETNAME hostile\r\n")
		switch r.IntN(7) {
		case 0:
			_, _ = io.WriteString(conn, strings.Repeat("GET big\r\n", 20)) // and reads nothing
			time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		case 1:
			_, _ = io.WriteString(conn, "*1048576\r\n$67108864\r\n"+strings.Repeat("x", r.IntN(100_000)))
		case 2:
			garbage := make([]byte, 1+r.IntN(4000))
			for i := range garbage {
				garbage[i] = byte(r.Uint32())
			}
			_, _ = conn.Write(garbage)
		case 3:
			_, _ = io.WriteString(conn, fmt.Sprintf("BLPOP none%d 0\r\n", r.IntN(3)))
			time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
		case 4:
			_, _ = io.WriteString(conn, strings.Repeat("SUBSCRIBE a b c\r\nPSUBSCRIBE *a*b*c*\r\n", 50))
		case 5:
			_, _ = io.WriteString(conn, "MULTI\r\n"+strings.Repeat("KEYS *\r\n", 20)+"EXEC\r\n")
		case 6:
			_, _ = io.WriteString(conn, "EVAL \"while true do end\" 0\r\n")
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		}
		if r.IntN(2) == 0 {
			_ = conn.(*net.TCPConn).SetLinger(0) // the end is a reset
		}
		_ = conn.Close()
	}
}

// disturb kills hostile clients, merges and reloads until ctx ends.
func disturb(ctx context.Context, t *testing.T, v *server.Server, address, path string) (kills, merges, reloads int) {
	c := dial(t, address)
	defer c.Close()
	replies := resp.NewDecoder(c.Conn)
	ask := func(text string) resp.Reply {
		t.Helper()
		c.send(text + "\r\n")
		r, err := replies.Read()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	hostile := regexp.MustCompile(`id=(\d+) .* name=hostile `)
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		for i, client := range hostile.FindAllStringSubmatch(string(ask("CLIENT LIST").Text), -1) {
			if i%3 == 0 {
				kills += int(ask("CLIENT KILL ID " + client[1]).Int)
			}
		}
		if r := ask("MERGE ALL"); r.IsError() && !strings.Contains(string(r.Text), "merge") {
			t.Errorf("%s", r.Text)
		}
		merges++
		settings := fmt.Sprintf("slowlog-max-len %d\nclient-output-buffer-limit normal 40mb %dmb 2\n", 10+merges%7, 1+merges%3)
		if err := os.WriteFile(path, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := v.Reload(); err != nil {
			t.Fatal(err)
		}
		reloads++
	}
	return kills, merges, reloads
}
