// Package vfs is the one way by which the store reaches files.
//
// [FS] and [File] are the few operations an append-only store needs. There are two file systems, [OS], which is the
// operating system's, and [Mem], which lives in memory, is deterministic and lists the handles that were left open.
// Package internal/test/vfstest wraps them for tests.
//
// # What a caller must know
//
// Nothing is durable because a call returned. [File.Sync] makes a file's bytes and size durable, but not its name;
// names (made, renamed, linked or removed) become durable by [FS.SyncDir] of their directory. To publish a file, sync
// it, rename it, and sync the directory, in that order.
//
// Names are paths of the operating system. Symbolic links, pipes and devices are refused as the last element of a name
// ([ErrNotRegular]): another program that can write into a store directory must not make the store write elsewhere, or
// hang in open. New files have mode 0600 and new directories 0700: only their owner reads them.
//
// Everything here is safe for concurrent use. Using a closed handle gives an error that is [io/fs.ErrClosed]; a missing
// file gives one that is [io/fs.ErrNotExist], a file in the way one that is [io/fs.ErrExist].
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// File is an open regular file.
type File interface {
	// ReadAt fills p from offset off. Fewer bytes than len(p) come with an error, [io.EOF] at the end of the file.
	io.ReaderAt
	// WriteAt writes p at offset off, extending the file if need be. Fewer bytes than len(p) come with an error; after
	// one, any first part of p may be in the file, whatever the count says.
	io.WriterAt
	// Truncate makes the file size bytes long, cutting it or adding zeros.
	Truncate(size int64) error
	// Sync makes the bytes and the size durable. After an error it is unknown what is durable, and another Sync that
	// succeeds says nothing about bytes written before the failed one: the kernel may have dropped them.
	Sync() error
	// Size returns the length in bytes.
	Size() (int64, error)
	io.Closer
}

// Mapper is what a [File] is as well if it can be mapped into memory. Ask with a type assertion.
type Mapper interface {
	// Map maps the first length bytes of the file, shared and read-only. length may exceed the size: bytes written
	// later show up in the mapping. Touching a page wholly beyond the end of the file raises a memory fault, which the
	// caller turns into an error ([runtime/debug.SetPanicOnFault]). The mapping outlives Close.
	Map(length int) ([]byte, error)
	// Unmap releases a mapping made by Map of the same file, also after Close. The slice must not be touched again.
	Unmap(mapping []byte) error
	// Resident reports whether a part of a mapping is in memory, so that touching it waits for no disk. A page may be
	// evicted a moment later. Systems that cannot tell say true. Unless pages is nil, it learns which pages are: the
	// part then begins with a page, and if the answer is no, bit i of pages stands for its i-th ResidentUnit bytes.
	Resident(part []byte, pages *ResidentPages) bool
}

// WriteBacker is what a [File] is as well if the operating system can be asked to begin writing to the disk. Ask with a
// type assertion.
type WriteBacker interface {
	// WriteBack asks that n bytes from off be written to the disk soon, so that a Sync later has less to wait for. It
	// promises nothing, which is why it returns nothing.
	WriteBack(off, n int64)
}

// Mode says how [FS.Open] opens a file.
type Mode int

// The modes of [FS.Open].
const (
	ReadOnly  Mode = iota // An existing file, for reading.
	ReadWrite             // An existing file, for reading and writing.
	Create                // A new file, for reading and writing; it must not exist.
)

// FS is a file system. Rename, Remove and Link are about files.
type FS interface {
	// Open opens or creates a regular file. The name of a created file is not durable before SyncDir.
	Open(name string, mode Mode) (File, error)
	// List returns the base names of everything in dir, sorted.
	List(dir string) ([]string, error)
	// Remove removes the name of a file. Open handles and mappings stay usable. It may come back after a power cut
	// until SyncDir.
	Remove(name string) error
	// Rename gives a file a new name and replaces a file of that name, atomically. Until SyncDir a power cut may leave
	// either state; it may also leave the new name on bytes that were not synced before.
	Rename(oldname, newname string) error
	// Link gives a file one more name, which must be free. The names are equals afterwards.
	Link(oldname, newname string) error
	// MkdirAll makes dir and its missing parents; an existing directory is fine. Durable by SyncDir of each parent.
	MkdirAll(dir string) error
	// RenameDir gives a directory a new name in the same parent, atomically. An empty directory that has it is
	// replaced; anything else in the way is an error. Durable by SyncDir of the parent. Open handles of files in it
	// stay usable; on Windows there may be none.
	RenameDir(oldname, newname string) error
	// RemoveDir removes an empty directory. It may come back after a power cut until SyncDir of its parent.
	RemoveDir(dir string) error
	// SyncDir makes the names in dir durable: all creations, renames, links and removals that have returned.
	SyncDir(dir string) error
	// Lock takes the exclusive advisory lock of the named file, which is made if missing, without waiting: if another
	// process or another Lock of this process holds it, the error is a [*LockedError]. The lock ends with Close or with
	// the process. The file stays: removing it would let two processes lock two files of one name.
	Lock(name string) (io.Closer, error)
}

// CannotLink reports whether [FS.Link] failed because these two names cannot be of one file, whoever tries again: the
// directories are on different file systems, or on one that has no links, allows no more of them, or allows them to the
// owner only.
func CannotLink(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || cannotLink(err)
}

// ErrNotRegular is the cause when a name stands for a symbolic link, directory, pipe, socket or device.
var ErrNotRegular = errors.New("not a regular file")

// ErrLocked is what [FS.Lock] fails with while another process or store holds the lock; the error is a [*LockedError].
var ErrLocked = errors.New("locked")

// LockedError names the holder of a lock. errors.Is(err, [ErrLocked]) holds for it.
type LockedError struct {
	Name   string // Of the lock file.
	Holder string // "pid 812 (stave serve)" as the holder wrote it, or "" if it wrote nothing readable.
}

// Error names the lock file and its holder.
func (e *LockedError) Error() string {
	if e.Holder == "" {
		return e.Name + ": locked by another process"
	}
	return e.Name + ": locked by " + e.Holder
}

// Is reports whether target is [ErrLocked].
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// maxHolder bounds in bytes the text that is written to and read from a lock file.
const maxHolder = 128

// holderText is what a lock file says while this process holds it: "pid command". Only the program's base name and a
// plain subcommand go in; other arguments may hold secrets.
func holderText(pid int, args []string) string {
	text := strconv.Itoa(pid)
	if len(args) > 0 {
		text += " " + filepath.Base(args[0])
	}
	if len(args) > 1 && args[1] != "" && strings.Trim(args[1], "abcdefghijklmnopqrstuvwxyz-") == "" {
		text += " " + args[1]
	}
	return text[:min(len(text), maxHolder-1)] + "\n"
}

// parseHolder turns the text of a lock file into "pid N (command)". Whatever is not printable ASCII is dropped: the
// text comes from another process and ends up on a terminal.
func parseHolder(text []byte) string {
	line, _, _ := strings.Cut(string(text), "\n")
	line = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, line)
	pid, command, _ := strings.Cut(line, " ")
	if n, err := strconv.Atoi(pid); err != nil || n <= 0 {
		return ""
	}
	if command == "" {
		return "pid " + pid
	}
	return "pid " + pid + " (" + command + ")"
}
