package db

import "github.com/stavedb/stave/bitcask"

// A store keeps libraries of functions for the server that runs them: texts by name, apart from the keys, untouched by
// flushes. They are system records of the log (docs/FORMAT.md, section 13), so backups have them.

// Limits of libraries.
const (
	// MaxLibrary is the length of the longest library in bytes.
	MaxLibrary = bitcask.MaxLibrary
	// MaxLibraryName is the length of the longest name of a library in bytes.
	MaxLibraryName = bitcask.MaxLibraryName
)

var (
	// ErrLibrary is returned by Store.Libraries for a library of which a part was lost.
	ErrLibrary = bitcask.ErrLibrary
	// ErrTooLarge is returned by Tx.PutLibrary for a name or a text over its limit, and for one library too many.
	ErrTooLarge = bitcask.ErrTooLarge
)

// PutLibrary keeps the text of a library under a name, in place of one that was there; an empty text deletes it.
// Store.Libraries returns it once the transaction is committed. It fails with ErrTooLarge for a name or a text over its
// limit, and if there are too many. O(n), n being the length of the text and the number of libraries.
func (t *Tx) PutLibrary(name, text string) error {
	if err := t.checkWrite(); err != nil {
		return err
	}
	return t.base.PutLibrary(name, []byte(text))
}

// Libraries returns the texts of all libraries by name. A library that has lost a part, which only damage can bring
// about, has an empty text and is named in an error that is ErrLibrary; the others are returned with it. It locks
// nothing, and may be called within a transaction, whose own changes it does not show. O(n), n being the length of all
// texts.
func (s *Store) Libraries() (map[string]string, error) { return s.base.Libraries() }

// LibraryChanges returns a number that grows when a library is put or deleted: while it stays the same, so do they. It
// may grow without such a change.
func (s *Store) LibraryChanges() uint64 { return s.base.SystemChanges() }
