package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/internal/resp"
)

// What clients do to a group while it is hurt, and what they know of it. Each key has one writer, which writes greater and greater
// numbers, or appends them to a list. So a key may never show a number that is less than one that anybody has seen, or that
// was acknowledged, before the command was sent.

const (
	writers    = 6
	readers    = 6
	keysOfEach = 100
	listOfEach = 2
)

// number is a key that holds one.
type number struct {
	name  string
	known atomic.Int64 // acknowledged, or seen
	tried atomic.Int64 // sent
}

// list is a key that numbers are appended to. It is its writer's until the end.
type list struct {
	name         string
	tried        int64
	acknowledged []int64
}

// load is all of that.
type load struct {
	r       *rig
	numbers [][]*number // by writer
	lists   [][]*list

	acknowledged, unknown, refused, read, readPlain atomic.Int64
	inFlight                                        []*atomic.Pointer[process] // by writer: who has been sent a write, and has not answered

	mu      sync.Mutex // guards the rest
	since   time.Time  // when watch was called
	answers time.Time  // when the first write was acknowledged that was sent later
}

func newLoad(r *rig) *load {
	l := &load{r: r}
	for w := range writers {
		l.numbers, l.lists, l.inFlight = append(l.numbers, nil), append(l.lists, nil), append(l.inFlight, new(atomic.Pointer[process]))
		for i := range keysOfEach {
			l.numbers[w] = append(l.numbers[w], &number{name: fmt.Sprintf("n%d:%d", w, i)})
		}
		for i := range listOfEach {
			l.lists[w] = append(l.lists[w], &list{name: fmt.Sprintf("l%d:%d", w, i)})
		}
	}
	return l
}

// run has all clients work until ctx ends.
func (l *load) run(ctx context.Context, seed uint64) {
	var running sync.WaitGroup
	for w := range writers {
		c := newCaller(l.r, seed+uint64(w))
		running.Go(func() {
			defer c.close()
			for ctx.Err() == nil {
				l.write(c, w)
			}
		})
	}
	for i := range readers {
		c := newCaller(l.r, seed+writers+uint64(i))
		running.Go(func() {
			defer c.close()
			for ctx.Err() == nil {
				w := c.rng.IntN(writers)
				if l.look(c, l.numbers[w][c.rng.IntN(keysOfEach)]); c.rng.IntN(50) == 0 {
					c.next() // perhaps one that was the primary
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	running.Wait()
}

// write does what a writer does next: a number, several at once, an element of a list, or a look at one of its numbers.
func (l *load) write(c *caller, w int) {
	switch p := c.rng.IntN(10); {
	case p < 2:
		l.look(c, l.numbers[w][c.rng.IntN(keysOfEach)])
	case p < 4:
		l.push(c, w, l.lists[w][c.rng.IntN(listOfEach)])
	case p < 8:
		l.set(c, w, 1)
	default:
		l.set(c, w, 2+c.rng.IntN(20))
	}
}

// send sends writes, and counts what has become of them.
func (l *load) send(c *caller, w int, commands [][]string) []resp.Reply {
	sent := time.Now()
	l.inFlight[w].Store(c.at)
	replies, err := c.do(commands...)
	l.inFlight[w].Store(nil)
	for _, reply := range replies {
		switch {
		case reply.Err() == nil:
			l.acknowledged.Add(1)
			l.served(sent)
		case wasNotDone(reply):
			l.refused.Add(1)
		default:
			l.unknown.Add(1)
		}
	}
	if !errors.Is(err, errNotConnected) {
		l.unknown.Add(int64(len(commands) - len(replies)))
	}
	return replies
}

// served notes that a write was acknowledged, and when it was sent.
func (l *load) served(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answers.IsZero() && sent.After(l.since) {
		l.answers = time.Now()
	}
}

// watch begins to wait for a write that is sent from now on.
func (l *load) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since, l.answers = time.Now(), time.Time{}
}

// gap returns how long after watch a write was acknowledged, 0 for not yet.
func (l *load) gap() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answers.IsZero() {
		return 0
	}
	return max(l.answers.Sub(l.since), 1)
}

// wasNotDone reports whether a reply says so.
func wasNotDone(reply resp.Reply) bool {
	code, _, _ := strings.Cut(reply.Err().Error(), " ")
	return slices.Contains([]string{"READONLY", "CLUSTERDOWN", "NOREPLICAS", "LOADING", "MASTERDOWN"}, code)
}

func (l *load) set(c *caller, w, n int) {
	var commands [][]string
	var keys []*number
	var values []int64
	for range n {
		k := l.numbers[w][c.rng.IntN(keysOfEach)]
		v := k.tried.Add(1)
		keys, values = append(keys, k), append(values, v)
		commands = append(commands, []string{"SET", k.name, strconv.FormatInt(v, 10)})
	}
	replies := l.send(c, w, commands)
	for i, reply := range replies {
		if reply.Err() == nil {
			raise(&keys[i].known, values[i])
		}
	}
}

func (l *load) push(c *caller, w int, k *list) {
	k.tried++
	replies := l.send(c, w, [][]string{{"RPUSH", k.name, strconv.FormatInt(k.tried, 10)}})
	if len(replies) == 1 && replies[0].Err() == nil {
		k.acknowledged = append(k.acknowledged, k.tried)
	}
}

func raise(a *atomic.Int64, to int64) {
	for {
		is := a.Load()
		if is >= to || a.CompareAndSwap(is, to) {
			return
		}
	}
}

// look reads a number: by GETEX, which no member executes but the primary, or by GET between two of these. (ROLE may still say
// master when a member is about to follow another one.)
func (l *load) look(c *caller, k *number) {
	known := k.known.Load()
	commands, at := [][]string{{"GETEX", k.name}}, 0
	if c.rng.IntN(2) == 0 {
		commands, at = [][]string{{"GETEX", "none"}, {"GET", k.name}, {"GETEX", "none"}}, 1
	}
	asked := c.at
	replies, err := c.do(commands...)
	if err != nil || slices.ContainsFunc(replies, isError) {
		return
	}
	l.readPlain.Add(int64(at))
	l.read.Add(1)
	v := int64(0)
	if !replies[at].Null {
		if v, err = strconv.ParseInt(string(replies[at].Text), 10, 64); err != nil {
			l.r.t.Errorf("%s is %q", k.name, replies[at].Text)
		}
	}
	if tried := k.tried.Load(); v < known || v > tried {
		l.r.t.Errorf("%s shows that %s is %d (%v); it was %d before, and %d was written last", asked.id, k.name, v, commands[at], known, tried)
	}
	raise(&k.known, v)
}

func isError(reply resp.Reply) bool { return reply.Err() != nil }

// check reads all keys when nobody writes, from the primary, and wants the others to have the same.
func (l *load) check() {
	r := l.r
	r.t.Helper()
	r.awaitAll()
	c := newCaller(r, 99)
	defer c.close()
	lost := 0
	for w := range writers {
		for _, k := range l.numbers[w] {
			text := l.final(c, k.name, []string{"GETEX", k.name})
			v, _ := strconv.ParseInt(text, 10, 64)
			if known, tried := k.known.Load(), k.tried.Load(); v < known || v > tried {
				lost++
				r.t.Errorf("%s is %q, and %d was acknowledged or seen, %d written last", k.name, text, known, tried)
			}
		}
		for _, k := range l.lists[w] {
			lost += l.checkList(c, k)
		}
	}
	for _, p := range r.members {
		l.compare(c, p)
	}
	r.t.Logf("%d writes acknowledged, %d without an answer that says what became of them, %d refused, %d reads (%d by GET); %d lost", l.acknowledged.Load(), l.unknown.Load(), l.refused.Load(), l.read.Load(), l.readPlain.Load(), lost)
}

// final is the reply of the primary, sooner or later.
func (l *load) final(c *caller, what string, command []string) (text string) {
	l.r.t.Helper()
	l.r.eventually(what+" is read", func() bool {
		replies, err := c.do(command)
		if err != nil || replies[0].Err() != nil {
			return false
		}
		text = string(replies[0].Text)
		return true
	})
	return text
}

// checkList fails the test unless a list has each acknowledged number once, in order, and no number that was not sent. It returns how many
// are missing.
func (l *load) checkList(c *caller, k *list) (lost int) {
	var items []resp.Reply
	l.r.eventually(k.name+" is read", func() bool {
		replies, err := c.do([]string{"GETEX", k.name + ":none"}, []string{"LRANGE", k.name, "0", "-1"})
		if err != nil || replies[0].Err() != nil || replies[1].Err() != nil {
			return false
		}
		items = replies[1].Items
		return true
	})
	has := map[int64]bool{}
	last := int64(0)
	for _, item := range items {
		v, err := strconv.ParseInt(string(item.Text), 10, 64)
		if err != nil || v <= last || v > k.tried {
			l.r.t.Errorf("%s has %q after %d, and %d was appended last", k.name, item.Text, last, k.tried)
			return 1
		}
		has[v], last = true, v
	}
	for _, v := range k.acknowledged {
		if !has[v] {
			lost++
			l.r.t.Errorf("%s lacks %d, which was acknowledged", k.name, v)
		}
	}
	return lost
}

// compare wants a member to have what the primary has, when it has caught up.
func (l *load) compare(c *caller, p *process) {
	l.r.t.Helper()
	one := &caller{r: &rig{t: l.r.t, members: []*process{p}}, rng: rand.New(rand.NewPCG(1, 1)), at: p}
	defer one.close()
	for w := range writers {
		var commands [][]string
		for _, k := range l.numbers[w] {
			commands = append(commands, []string{"GET", k.name})
		}
		for _, k := range l.lists[w] {
			commands = append(commands, []string{"LRANGE", k.name, "0", "-1"})
		}
		var want, got []resp.Reply
		l.r.eventually("the primary is read", func() bool {
			replies, err := c.do(slices.Concat([][]string{{"GETEX", "none"}}, commands)...)
			if err != nil || slices.ContainsFunc(replies, isError) {
				return false
			}
			want = replies[1:]
			return true
		})
		differs := ""
		l.r.eventuallyOr(p.id+" has what the primary has", func() bool {
			replies, err := one.do(commands...)
			if err != nil {
				return false
			}
			got = replies
			for i := range want {
				if differs = ""; fmt.Sprint(want[i]) != fmt.Sprint(got[i]) {
					differs = fmt.Sprintf("%v: %.200s, not %.200s", commands[i], fmt.Sprint(got[i]), fmt.Sprint(want[i]))
					return false
				}
			}
			return true
		}, func() string { return differs })
	}
}
