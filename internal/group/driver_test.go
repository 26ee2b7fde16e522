package group_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/group/grouptest"
	"github.com/stavedb/stave/internal/test/chance"
)

// memory is a service in this process. Some of its answers are lost, and some swaps are carried out later.
type memory struct {
	mu      sync.Mutex // guards the rest
	r       *rand.Rand
	record  group.Versioned
	changed chan struct{} // closed at the next change
	isDown  bool
}

func newMemory(t *testing.T) *memory {
	return &memory{r: chance.Rand(t), changed: make(chan struct{})}
}

// sometime is a moment between now and the most.
func (m *memory) sometime(most time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Duration(m.r.Int64N(int64(most)))
}

// fails is to be called with the lock held.
func (m *memory) fails() bool { return m.r.IntN(10) == 0 }

func (m *memory) setDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isDown = down
}

func (m *memory) Read(ctx context.Context) (group.Versioned, error) {
	time.Sleep(m.sometime(3 * time.Millisecond))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isDown || m.fails() {
		return group.Versioned{}, errors.New("no answer")
	}
	return m.record, ctx.Err()
}

func (m *memory) Swap(ctx context.Context, s group.Swap) (group.Versioned, error) {
	time.Sleep(m.sometime(3 * time.Millisecond))
	m.mu.Lock()
	fails := m.isDown || s.If > 0 && m.fails()
	m.mu.Unlock()
	switch {
	case fails:
		time.AfterFunc(m.sometime(300*time.Millisecond), func() { m.swap(s) })
		return group.Versioned{}, errors.New("no answer")
	default:
		return m.swap(s), ctx.Err()
	}
}

func (m *memory) swap(s group.Swap) group.Versioned {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record.Version == s.If && !m.isDown {
		m.record = group.Versioned{Version: s.If + 1, Record: s.Record}
		close(m.changed)
		m.changed = make(chan struct{})
	}
	return m.record
}

func (m *memory) Watch(ctx context.Context, fn func(group.Versioned)) {
	for {
		m.mu.Lock()
		v, changed := m.record, m.changed
		m.mu.Unlock()
		fn(v)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		time.Sleep(m.sometime(3 * time.Millisecond))
	}
}

// TestDriver: members that are killed and come back lose nothing that was acknowledged.
func TestDriver(t *testing.T) {
	g := grouptest.Start(t, newMemory(t))
	g.KillSome(4 * time.Second)
	g.Check()
}

// TestDriverWithoutService: while the service does not answer a primary goes on, and nobody takes over from one that is gone.
func TestDriverWithoutService(t *testing.T) {
	service := newMemory(t)
	g := grouptest.Start(t, service)
	for takes := false; !takes; { // at that moment a member may not be in sync, on a machine that stalls
		service.setDown(false)
		g.AwaitWrite()
		service.setDown(true)
		time.Sleep(50 * time.Millisecond) // until all know what has been swapped
		takes = slices.ContainsFunc(g.Drivers(), func(d *group.Driver) bool {
			now := d.State()
			return now.TakesWrites && len(now.Known.InSync) == 3
		})
	}
	g.AwaitWrite()
	primary := g.Primary()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if primary.State().LeaseEnd > group.Now() {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatal("the primary serves no reads")
		}
	}
	g.KillPrimary()
	for began := time.Now(); time.Since(began) < time.Second; time.Sleep(time.Millisecond) {
		for _, d := range g.Drivers() {
			if now := d.State(); now.IsPrimary {
				t.Fatalf("a member takes over though it cannot know the record: %+v", now)
			}
		}
	}
	service.setDown(false)
	g.Check()
}

// TestDriverTakesOver: one of two that are left takes over, and a driver that has ended says nothing.
func TestDriverTakesOver(t *testing.T) {
	g := grouptest.Start(t, newMemory(t))
	g.AwaitWrite()
	before := g.KillPrimary()
	if now := before.State(); now.IsPrimary || now.TakesReads || now.TakesWrites || now.Gate != 0 || now.LeaseEnd != 0 {
		t.Errorf("a driver that has ended: %+v", now)
	}
	if after := g.Primary(); after.State().Known.Term <= before.State().Known.Term {
		t.Errorf("%+v takes over from %+v", after.State(), before.State())
	}
	g.Check()
}
