package server_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
	"github.com/stavedb/stave/server"
)

var (
	linearHistories = flag.Int("linear.histories", 200, "histories that the linearizability test judges; a few more are of a real process")
	linearSeed      = flag.Uint64("linear.seed", 0, "seed of the commands of the linearizability test (0: a random one)")
)

const (
	linearClients = 8
	// linearKilled is the number of clients if the server is killed. The outcome of several commands of each of them is
	// then unknown: with eight clients there are sometimes too many orders to try.
	linearKilled = 4
	linearCalls  = 100 // of each client, in one history
)

// linearTarget is a server that is killed at times.
type linearTarget interface {
	// client returns a func that does commands on the server as it is now; that
	// fails if the server is killed before the reply has come. While a kill is on
	// its way client waits for the next server.
	client() (do func(commands [][]string) (reply string, err error))
	kill()
}

// linearHistory has clients talk to a server while it is killed and merges, and judges their
// replies.
func linearHistory(t *testing.T, target linearTarget, seed uint64, callers, calls, kills int) porcupine.CheckResult {
	t.Helper()
	var (
		mu      sync.Mutex
		history []porcupine.Operation
		clients sync.WaitGroup
		begin   = time.Now()
	)
	for c := range callers {
		rng := rand.New(rand.NewPCG(seed, uint64(c)))
		clients.Go(func() {
			do := target.client()
			for range calls {
				call := linearCall{commands: linearCommands(rng), called: time.Now().UnixMilli()}
				op := porcupine.Operation{ClientId: c, Call: int64(time.Since(begin))}
				if rng.IntN(4) == 0 {
					runtime.Gosched()
				}
				reply, err := do(call.commands)
				if call.acknowledged = err == nil; err != nil {
					do = target.client() // the server that was asked is no more
				}
				op.Return, call.ended = int64(time.Since(begin)), time.Now().UnixMilli()
				op.Input, op.Output = call, reply
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
			}
		})
	}
	rng := rand.New(rand.NewPCG(seed, uint64(callers)))
	for range kills {
		for enough := rng.IntN(callers * calls); ; time.Sleep(50 * time.Microsecond) {
			mu.Lock()
			n := len(history)
			mu.Unlock()
			if n >= enough {
				break
			}
		}
		target.kill()
	}
	clients.Wait()
	return judge(t, history, seed)
}

// judge wants an order that explains the history; a history without one is
// kept as a page to look at. One that cannot be judged in time is Unknown.
func judge(t *testing.T, history []porcupine.Operation, seed uint64) porcupine.CheckResult {
	t.Helper()
	model := linearModel()
	result, info := porcupine.CheckOperationsVerbose(model, history, 20*time.Second)
	if result != porcupine.Illegal {
		return result
	}
	name := filepath.Join(os.TempDir(), fmt.Sprintf("stave-linear-%d.html", seed))
	if err := porcupine.VisualizePath(model, info, name); err != nil {
		t.Error(err)
	}
	t.Errorf("history %d: %v; see %s", seed, result, name)
	return result
}

// TestLinearModel has the judge find wrong histories.
func TestLinearModel(t *testing.T) {
	op := func(called, ended int64, reply string, cmd ...string) porcupine.Operation {
		c := linearCall{commands: [][]string{cmd}, called: called, ended: ended, acknowledged: reply != "?"}
		return porcupine.Operation{Input: c, Output: reply, Call: called, Return: ended}
	}
	set := op(1, 2, "OK", "SET", "a", "1")
	for _, c := range []struct {
		what    string
		history []porcupine.Operation
		want    porcupine.CheckResult
	}{
		{"read what was written", []porcupine.Operation{set, op(3, 4, "1", "GET", "a")}, porcupine.Ok},
		{"a write is lost", []porcupine.Operation{set, op(3, 4, "nil", "GET", "a")}, porcupine.Illegal},
		{"deleted meanwhile, perhaps", []porcupine.Operation{set, op(2, 9, "?", "DEL", "a", "b"), op(3, 4, "nil", "GET", "a")}, porcupine.Ok},
		{"deleted afterwards, perhaps", []porcupine.Operation{set, op(5, 9, "?", "DEL", "a", "b"), op(3, 4, "nil", "GET", "a")}, porcupine.Illegal},
		{"back from the dead", []porcupine.Operation{set, op(3, 4, "1", "DEL", "a"), op(5, 6, "2", "INCR", "a")}, porcupine.Illegal},
		{"half of an MSET", []porcupine.Operation{
			op(1, 9, "OK", "MSET", "a", "1", "b", "1"), op(2, 3, "1", "GET", "a"), op(4, 5, "nil", "GET", "b"),
		}, porcupine.Illegal},
		{"half of a script", []porcupine.Operation{
			op(1, 9, "nil", "EVAL", linearScript, "2", "a", "b"), op(2, 3, "1", "GET", "b"), op(4, 5, "nil", "GET", "a"),
		}, porcupine.Illegal},
		{"a script", []porcupine.Operation{set, op(2, 9, "1", "EVAL", linearScript, "0", "a", "b"), op(3, 4, "1", "GET", "b"), op(5, 6, "1", "GET", "a")}, porcupine.Ok},
		{"read twice by a group", []porcupine.Operation{
			op(1, 2, "OK", "XGROUP", "CREATE"), op(2, 3, "added", "XADD", "q", "7"), op(4, 5, "7", "XREADGROUP"), op(6, 7, "7", "XREADGROUP"),
		}, porcupine.Illegal},
		{"read by a group in order", []porcupine.Operation{
			op(1, 2, "added", "XADD", "q", "7"), op(2, 3, "added", "XADD", "q", "8"), op(3, 4, "NOGROUP", "XREADGROUP"), op(4, 5, "OK", "XGROUP", "CREATE"),
			op(6, 7, "7", "XREADGROUP"), op(8, 9, "8", "XREADGROUP"), op(10, 11, "nil", "XREADGROUP"), op(12, 13, "BUSYGROUP", "XGROUP", "CREATE"),
		}, porcupine.Ok},
		{"acknowledged once", []porcupine.Operation{
			op(1, 2, "OK", "XGROUP", "CREATE"), op(2, 3, "added", "XADD", "q", "7"), op(3, 4, "ERR", "XADD", "q", "6"), op(4, 5, "0", "XCLAIM", "q", "g", "c2", "0", "7"),
			op(5, 6, "7", "XREADGROUP"), op(6, 7, "1", "XCLAIM", "q", "g", "c2", "0", "7"), op(7, 8, "1", "XACK", "q", "g", "7"), op(8, 9, "0", "XACK", "q", "g", "7"),
		}, porcupine.Ok},
		{"acknowledged twice", []porcupine.Operation{
			op(1, 2, "OK", "XGROUP", "CREATE"), op(2, 3, "added", "XADD", "q", "7"), op(5, 6, "7", "XREADGROUP"),
			op(7, 8, "1", "XACK", "q", "g", "7"), op(9, 10, "1", "XACK", "q", "g", "7"),
		}, porcupine.Illegal},
		{"claimed though acknowledged", []porcupine.Operation{
			op(1, 2, "OK", "XGROUP", "CREATE"), op(2, 3, "added", "XADD", "q", "7"), op(5, 6, "7", "XREADGROUP"),
			op(7, 8, "1", "XACK", "q", "g", "7"), op(9, 10, "1", "XCLAIM", "q", "g", "c2", "0", "7"),
		}, porcupine.Illegal},
		{"an older entry after a newer one", []porcupine.Operation{op(1, 2, "added", "XADD", "q", "7"), op(2, 3, "added", "XADD", "q", "7")}, porcupine.Illegal},
		{"expired", []porcupine.Operation{op(1, 2, "OK", "SET", "a", "1", "PXAT", "5"), op(3, 6, "nil", "GET", "a")}, porcupine.Ok},
		{"expired too early", []porcupine.Operation{op(1, 2, "OK", "SET", "a", "1", "PXAT", "5"), op(3, 4, "nil", "GET", "a")}, porcupine.Illegal},
		{"expired too late", []porcupine.Operation{op(1, 2, "OK", "SET", "a", "1", "PXAT", "5"), op(6, 7, "1", "GET", "a")}, porcupine.Illegal},
		{"an old deadline", []porcupine.Operation{
			op(1, 2, "OK", "SET", "a", "1", "PXAT", "5"), op(2, 3, "1", "PERSIST", "a"), op(6, 7, "nil", "GET", "a"),
		}, porcupine.Illegal},
	} {
		if got := porcupine.CheckOperationsTimeout(linearModel(), c.history, time.Minute); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// linearCommands is what a client does next.
func linearCommands(rng *rand.Rand) [][]string {
	n := 1
	if rng.IntN(8) == 0 {
		n = 2 + rng.IntN(2)
	}
	list := make([][]string, n)
	for i := range list {
		list[i] = linearCommand(rng)
	}
	return list
}

// linearID is the newest entry of all queues, and never less than those that are drawn below it. Each history has its
// own queue, whose entries may begin anywhere.
var linearID atomic.Int64

func init() { linearID.Store(1000) }

func linearCommand(rng *rand.Rand) []string {
	key := func() string { return linearKeys[rng.IntN(len(linearKeys))] }
	value := func() string { return strconv.Itoa(rng.IntN(1000)) }
	soon := func() string { return strconv.FormatInt(time.Now().UnixMilli()+rng.Int64N(8)-1, 10) }
	switch p := rng.IntN(36); {
	case p >= 34:
		n := linearID.Load() - rng.Int64N(6)
		if p == 34 {
			return []string{"XACK", linearQueue, "g", strconv.FormatInt(n, 10)}
		}
		return []string{"XCLAIM", linearQueue, "g", "c2", "0", strconv.FormatInt(n, 10)}
	case p >= 32:
		n := linearID.Add(1) - max(rng.Int64N(6)-4, 0) // some of them too late
		return []string{"XADD", linearQueue, strconv.FormatInt(n, 10), "f", strconv.FormatInt(n, 10)}
	case p >= 28:
		return []string{"XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", linearQueue, ">"}
	case p == 27:
		return []string{"XGROUP", "CREATE", linearQueue, "g", "0", "MKSTREAM"}
	case p >= 24:
		return []string{"EVAL", linearScript, []string{"0", "2"}[rng.IntN(2)], key(), key()}
	case p < 2:
		return []string{"SET", key(), value()}
	case p == 2:
		return []string{"SET", key(), value(), "PXAT", soon()}
	case p == 3:
		return []string{"PEXPIREAT", key(), soon()}
	case p == 4:
		return []string{"PERSIST", key()}
	case p < 7:
		return []string{"MSET", key(), value(), key(), value(), key(), value()}
	case p < 9:
		return []string{"DEL", key(), key()}
	case p < 17:
		return []string{"INCR", key()}
	}
	return []string{"GET", key()}
}

func linearOptions(fsys vfs.FS, sync db.SyncMode) *db.Options {
	return seam.With(&db.Options{Sync: sync, SegmentSize: 2 << 10, NoMerge: true, ExpireEvery: time.Millisecond, Merge: merge.Policy{TriggerRatio: 0.2, IncludeRatio: 0.1, SmallCount: 2}},
		seam.Options{FS: fsys, YieldEvery: 1})
}

// linearMemory is a server whose store is in memory. A kill leaves the files as
// they are to a new one.
type linearMemory struct {
	t    *testing.T
	sync db.SyncMode

	mu     sync.RWMutex
	mem    *vfs.Mem
	store  *db.Store
	life   chan struct{} // closed when the process is dead
	merges sync.WaitGroup
}

var errKilled = errors.New("killed")

func (l *linearMemory) start() {
	s, err := db.Open("d", linearOptions(l.mem, l.sync))
	if err != nil {
		l.t.Error(err)
		return
	}
	life := make(chan struct{})
	l.store, l.life = s, life
	l.merges.Go(func() { mergeWhile(s, life) })
}

// mergeWhile merges until the process is dead.
func mergeWhile(s *db.Store, life <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-life:
			return
		case <-time.After(300 * time.Microsecond):
			// A merge that a dead process could not complete is no loss.
			_, _ = s.Merge(context.Background(), merge.RunOptions{All: n%4 == 0})
		}
	}
}

func (l *linearMemory) client() func([][]string) (string, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	session, err := server.NewSession(l.store, nil)
	life := l.life
	return func(commands [][]string) (string, error) {
		if err != nil {
			return "", err
		}
		var out []byte
		for _, args := range transaction(commands) {
			list := make([][]byte, len(args))
			for i, a := range args {
				list[i] = []byte(a)
			}
			out = append(out, session.Do(list)...)
		}
		select {
		case <-life:
			return "", errKilled
		default:
			return replies(func() (r resp.Reply, err error) {
				r, out, err = resp.Decode(out)
				return r, err
			}, commands)
		}
	}
}

// kill ends one process and starts the next. A client without a reply before it begins counts as
// unanswered.
func (l *linearMemory) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.life)
	dead := l.store
	l.mem = l.mem.Clone()
	l.merges.Wait()
	if err := dead.Close(); err != nil {
		l.t.Error(err)
	}
	l.start()
}

// transaction wraps several commands in MULTI and EXEC.
func transaction(commands [][]string) [][]string {
	if len(commands) == 1 {
		return commands
	}
	list := append([][]string{{"MULTI"}}, commands...)
	return append(list, []string{"EXEC"})
}

// replies reads what answers the commands, as the model writes it.
func replies(read func() (resp.Reply, error), commands [][]string) (string, error) {
	if len(commands) == 1 {
		r, err := read()
		if err != nil {
			return "", err
		}
		return replyText(commands[0], r), nil
	}
	for range len(commands) + 1 { // +OK and +QUEUED
		if _, err := read(); err != nil {
			return "", err
		}
	}
	r, err := read()
	if err != nil {
		return "", err
	}
	texts := make([]string, len(r.Items))
	for i, item := range r.Items {
		texts[i] = replyText(commands[i], item)
	}
	return strings.Join(texts, " "), nil
}

func replyText(cmd []string, r resp.Reply) string {
	if r.Null {
		return "nil"
	}
	text := r.String()
	switch code, _, _ := strings.Cut(text, " "); {
	case cmd[0] == "XADD" && r.Err() == nil:
		return "added"
	case code == "NOGROUP" || code == "BUSYGROUP" || code == "ERR":
		return code
	case cmd[0] == "XCLAIM":
		return strconv.Itoa(len(r.Items))
	case cmd[0] == "XREADGROUP" && r.Err() == nil: // one stream with one entry: its id, and one field with its value
		return r.Items[0].Items[1].Items[0].Items[1].Items[1].String()
	}
	return text
}

// TestLinearizable has several clients work on four keys at once, through
// sessions of a server that is killed and merges all the time: there is an
// order of all commands that explains every reply.
func TestLinearizable(t *testing.T) {
	n, seed := *linearHistories, chance.Draw(*linearSeed)
	if testing.Short() {
		n = min(n, 5)
	}
	t.Logf("%d histories of %d clients, %d where the server is killed, with %d calls each; replay the commands with -linear.seed %d", n, linearClients, linearKilled, linearCalls, seed)
	part := longTests.Start(t, 1, "linear.histories", "linear.seed").Part(t, 5)
	defer part.End()
	for i := range n {
		if !part.Take(i, n) {
			continue
		}
		untilJudged(t, seed+uint64(i), func(seed uint64) porcupine.CheckResult {
			l := &linearMemory{t: t, sync: db.SyncMode(i % 3), mem: vfs.NewMem()}
			l.start()
			kills, callers := i%3, linearClients
			if kills > 0 {
				callers = linearKilled
			}
			result := linearHistory(t, l, seed, callers, linearCalls, kills)
			close(l.life)
			l.merges.Wait()
			if err := l.store.Close(); err != nil {
				t.Error(err)
			}
			return result
		})
		if t.Failed() {
			return
		}
	}
}

// untilJudged makes another history in place of one that cannot be judged in time: where clients overlap much, as they
// do on a busy machine, there can be more orders than anyone can try.
func untilJudged(t *testing.T, seed uint64, history func(seed uint64) porcupine.CheckResult) {
	t.Helper()
	const tries = 4
	for try := range uint64(tries) {
		if history(seed+try<<32) != porcupine.Unknown || t.Failed() {
			return
		}
		t.Logf("-linear.seed %d: not judged in time", seed+try<<32)
	}
	t.Errorf("of %d histories in a row none could be judged in time", tries)
}

// linearProcess is a server in a process of its own.
type linearProcess struct {
	t         *testing.T
	dir       string
	sync      db.SyncMode
	transport server.Transport

	mu  sync.RWMutex
	cmd *exec.Cmd
}

const linearEnv = "STAVE_LINEAR_TEST"

func (l *linearProcess) socket() string { return filepath.Join(l.dir, "socket") }

// TestLinearProcess is the server of TestLinearizableProcess.
func TestLinearProcess(t *testing.T) {
	text := os.Getenv(linearEnv)
	if text == "" {
		t.Skip("this is the child of TestLinearizableProcess")
	}
	words := strings.SplitN(text, " ", 3)
	dir := words[2]
	n, err := strconv.Atoi(words[0])
	if err != nil {
		t.Fatal(err)
	}
	s, err := db.Open(filepath.Join(dir, "store"), linearOptions(nil, db.SyncMode(n)))
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go mergeWhile(s, nil)
	fmt.Println("serving")
	t.Fatal(server.Serve(context.Background(), ln, s, &server.Options{Transport: server.Transport(words[1])}))
}

func (l *linearProcess) start() {
	l.cmd = exec.Command(os.Args[0], "-test.run=^TestLinearProcess$")
	l.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s %s", linearEnv, l.sync, l.transport, l.dir))
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "serving\n" {
		rest, _ := io.ReadAll(out)
		l.t.Errorf("the server does not start: %q, %v, %s", line, err, rest)
	}
}

func (l *linearProcess) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
	l.start()
}

func (l *linearProcess) end() {
	if err := l.cmd.Process.Kill(); err != nil {
		l.t.Error(err)
	}
	_ = l.cmd.Wait() // killed
}

func (l *linearProcess) client() func([][]string) (string, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	conn, err := net.Dial("unix", l.socket())
	if err != nil {
		l.t.Error(err)
		return func([][]string) (string, error) { return "", err }
	}
	in := resp.NewDecoder(conn)
	return func(commands [][]string) (reply string, err error) {
		defer func() {
			if err != nil {
				_ = conn.Close() // broken already
			}
		}()
		var out strings.Builder
		for _, args := range transaction(commands) {
			fmt.Fprintf(&out, "*%d\r\n", len(args))
			for _, a := range args {
				fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(a), a)
			}
		}
		if _, err := io.WriteString(conn, out.String()); err != nil {
			return "", err
		}
		return replies(in.Read, commands)
	}
}

// TestLinearizableProcess is the same with processes, killed by the system.
func TestLinearizableProcess(t *testing.T) {
	n := max(*linearHistories/10, 1)
	if testing.Short() {
		n = 2
	}
	seed := chance.Draw(*linearSeed)
	// A killed process leaves several commands of each client with an unknown outcome: with eight clients there
	// are sometimes too many orders to try.
	const callers, calls = 4, 24
	t.Logf("%d histories of killed processes; replay the commands with -linear.seed %d", n, seed)
	part := longTests.Start(t, 1, "linear.histories", "linear.seed").Part(t, 2)
	defer part.End()
	for i := range n {
		if !part.Take(i, n) {
			continue
		}
		untilJudged(t, seed+uint64(i), func(seed uint64) porcupine.CheckResult {
			l := &linearProcess{t: t, dir: t.TempDir(), sync: db.SyncMode(i % 3), transport: transports()[i%len(transports())]}
			l.start()
			result := linearHistory(t, l, seed, linearKilled, calls, 2)
			l.end()
			return result
		})
		if t.Failed() {
			return
		}
	}
}
