package db

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/serverside/calls"
	"github.com/stavedb/stave/structures"
)

// A full synchronization with a master is loaded into namespaces that nobody reaches, the *shadows*, while the old data
// are read. Then one small commit exchanges the two (install). It also says where the store stands in the master's stream,
// and replaces the libraries of functions.
//
// What a crash leaves: the system record stave:loading says which namespaces are shadows, from before the first key in them
// until the commit that installs them. The next Open empties what it names. So there are the old data or the new, and never
// a mixture.

// spareNamespaces are after the shadows, for Tx.Swap to move keys through.
const spareNamespaces = 16

// shadows is the first of the shadows, one for each namespace.
func (s *Store) shadows() (from int, err error) {
	n := s.opts.Namespaces
	if from = bitcask.MaxNamespaces - spareNamespaces - n; from < n {
		return 0, fmt.Errorf("db: a replica can have %d namespaces, and Options.Namespaces is %d", (bitcask.MaxNamespaces-spareNamespaces)/2, n)
	}
	return from, nil
}

// encodeLoading is the value of stave:loading: the first shadow and their number, both u32.
func encodeLoading(from, n int) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(from)), uint32(n))
}

func decodeLoading(b []byte) (from, n int, ok bool) {
	if len(b) != 8 {
		return 0, 0, false
	}
	return int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:])), true
}

// hides reports whether a namespace is a shadow.
func (c *core) hidesNamespace(ns int) bool {
	loading := c.replica.shadow.Load()
	from, n := int(loading>>32), int(uint32(loading))
	return ns >= from && ns < from+n
}

// beginLoading makes empty shadows.
func (s *Store) beginLoading() error {
	from, err := s.shadows()
	if err != nil {
		return err
	}
	if err := s.dropLoaded(); err != nil {
		return err
	}
	n := s.opts.Namespaces
	return s.withAll(func(t *bitcask.Tx, _ *[]nsKey) (uint64, error) {
		for ns := from; ns < from+n; ns++ {
			if s.base.Len(ns) > 0 {
				return 0, fmt.Errorf("db: namespace %d holds keys, and is needed to load what a master sends: empty it", ns)
			}
		}
		if err := t.PutSystem(loadingName, encodeLoading(from, n)); err != nil {
			return 0, err
		}
		ticket, err := t.Commit()
		if err == nil {
			s.replica.shadow.Store(uint64(from)<<32 | uint64(n))
		}
		return ticket, err
	})
}

// dropLoaded empties the shadows, if there are some, and ends them.
func (s *Store) dropLoaded() error {
	if err := s.guard.check(); err != nil {
		return err
	}
	from, n, ok := decodeLoading(s.base.System(loadingName))
	if !ok {
		return nil
	}
	namespaces := make([]int, n)
	for i := range namespaces {
		namespaces[i] = from + i
	}
	// Two commits, for one that only empties namespaces may draw on the reserve of a full disk, which may well be full of them.
	err := s.withAll(func(t *bitcask.Tx, _ *[]nsKey) (uint64, error) {
		dropped, ticket, err := t.Flush(namespaces...)
		s.forgetSpaces(dropped)
		return ticket, err
	})
	if err != nil {
		return err
	}
	return s.withAll(func(t *bitcask.Tx, _ *[]nsKey) (uint64, error) {
		if err := t.PutSystem(loadingName, nil); err != nil {
			return 0, err
		}
		ticket, err := t.Commit()
		if err == nil {
			s.replica.shadow.Store(0)
		}
		return ticket, err
	})
}

// shadow returns the transaction in the shadow of a namespace.
func (t *Tx) shadow(namespace int) (*Tx, error) {
	from, err := t.store.shadows()
	if err == nil {
		_, err = t.Use(namespace) // checks it
	}
	if err != nil {
		return nil, err
	}
	return &Tx{txState: t.txState, ns: from + namespace}, nil
}

// install exchanges the namespaces with their shadows, replaces the libraries, and says where the store stands. Watches of
// keys that are there before or after it have changed, and waiters get what there is for them. O(number of namespaces), of
// libraries, and of keys that are watched.
func (s *Store) install(libraries map[string]string, o calls.Origin) error {
	from, err := s.shadows()
	if err != nil {
		return err
	}
	n := s.opts.Namespaces
	before, err := s.base.Libraries()
	if err != nil && len(before) == 0 {
		return err
	}
	return s.withAll(func(t *bitcask.Tx, noticed *[]nsKey) (uint64, error) {
		var concerned []int
		for ns := range n {
			if s.base.Len(ns) > 0 || s.base.Len(from+ns) > 0 {
				concerned = append(concerned, ns)
			}
		}
		keys := s.watchers.replaced(concerned, func(p nsKey) bool { return s.existsIn(t, p.ns, p.key) || s.existsIn(t, from+p.ns, p.key) })
		dropped, ticket, err := t.Install(func() error { return putInstalled(t, before, libraries, s.encodeOrigin(o)) }, from, n)
		if err == nil {
			*noticed = keys
			s.replica.shadow.Store(0)
		}
		s.forgetSpaces(dropped)
		s.notifyNamespaces(structures.EventSwapped, ticket, err, concerned...)
		return ticket, err
	})
}

// putInstalled are the records of an installation.
func putInstalled(t *bitcask.Tx, before, libraries map[string]string, origin []byte) error {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := libraries[name]; !stays {
			if err := t.PutLibrary(name, nil); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(libraries)) {
		if libraries[name] == before[name] {
			continue
		}
		if err := t.PutLibrary(name, []byte(libraries[name])); err != nil {
			return err
		}
	}
	if err := t.PutSystem(loadingName, nil); err != nil {
		return err
	}
	return t.PutSystem(originName, origin)
}

// flushWith is Flush of some namespaces in the commit that says where the store stands; none: of all.
func (s *Store) flushWith(o calls.Origin, namespaces ...int) error {
	return s.withAll(func(t *bitcask.Tx, noticed *[]nsKey) (uint64, error) {
		if len(namespaces) == 0 {
			namespaces = s.base.Namespaces()
		}
		dropped, ticket, err := t.FlushWith(func() error { return t.PutSystem(originName, s.encodeOrigin(o)) }, namespaces...)
		return s.flushed(dropped, ticket, err, noticed, namespaces)
	})
}

// swapWith is Swap in the commit that says where the store stands.
func (s *Store) swapWith(o calls.Origin, a, b int) error {
	if max(a, b) >= s.opts.Namespaces || min(a, b) < 0 {
		return ErrNamespace
	}
	return s.withAll(func(t *bitcask.Tx, noticed *[]nsKey) (uint64, error) {
		var keys []nsKey
		if a != b {
			keys = s.notifySwapped(t, a, b)
		}
		ticket, err := t.SwapWith(func() error { return t.PutSystem(originName, s.encodeOrigin(o)) }, a, b)
		if a != b && err == nil {
			*noticed = keys
			s.notifyNamespaces(structures.EventSwapped, ticket, err, a, b)
		}
		return ticket, err
	})
}

// forgetSpaces forgets what hangs on spaces that no namespace uses any more.
func (s *Store) forgetSpaces(dropped []uint32) {
	for _, space := range dropped {
		s.deadlines.DropNamespace(space)
		s.fields.DropNamespace(space)
		if s.ordered != nil {
			s.ordered.drop(space)
		}
	}
}

// replaced marks the watches of keys in namespaces that are about to be replaced as changed, as far as the key existed when
// it was added, or exists, and returns the awaited keys.
func (o *watchers) replaced(namespaces []int, exists func(nsKey) bool) (awaited []nsKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for p, watches := range o.watches {
		if !slices.Contains(namespaces, p.ns) {
			continue
		}
		there := exists(p)
		for w, existed := range watches {
			if existed || there {
				w.changed.Store(true)
			}
		}
	}
	for at := range o.queues {
		if slices.Contains(namespaces, at.ns) {
			awaited = append(awaited, at.nsKey)
		}
	}
	return awaited
}
