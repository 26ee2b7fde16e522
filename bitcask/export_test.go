package bitcask

import (
	"io"
	"math"

	"github.com/stavedb/stave/bitcask/internal/mergeselect"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// Lockless reports to tests whether gets of strings take no lock in this build.
const Lockless = lockFree

// LimitIndex lowers the limit of a collection; to be called without writers.
func (s *Store) LimitIndex(bytes int) {
	for _, sp := range s.spaces.Now.Load().ByID {
		sp.Dir.Limit(bytes)
	}
}

// LookingUp makes a rewrite look every entry up in the keydir.
func LookingUp(o RewriteOptions) RewriteOptions {
	o.liveScan = &mergeselect.Bounds{Worth: -1}
	return o
}

// SurveyingLittle makes a rewrite survey a few inputs at a time, a few slots of them with a lock held.
func SurveyingLittle(o RewriteOptions) RewriteOptions {
	o.liveScan = &mergeselect.Bounds{Bytes: 2000, Span: 3, Worth: math.MaxInt32, Hold: 3}
	return o
}

// HintBlocks returns how many blocks the hint of a segment has.
func (s *Store) HintBlocks(id uint32) (n int, err error) {
	hs, err := segment.OpenHint(s.opts.seam.FS, s.dir, s.segments.Load().Find(id))
	if err != nil {
		return 0, err
	}
	for ; err == nil; n++ {
		_, err = hs.Next()
	}
	if err != io.EOF {
		return 0, err
	}
	return n - 1, hs.Close()
}

// RewriteHint makes the hint of a segment anew without its i-th entry.
func (s *Store) RewriteHint(id uint32, i int) error {
	sg := s.segments.Load().Find(id)
	w, err := segment.NewHintWriter(s.opts.seam.FS, s.dir, sg)
	if err != nil {
		return err
	}
	for fr := segment.NewFrames(sg); ; {
		entries, err := fr.Next()
		if err == io.EOF {
			return w.Finish()
		}
		for k := range entries {
			if i--; i != -1 && err == nil {
				err = w.Add(&entries[k])
			}
		}
		if err != nil {
			return err
		}
	}
}

// Pinned lists the segments that merges have replaced and that a pin still holds.
func Pinned(s *Store) (names []string) {
	for _, sg := range s.pins.Gone() {
		names = append(names, sg.Name)
	}
	return names
}

// StripeOfKey returns the number of the stripe of a key.
func (s *Store) StripeOfKey(key string) int { return keydir.StripeOf(s.man.Seed.Hash(key)) }

// Unloaded returns how many stripes of the INDEX are still to be loaded.
func Unloaded(s *Store) int {
	if s.lazy == nil {
		return 0
	}
	return int(s.lazy.left.Load())
}

// LiveBytes returns the count of live bytes of each segment that holds records, by id.
func LiveBytes(s *Store) map[uint32]int64 {
	s.DrainDropped()
	live := map[uint32]int64{}
	for _, sg := range s.segments.Load().All() {
		if n := sg.LiveBytes.Load(); n != 0 {
			live[sg.ID] = n
		}
	}
	return live
}

// LoadSteadily has a store search its INDEX as if the background loaded it.
func LoadSteadily(s *Store) {
	if s.lazy != nil {
		s.lazy.steadily = true
	}
}

// LoadOrder returns the stripes that the background would load, in its order.
func LoadOrder(s *Store) (order []int) {
	var tried [keydir.Stripes]bool
	for i := s.lazy.next(&tried); i >= 0; i = s.lazy.next(&tried) {
		tried[i] = true
		order = append(order, i)
	}
	return order
}

// WalkWith is a walk whose windows have most strings.
func WalkWith(most int) *Walk { return &Walk{most: most} }
