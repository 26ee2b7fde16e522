package db

import (
	"fmt"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/merge"
)

// Stats are the figures of the store at one moment.
type Stats struct {
	bitcask.Stats
	Expired       uint64           `json:"expired"`        // keys reaped since Open
	ExpiredFields uint64           `json:"expired_fields"` // fields of hashes reaped since Open
	Evicted       uint64           `json:"evicted"`        // keys evicted since Open
	EntryBytes    int64            `json:"entry_bytes"`    // what Evict.Memory bounds
	Disk          DiskStats        `json:"disk"`           // what Evict.Disk bounds
	Namespaces    []NamespaceStats `json:"namespaces"`
	Merge         merge.Status     `json:"merge"`
	Dir           string           `json:"dir"`
	StoreID       string           `json:"store_id"`
	Archive       *ArchiveStatus   `json:"archive,omitempty"` // nil: the store is not archived
}

// DiskStats are the figures of Evict.Disk, in bytes, some hundredths of a second old; zero without that bound.
type DiskStats struct {
	Bound int64 `json:"bound"` // Evict.Disk, or less on a disk that has no more
	Used  int64 `json:"used"`  // by the directory
	Live  int64 `json:"live"`  // what it would take without garbage
}

// NamespaceStats are the figures of one namespace at one moment.
type NamespaceStats struct {
	Namespace    int   `json:"namespace"`
	Keys         int   `json:"keys"`
	Deadlines    int   `json:"deadlines"`
	TimedHashes  int   `json:"timed_hashes"` // hashes with fields that have a deadline
	AverageTTLms int64 `json:"average_ttl_ms"`
}

// The states of a store, in Stats.
const (
	StateOK     = bitcask.StateOK
	StateFull   = bitcask.StateFull
	StateFailed = bitcask.StateFailed
)

// SyncBuckets are the bounds of Stats.SyncTimes: see [bitcask.SyncTimes].
var SyncBuckets = bitcask.SyncBuckets

// SegmentInfo describes one file of the log.
type SegmentInfo = bitcask.SegmentInfo

// Segments lists the files of the log, oldest first.
func (s *Store) Segments() []SegmentInfo { return s.base.Segments() }

// Stats returns current figures.
func (s *Store) Stats() Stats {
	st := Stats{Stats: s.base.Stats(), Expired: s.counters.expired.Load(), ExpiredFields: s.counters.expiredFields.Load(),
		Evicted: s.counters.evicted.Load(), EntryBytes: s.evictable(), Merge: s.merger.Status(), Dir: s.base.Dir()}
	st.Disk.Used, st.Disk.Live, st.Disk.Bound = s.base.DirectoryBytes()
	st.StoreID = fmt.Sprintf("%x", s.base.StoreID())
	if s.archiver != nil {
		status := s.archiver.Status()
		st.Archive = &status
	}
	for _, ns := range s.base.Namespaces() {
		if s.hidesNamespace(ns) {
			continue
		}
		space := s.base.Space(ns)
		st.Namespaces = append(st.Namespaces, NamespaceStats{
			Namespace: ns, Keys: s.base.Len(ns), Deadlines: s.deadlines.Len(space), TimedHashes: s.fields.Len(space),
			AverageTTLms: s.deadlines.Average(space, s.clock.now()),
		})
	}
	return st
}
