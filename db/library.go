package db

import "github.com/stavedb/stave/bitcask"

// A store keeps libraries of functions for the server that runs them: texts by name, apart from the keys, untouched by
// flushes. They are system records of the log (docs/FORMAT.md, section 13), so backups have them.

// ErrLibrary is how an export says that libraries of functions, which servers keep in a store, have lost a part.
var ErrLibrary = bitcask.ErrLibrary

func (t *Tx) putLibrary(name, text string) error {
	if err := t.checkWrite(); err != nil {
		return err
	}
	had := t.captured != nil && t.base.HasLibrary(name)
	err := t.base.PutLibrary(name, []byte(text))
	switch {
	case err != nil || t.captured == nil:
	case text == "" && !had:
	case text == "":
		t.captured.Add(t.ns, "FUNCTION", "DELETE", name)
	default:
		t.captured.Add(t.ns, "FUNCTION", "LOAD", "REPLACE", text)
	}
	return err
}

func (s *Store) libraries() (map[string]string, error) { return s.base.Libraries() }

func (s *Store) libraryChanges() uint64 { return s.base.SystemChanges() }
