package bitcask

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/crc32"
	"github.com/stavedb/stave/bitcask/internal/system"
)

// Libraries are texts that a server keeps with the data, by name: libraries of functions. The store does not look into
// them. A library is one system record, or several where it is longer than one may be:
//
//	stave:library:{name}:{part} -> version u8 | parts u16 | crc u32 of the whole text | a part of the text
//
// The first part is 0. All parts are written in one commit, and each says how many there are and of which text: so the
// rest of a library that lost a part (see package repair) is recognized, and so is a mixture of two texts.

// Limits of libraries.
const (
	// MaxLibraryName is the length of the longest name of a library in bytes.
	MaxLibraryName = 200
	// MaxLibrary is the length of the longest library in bytes. How many there may be follows from MaxSystemRecords.
	MaxLibrary = maxParts * partSize

	maxParts = 64
	partSize = MaxSystemValue - system.LibraryHeader
)

// ErrLibrary is returned by Store.Libraries for a library that has lost a part.
var ErrLibrary = errors.New("stave: a library is not complete; put it again, or delete it")

// PutLibrary sets the text of a library, in the same commit as all else that the transaction does; an empty text
// deletes it. Store.Libraries returns it after the commit. Errors: ErrTooLarge for a name or a text over its limit, or
// too many records.
func (t *Tx) PutLibrary(name string, text []byte) error {
	switch {
	case !t.open:
		return ErrTxDone
	case !t.locks.write:
		return errReadTx
	case len(name) == 0 || len(name) > MaxLibraryName || len(text) > MaxLibrary:
		return fmt.Errorf("library %.40q of %d bytes: %w", name, len(text), ErrTooLarge)
	}
	begin := t.Savepoint()
	err := t.putLibrary(name, text)
	if err != nil {
		t.rollbackTo(begin)
	}
	return err
}

func (t *Tx) putLibrary(name string, text []byte) error {
	sum := crc32.ChecksumIEEE(text)
	parts := (len(text) + partSize - 1) / partSize
	for i := range parts {
		from, to := i*partSize, min((i+1)*partSize, len(text))
		value := make([]byte, 0, system.LibraryHeader+to-from)
		value = append(value, system.LibraryVersion)
		value = binary.LittleEndian.AppendUint16(value, uint16(parts))
		value = binary.LittleEndian.AppendUint32(value, sum)
		if err := t.PutSystem(system.LibraryRecord(name, i), append(value, text[from:to]...)); err != nil {
			return err
		}
	}
	for i := parts; i < maxParts; i++ { // what the text before had more, also if it had lost a part before
		if !t.hasSystem(system.LibraryRecord(name, i)) {
			continue
		}
		if err := t.PutSystem(system.LibraryRecord(name, i), nil); err != nil {
			return err
		}
	}
	return nil
}

// HasLibrary reports whether there is a library of that name, as the transaction sees it.
func (t *Tx) HasLibrary(name string) bool {
	return t.open && t.hasSystem(system.LibraryRecord(name, 0))
}

// hasSystem reports whether the transaction, or the store before it, may have a system record of a name.
func (t *Tx) hasSystem(name string) bool {
	if t.system { // it has put some
		there, _ := t.systemThere(name)
		return there
	}
	r, _ := t.s.system.Get(name)
	return len(r.Value) > 0
}

// Libraries returns the texts of all libraries by name. One that has lost a part has an empty text, and is named in an
// error that is ErrLibrary; the others are returned with it.
func (s *Store) Libraries() (map[string]string, error) {
	records := s.system.Copy()
	texts := map[string]string{}
	var broken []error
	for record := range records {
		name, _, ok := system.LibraryOf(record)
		if _, done := texts[name]; !ok || done {
			continue
		}
		text, whole := system.JoinLibrary(records, name)
		if texts[name] = text; !whole {
			broken = append(broken, fmt.Errorf("library %q: %w", name, ErrLibrary))
		}
	}
	return texts, errors.Join(broken...)
}

// SystemChanges counts the changes of system records since the store was opened: while it stays the same, so do they.
func (s *Store) SystemChanges() uint64 { return s.system.Changes.Load() }
