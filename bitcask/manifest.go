package bitcask

import (
	"encoding/binary"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/internal/vfs"
)

// lockedManifest is the manifest of a store. Open has it for itself; once the store writes mu guards all of it but
// Store and Seed, which never change. Close, the last to use it, needs no lock.
type lockedManifest struct {
	mu sync.Mutex // also held for changes of Store.segments; taken within the log's lock
	*manifest.Manifest
	noted   atomic.Uint32      // features that are on disk, for need, which does not wait for mu's syncs then
	opening uint64             // this one, for marks; does not change once the store writes
	past    *manifest.Manifest // openings before it, for reached, which does not wait for mu's syncs; nil: all are above
}

// logEdit appends an edit, durably.
func (m *lockedManifest) logEdit(typ byte, body []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Log(typ, body)
}

// need sets a feature bit before it is used. After an error that may have left the manifest in doubt the store must
// refuse writes.
func (m *lockedManifest) need(f manifest.Features) error {
	if manifest.Features(m.noted.Load())&f == f {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.Need(f)
	if err == nil {
		m.noted.Store(uint32(m.Features))
	}
	return err
}

// announces reports whether a feature bit is set.
func (m *lockedManifest) announces(f manifest.Features) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Has(f)
}

// recordCollision notes a hash that two keys have. An error is like need's.
func (m *lockedManifest) recordCollision(h uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Collided[h>>format.SpareHashBits] {
		return nil
	}
	if err := m.Log(manifest.EditCollision, binary.LittleEndian.AppendUint64(nil, h)); err != nil {
		return fmt.Errorf("noting two keys of one hash: %w", err)
	}
	return nil
}

// reached reports whether a log whose next record will have number next has given out the number of a mark in the
// mark's opening.
func (m *lockedManifest) reached(mark Mark, next uint64) bool {
	if m.past != nil {
		return gave(m.past, mark, next)
	}
	m.mu.Lock() // the background may note that the store is idle
	defer m.mu.Unlock()
	return gave(m.Manifest, mark, next)
}

// vouches reports whether it says that a segment was that long.
func (m *lockedManifest) vouches(is indexfile.Segment) bool {
	if si, sealed := m.Sealed[is.ID]; sealed {
		return is.Length <= si.Length
	}
	return m.ClosedID == is.ID && is.Length <= m.ClosedLen
}

// isNamed reports whether the name of its file still leads to it.
func (m *lockedManifest) isNamed() (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return vfs.HasName(m.File, filepath.Join(m.Dir, manifest.FileName))
}

// inherited is what a copy of the store inherits of it.
func (m *lockedManifest) inherited() *manifest.Manifest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inheritedLocked()
}

func (m *lockedManifest) inheritedLocked() *manifest.Manifest {
	return &manifest.Manifest{Store: m.Store, Seed: m.Seed, Features: m.Features, Collided: maps.Clone(m.Collided), Origins: slices.Clone(m.Origins)}
}

// ofCut is what loading a cut of the log wants to know of it, in memory.
func (m *lockedManifest) ofCut(fsys vfs.FS, list []commitlog.CutSegment, next uint64) *manifest.Manifest {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.inheritedLocked()
	c.FS, c.Dir, c.Sealed, c.NextID, c.MaxSeq, c.Openings = fsys, m.Dir, map[uint32]format.SealedInfo{}, m.NextID, next-1, slices.Clone(m.Openings)
	for _, sg := range list {
		if sg.Frames > 0 {
			c.Tail = append(c.Tail, sg.ID)
		} else {
			c.Sealed[sg.ID] = sg.Info()
		}
	}
	return c
}
