// Package files has what the rooms of a store do with any file: walk it in pieces, write it once more, undo a write
// that failed.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/internal/vfs"
)

// EachPiece reads length bytes of a file from an offset on, a piece after another.
func EachPiece(f vfs.File, from, length int64, fn func(b []byte, at int64) error) error {
	const piece = 1 << 20
	buf := make([]byte, max(min(piece, length), 0))
	for at := from; at < from+length; {
		b := buf[:min(int64(len(buf)), from+length-at)]
		if _, err := f.ReadAt(b, at); err != nil {
			return fmt.Errorf("reading at %d: %w", at, err)
		}
		if err := fn(b, at); err != nil {
			return err
		}
		at += int64(len(b))
	}
	return nil
}

// AllZeros reports whether a stretch of a file holds nothing but zeros.
func AllZeros(f vfs.File, from, length int64) (bool, error) {
	zeros := true
	err := EachPiece(f, from, length, func(b []byte, _ int64) error {
		zeros = zeros && OnlyZeros(b)
		return nil
	})
	return zeros, err
}

// OnlyZeros reports whether all bytes are zero.
func OnlyZeros(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// TrimZeros returns where the first size bytes of a file end without the zeros at their end. It looks through no more
// than most bytes and a piece.
func TrimZeros(f vfs.File, size, most int64) (end int64, err error) {
	const piece = 16 << 10
	buf := make([]byte, min(piece, size))
	for end = size; end > 0 && size-end <= most; {
		b := buf[:min(piece, end)]
		if _, err := f.ReadAt(b, end-int64(len(b))); err != nil && err != io.EOF {
			return 0, fmt.Errorf("reading at %d: %w", end-int64(len(b)), err)
		}
		rest := len(bytes.TrimRight(b, "\x00"))
		end -= int64(len(b) - rest)
		if rest > 0 {
			break
		}
		clear(buf)
	}
	return end, nil
}

// WriteAgain writes what stands from an offset to the end of a file once more.
// The sync of a process that came before may have failed: the kernel then calls
// the bytes clean that it could not write, and no later sync writes them, but they
// are still there to be read.
func WriteAgain(f vfs.File, from, end int64) error {
	err := EachPiece(f, from, end-from, func(b []byte, at int64) error {
		_, err := f.WriteAt(b, at)
		return err
	})
	if err != nil {
		return fmt.Errorf("writing again what may not be on disk: %w", failure.Retryable(err))
	}
	return nil
}

// TruncateTo removes what a failed write may have left after size.
func TruncateTo(f vfs.File, size int64, cause error) error {
	if err := f.Truncate(size); err != nil || !failure.IsTransient(cause) {
		return errors.Join(cause, err)
	}
	return failure.NewRetryable(cause)
}

// SyncNames makes the name of a directory durable, and the names of those above it: what is synced in it would be lost
// with them. The process that made them may have been killed before it synced them. A directory that may not be read
// was made by another user.
func SyncNames(fsys vfs.FS, dir string) error {
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil
		}
		if err := fsys.SyncDir(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
}

// diskSector is what a disk writes whole or not at all, in bytes.
const diskSector = 512

// LostSector reports whether a power cut explains where the bytes of a file, at an offset, begin to differ from those
// that were to be written: the sector has none of them.
func LostSector(is, was []byte, offset int64) bool {
	i := 0
	for i < len(is) && is[i] == was[i] {
		i++
	}
	from := (offset+int64(i))/diskSector*diskSector - offset
	return i < len(is) && OnlyZeros(is[max(from, 0):min(from+diskSector, int64(len(is)))])
}
