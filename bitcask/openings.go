package bitcask

import (
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/failure"
)

// opening is one life of a writer, from Open to Close or to its death. Whoever
// opens the store for writing draws an id and notes in the manifest from which
// sequence number on it writes. So an id and a number of that opening name one
// state of the log, for ever: copies of a directory, and a directory that was
// restored, go on under other ids. A number alone names as many states as there
// are copies.
type opening struct {
	id    uint64 // 0: none
	first uint64 // sequence number of its first record
}

const (
	openingSize = 8 + 8

	// maxOpenings is how many the manifest remembers. What names an older one, an
	// INDEX perhaps that was never worth replacing, is not believed any more.
	maxOpenings = 64
)

func (o opening) body() []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, o.id), o.first)
}

// addOpening applies an edit.
func (m *manifest) addOpening(body []byte) {
	m.openings = append(m.openings, opening{binary.LittleEndian.Uint64(body), binary.LittleEndian.Uint64(body[8:])})
	if n := len(m.openings) - maxOpenings; n > 0 {
		m.openings = slices.Delete(m.openings, 0, n)
	}
}

// noteOpening notes in the manifest that this writer gives the sequence numbers
// from here on. A full disk is no reason not to open: then there is no id, and
// nothing that this writer writes about the log will be believed.
func (s *Store) noteOpening() error {
	var id uint64
	for id == 0 {
		var b [8]byte
		if _, err := io.ReadFull(crand.Reader, b[:]); err != nil {
			return err
		}
		id = binary.LittleEndian.Uint64(b[:])
	}
	err := s.man.log(editOpening, opening{id, s.log.nextSeq}.body())
	if failure.IsRetryable(err) {
		s.opts.Logger.Warn("INDEX and TTL will not be of use: the manifest cannot note who writes them", "file", manifestName, "err", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("noting that the store is open: %w", err)
	}
	s.opening = id
	return nil
}

// gave reports whether the log has a record, or the place before its first one,
// to which an opening gave a sequence number: no later opening gave it again,
// after a crash or in the copy that this is.
func (m *manifest) gave(id, seq uint64) bool {
	i := slices.IndexFunc(m.openings, func(o opening) bool { return o.id == id })
	if i < 0 || id == 0 || seq+1 < m.openings[i].first {
		return false
	}
	return !slices.ContainsFunc(m.openings[i+1:], func(o opening) bool { return o.first <= seq })
}

// aging reports whether an opening is about to be forgotten.
func (m *manifest) aging(id uint64) bool {
	recent := m.openings[max(0, len(m.openings)-maxOpenings/2):]
	return !slices.ContainsFunc(recent, func(o opening) bool { return o.id == id })
}
