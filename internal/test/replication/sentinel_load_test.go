//go:build unix

package replication_test

import (
	"fmt"
	"sort"
	"strconv"
	"sync"
	"testing"
	"time"
)

// load are clients that follow the Sentinels, and write one new element after the other.
type load struct {
	group *group
	stop  chan struct{}
	work  sync.WaitGroup
	wait  string // the replicas that a client waits for

	mu        sync.Mutex
	acked     map[string][]string // elements by key, of which a client has had the reply
	confirmed map[string][]string // those of which WAIT has said that so many replicas have them
	gap       time.Duration       // the longest time without a write, since it was set to 0
	last      time.Time           // of the last write
}

// startLoad starts so many clients, which ask for the acknowledgement of so many replicas after each write.
func startLoad(g *group, clients, replicas int) *load {
	l := &load{group: g, stop: make(chan struct{}), wait: strconv.Itoa(replicas), acked: map[string][]string{}, confirmed: map[string][]string{}, last: time.Now()}
	for i := range clients {
		l.work.Go(func() { l.run("w" + strconv.Itoa(i)) })
	}
	return l
}

// run is one client.
func (l *load) run(key string) {
	for n := 0; ; {
		select {
		case <-l.stop:
			return
		default:
		}
		port := l.group.masterPort(l.group.sentinels[n%len(l.group.sentinels)])
		c, err := connect(port, l.group.password, l.group.secure)
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			n++
			continue
		}
		n = l.write(c, key, n)
		c.Close()
	}
}

// write writes until something fails. The element after that is another one: whether a failed write has happened is not known.
func (l *load) write(c *caller, key string, n int) int {
	for ; ; n++ {
		select {
		case <-l.stop:
			return n
		default:
		}
		element := strconv.Itoa(n)
		replies, err := c.call([]string{"SADD", key, element})
		if err != nil || replies[0].IsError() {
			time.Sleep(20 * time.Millisecond)
			return n + 1
		}
		l.note(l.acked, key, element)
		replies, err = c.call([]string{"WAIT", l.wait, "300"})
		if err != nil {
			return n + 1
		}
		if text := replies[0].String(); text >= l.wait && !replies[0].IsError() {
			l.note(l.confirmed, key, element)
		}
	}
}

func (l *load) note(list map[string][]string, key, element string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list[key] = append(list[key], element)
	now := time.Now()
	l.gap, l.last = max(l.gap, now.Sub(l.last)), now
}

// takeGap returns the longest time without a write since it was called last.
func (l *load) takeGap() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	gap := max(l.gap, time.Since(l.last))
	l.gap = 0
	return gap
}

// count is how many writes were confirmed.
func (l *load) count() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range l.confirmed {
		n += len(list)
	}
	return n
}

// end ends the load.
func (l *load) end() {
	close(l.stop)
	l.work.Wait()
}

// missing are the elements that a node does not have, and how many there are in all.
func missing(n *member, lists map[string][]string) (lost []string, all int) {
	for key, list := range lists {
		held := map[string]bool{}
		for _, element := range n.ask("SMEMBERS", key).Items {
			held[string(element.Text)] = true
		}
		all += len(list)
		for _, element := range list {
			if !held[element] {
				lost = append(lost, key+" "+element)
			}
		}
	}
	sort.Strings(lost)
	return lost, all
}

// wantKept ends the load and compares what it has written with what the group has.
func (l *load) wantKept(t *testing.T) (summary string) {
	t.Helper()
	l.end()
	g := l.group
	g.awaitHealthy()
	m := g.master()
	lostAcked, acked := missing(m, l.acked)
	lostConfirmed, confirmed := missing(m, l.confirmed)
	if len(lostConfirmed) > 0 {
		t.Errorf("lost %d of %d writes that WAIT %s has confirmed: %.20q", len(lostConfirmed), confirmed, l.wait, lostConfirmed)
	}
	if confirmed == 0 {
		t.Error("no write was confirmed")
	}
	master := m.dial()
	for _, n := range g.nodes {
		if n == m {
			continue
		}
		replica := n.dial()
		awaitCaughtUp(t, master, replica)
		wantSame(t, master, replica)
	}
	return fmt.Sprintf("lost %d of %d acknowledged writes, %d of %d confirmed by WAIT %s", len(lostAcked), acked, len(lostConfirmed), confirmed, l.wait)
}
