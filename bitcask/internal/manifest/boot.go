package manifest

import "github.com/stavedb/stave/internal/vfs"

// What is known of the last writer from its edit of type boot (EditBoot): whether there can have been a power cut since.

// Closed reports whether the last writer has closed the store: everything that it wrote is on disk.
func (m *Manifest) Closed() bool { return m.Booted && m.Boot == vfs.BootID{} }

// sameBoot reports whether there can be no power cut between the last writer and now: all that was ever written to the
// store's files is still there, short of a failed sync.
func (m *Manifest) sameBoot() bool { return m.Booted && m.Boot == m.Here && m.Here != vfs.BootID{} }

// NothingLost reports whether all of the log is there. Besides a writer that was killed that is one that has closed the
// store: the next one writes to the manifest first.
func (m *Manifest) NothingLost() bool { return m.Closed() || m.sameBoot() }
