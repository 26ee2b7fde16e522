package ttl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"github.com/stavedb/stave/internal/vfs"
)

// FileName is the name of the checkpoint in a store's directory.
const FileName = "TTL"

// tempName is the name of the checkpoint until it is complete.
const tempName = FileName + ".new"

// Write makes the file TTL in dir a checkpoint of d, replacing the previous one. The caller guarantees that d holds the
// result of all records up to the mark, that these are durable, and that d does not change during the call.
//
// What a crash or a power cut leaves:
//
//  1. While TTL.new is being written: the old checkpoint, and a leftover that the next Open for writing removes, or the next Write. It is never read.
//  2. After the sync of TTL.new: the same. Without this sync the rename could become durable before the bytes, and Read
//     would find damage: no deadline is lost, but the log is searched needlessly.
//  3. After the rename: the old or the new checkpoint, complete in either case.
//  4. After the sync of the directory: the new one. Without this sync the old one could reappear much later. It is correct
//     only together with all records after its sequence number, and a merge may have dropped some.
//
// After an error the old checkpoint is in place or, if the sync of the directory failed, either of the two.
func Write(fsys vfs.FS, dir string, storeID [16]byte, upTo Mark, d *Deadlines) error {
	name, temp := filepath.Join(dir, FileName), filepath.Join(dir, tempName)
	f, err := vfs.Temporary(fsys, temp)
	if err == nil {
		err = vfs.Publish(fsys, f, temp, name, writeTo(f, storeID, upTo, d))
	}
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("write the TTL file: %w", err)
	}
	return nil
}

// errChanged means that the deadlines changed during Write.
var errChanged = errors.New("the deadlines changed while they were written")

// writeTo writes the whole file.
func writeTo(f vfs.File, storeID [16]byte, upTo Mark, d *Deadlines) error {
	h := header{store: storeID, upTo: upTo}
	for _, sp := range *d.spaces.Load() {
		h.count += uint64(sp.count.Load())
	}
	head := h.encode()
	if _, err := f.WriteAt(head, 0); err != nil {
		return err
	}
	w := blockWriter{f: f, seed: headerSum(head), offset: headerSize}
	w.begin()
	count := uint64(0)
	err := d.each(func(e Entry) error {
		count++
		return w.add(e)
	})
	if err != nil {
		return err
	}
	if count != h.count {
		return errChanged
	}
	return w.flush()
}

// blockWriter collects entries and writes them in blocks.
type blockWriter struct {
	f      vfs.File
	seed   uint32 // The header's checksum.
	offset int64  // Of the unfinished block.
	block  []byte
}

func (w *blockWriter) begin() { w.block = append(w.block[:0], make([]byte, blockHeaderSize)...) }

// add adds an entry, and writes the block if it is full.
func (w *blockWriter) add(e Entry) error {
	if uint64(len(e.Key)) > math.MaxUint32-2*blockSize {
		return fmt.Errorf("a key of %d bytes has a deadline", len(e.Key))
	}
	w.block = appendEntry(w.block, e)
	if len(w.block) < blockSize {
		return nil
	}
	return w.flush()
}

// flush writes the unfinished block, if it has entries.
func (w *blockWriter) flush() error {
	if len(w.block) == blockHeaderSize {
		return nil
	}
	sealBlock(w.block, w.seed, w.offset)
	if _, err := w.f.WriteAt(w.block, w.offset); err != nil {
		return err
	}
	w.offset += int64(len(w.block))
	w.begin()
	return nil
}

// Read returns the entries of the file TTL in dir and the mark up to which they are complete. It checks the whole file
// before it returns anything, and allocates in proportion to the file's size, whatever the file says.
//
// The error is [io/fs.ErrNotExist] if there is no file, [ErrVersion] or [ErrForeign] if its format or store is another,
// a [*CorruptError] if it is damaged, and any other if it could not be read. I8: in each case the caller reads the
// deadlines from the log instead.
func Read(fsys vfs.FS, dir string, storeID [16]byte) (upTo Mark, entries []Entry, err error) {
	name := filepath.Join(dir, FileName)
	f, err := fsys.Open(name, vfs.ReadOnly)
	if err != nil {
		return upTo, nil, fmt.Errorf("read the TTL file: %w", err)
	}
	h, entries, err := readFrom(f, name, storeID)
	if cerr := f.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("read the TTL file: %w", cerr)
	}
	if err != nil {
		return upTo, nil, err
	}
	return h.upTo, entries, nil
}

// Remove removes the file TTL from dir, and the leftover of an interrupted Write, durably. A missing file is no error.
func Remove(fsys vfs.FS, dir string) error {
	for _, name := range []string{FileName, tempName} {
		if err := fsys.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the TTL file: %w", err)
		}
	}
	if err := fsys.SyncDir(dir); err != nil {
		return fmt.Errorf("remove the TTL file: %w", err)
	}
	return nil
}

// reader reads a file from front to back.
type reader struct {
	f    vfs.File
	name string
	size int64
	buf  []byte
}

// readFrom reads and checks a whole file.
func readFrom(f vfs.File, name string, storeID [16]byte) (h header, entries []Entry, err error) {
	r := reader{f: f, name: name}
	if r.size, err = f.Size(); err != nil {
		return h, nil, fmt.Errorf("read the TTL file: %w", err)
	}
	head, err := r.bytes(0, min(headerSize, r.size)) // Version 1 has a shorter header.
	if err != nil {
		return h, nil, err
	}
	h, reason, err := decodeHeader(head)
	switch {
	case err != nil:
		return h, nil, fmt.Errorf("%s: %w", name, err)
	case reason != "":
		return h, nil, r.corrupt(0, reason)
	case h.store != storeID:
		return h, nil, fmt.Errorf("%s: %w", name, ErrForeign)
	case h.count > uint64(r.size)/entrySize:
		return h, nil, r.corrupt(0, "more entries than fit")
	}
	seed := headerSum(head)
	entries = make([]Entry, 0, h.count)
	for offset := int64(headerSize); offset < r.size; {
		var n int64
		if entries, n, err = r.block(entries, seed, offset); err != nil {
			return h, nil, err
		}
		if uint64(len(entries)) > h.count {
			return h, nil, r.corrupt(offset, "more entries than announced")
		}
		offset += n
	}
	if uint64(len(entries)) < h.count {
		return h, nil, r.corrupt(r.size, "fewer entries than announced")
	}
	return h, entries, nil
}

// block appends the entries of the block at an offset and returns its length.
func (r *reader) block(dst []Entry, seed uint32, offset int64) (_ []Entry, n int64, err error) {
	head, err := r.bytes(offset, blockHeaderSize)
	if err != nil {
		return dst, 0, err
	}
	// The length has no checksum of its own: a wrong length reads wrong bytes, at most the rest of the file, and fails
	// their checksum.
	length, sum := int64(binary.LittleEndian.Uint32(head)), binary.LittleEndian.Uint32(head[4:])
	if length == 0 {
		return dst, 0, r.corrupt(offset, "empty block")
	}
	body, err := r.bytes(offset+blockHeaderSize, length)
	if err != nil {
		return dst, 0, err
	}
	if blockSum(seed, offset, body) != sum {
		return dst, 0, r.corrupt(offset, "checksum")
	}
	dst, ok := decodeEntries(dst, body)
	if !ok {
		return dst, 0, r.corrupt(offset, "entries do not fill their block")
	}
	return dst, blockHeaderSize + length, nil
}

// bytes reads n bytes, which the file must have. They are valid until the next call.
func (r *reader) bytes(offset, n int64) ([]byte, error) {
	if n > r.size-offset {
		return nil, r.corrupt(offset, "truncated")
	}
	b := slices.Grow(r.buf[:0], int(n))[:n]
	r.buf = b
	switch done, err := r.f.ReadAt(b, offset); {
	case done == len(b):
		return b, nil
	case err == io.EOF:
		return nil, r.corrupt(offset, "truncated while it was read")
	default:
		return nil, fmt.Errorf("read the TTL file at offset %d: %w", offset, err)
	}
}

func (r *reader) corrupt(offset int64, reason string) error {
	return &CorruptError{File: r.name, Offset: offset, Reason: reason}
}
