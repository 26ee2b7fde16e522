package db

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Operation is one call on a store, as reported to Options.Observe.
type Operation struct {
	// Name is that of the method, without package: "Hash.Put", "Store.Update". A page of an iterator counts as a call
	// of the iterator. What the store does by itself has the name of the method that does it: "Store.Expire" for each
	// key that the cycle reaps.
	Name      string
	Namespace int
	// Duration is from before the locks were taken until the call returned, the wait for the disk of Options.Sync
	// included.
	Duration time.Duration
	// Err is what the call failed with. A key that does not exist is no failure, so a Get that returns ErrNotFound has
	// none.
	Err error
}

// errPanicked is the error of an operation in which something panicked or ended its goroutine.
var errPanicked = errors.New("db: the call has panicked, or has ended its goroutine")

// observation is an operation in progress; nil: there is no observer.
type observation struct {
	op    Operation
	began time.Time
}

// observation begins one.
func (s *Store) observation() *observation {
	if s.opts.Observe == nil {
		return nil
	}
	return &observation{op: Operation{Name: s.names.ofCaller(), Namespace: s.ns}, began: time.Now()}
}

// observed ends one. Nothing is locked; a panic of Observe continues in the caller.
func (s *Store) observed(o *observation) {
	if o == nil {
		return
	}
	o.op.Duration = time.Since(o.began)
	s.guard.run(func() { s.opts.Observe(o.op) })
}

// methodNames remembers the names of methods by the stacks on which they were called.
type methodNames struct {
	mu  sync.RWMutex // guards all below
	all map[stack]string
}

type stack [12]uintptr

// maxStacks is how many stacks are remembered. The name of another one is looked up each time.
const maxStacks = 10_000

// ofCaller is the name of the outermost method of this package that the calling goroutine is in right now.
func (n *methodNames) ofCaller() string {
	var pcs stack
	count := runtime.Callers(3, pcs[:])
	n.mu.RLock()
	name, known := n.all[pcs]
	n.mu.RUnlock()
	if known {
		return name
	}
	name = methodOf(runtime.CallersFrames(pcs[:count]))
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[stack]string{}
	}
	if len(n.all) < maxStacks {
		n.all[pcs] = name
	}
	return name
}

// methodOf is the outermost exported method of this package among the frames of it that come first, or if there is none
// the outermost method.
func methodOf(frames *runtime.Frames) (name string) {
	const here = "github.com/stavedb/stave/db."
	exported := false
	for {
		f, more := frames.Next()
		method, ours := strings.CutPrefix(f.Function, here)
		if !ours {
			return name
		}
		parts := strings.Split(strings.NewReplacer("(*", "", ")", "").Replace(method), ".")
		if len(parts) >= 2 && !strings.HasSuffix(parts[0], "]") && !strings.HasPrefix(parts[0], "call") {
			public := parts[1][0] >= 'A' && parts[1][0] <= 'Z'
			if public || !exported {
				name, exported = parts[0]+"."+parts[1], public
			}
		}
		if !more {
			return name
		}
	}
}
