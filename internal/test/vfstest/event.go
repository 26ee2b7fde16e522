package vfstest

import (
	"fmt"
	"strings"
)

// Op is a kind of operation on a file system or file.
type Op uint8

// The operations that [Fault] can make fail and [Recorder] records.
const (
	OpOpen      Op = iota + 1 // FS.Open of an existing file
	OpCreate                  // FS.Open with Create
	OpList                    // FS.List
	OpRemove                  // FS.Remove
	OpRename                  // FS.Rename
	OpLink                    // FS.Link
	OpMkdir                   // FS.MkdirAll
	OpRenameDir               // FS.RenameDir
	OpRemoveDir               // FS.RemoveDir
	OpSyncDir                 // FS.SyncDir
	OpLock                    // FS.Lock
	OpUnlock                  // Close of what FS.Lock returned
	OpRead                    // File.ReadAt
	OpWrite                   // File.WriteAt
	OpTruncate                // File.Truncate
	OpSync                    // File.Sync
	OpSize                    // File.Size
	OpClose                   // File.Close
	OpMap                     // Mapper.Map
	OpMark                    // Recorder.Mark; no operation
)

var opNames = [...]string{
	OpOpen: "open", OpCreate: "create", OpList: "list", OpRemove: "remove", OpRename: "rename", OpLink: "link",
	OpMkdir: "mkdir", OpRenameDir: "rename-dir", OpRemoveDir: "remove-dir", OpSyncDir: "sync-dir", OpLock: "lock", OpUnlock: "unlock", OpRead: "read", OpWrite: "write",
	OpTruncate: "truncate", OpSync: "sync", OpSize: "size", OpClose: "close", OpMap: "map", OpMark: "mark",
}

// String returns the operation's name, such as "sync-dir".
func (o Op) String() string {
	if int(o) < len(opNames) && opNames[o] != "" {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// Event is one operation: about to be done when a [Rule] sees it, done when a [Recorder] has kept it.
type Event struct {
	Op   Op
	Name string // The file or directory; for OpMark the text.
	To   string // OpRename, OpLink, OpRenameDir: the new name.
	Off  int64  // OpRead, OpWrite: the offset. OpTruncate: the new size.
	Len  int    // OpRead, OpWrite, OpMap: the bytes asked for.

	// The rest is known to a Recorder only.

	// File identifies files through renames and links: handles and names of one file have one number, from 1, given in
	// the order in which files are first met. A file that replaced another one of its name has its own. 0 for
	// directories. Names that were links of one file before recording began count as different files.
	File int
	Data []byte // OpWrite: a copy of all the bytes asked for, also if fewer were written.
	N    int    // OpRead, OpWrite: the bytes done. After a failed write more of Data may be in the file.
	// Covers is for OpSync and OpSyncDir: the events before this index were done when the sync began, so that they, as
	// far as they are its file's or directory's, are durable once this event is in the log. Later ones may not be.
	Covers int
	Err    error // The error that the caller got.
}

// String returns the event as one line of a golden trace: "write db/000000001.data 0+155".
func (e Event) String() string {
	var b strings.Builder
	b.WriteString(e.Op.String() + " " + e.Name)
	switch e.Op {
	case OpRead, OpWrite:
		fmt.Fprintf(&b, " %d+%d", e.Off, e.Len)
	case OpTruncate:
		fmt.Fprintf(&b, " %d", e.Off)
	case OpMap:
		fmt.Fprintf(&b, " %d", e.Len)
	case OpRename, OpLink, OpRenameDir:
		b.WriteString(" -> " + e.To)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, " (%v)", e.Err)
	}
	return b.String()
}
