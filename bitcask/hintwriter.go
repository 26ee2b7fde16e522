package bitcask

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/vfs"
)

// hintTemp is the name of a hint in the making; there is one at a time.
const hintTemp = "HINT.new"

// hintWriter writes a hint file entry by entry: under a temporary name, synced,
// renamed, its directory synced, so that a hint never stands there half done.
// A crash before the rename leaves a HINT.new that the next Open removes.
type hintWriter struct {
	fs      vfs.FS
	dir     string
	sg      *segment
	file    vfs.File
	pos     int64
	block   []byte
	count   int // entries in block
	context hintContext
	mixed   bool // there are other entries than strings and deadlines
}

// newHintWriter begins the hint of a segment, which need not be sealed yet.
func newHintWriter(fsys vfs.FS, dir string, sg *segment) (*hintWriter, error) {
	temp := filepath.Join(dir, hintTemp)
	if err := fsys.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := fsys.Open(temp, vfs.Create)
	if err != nil {
		return nil, err
	}
	return &hintWriter{fs: fsys, dir: dir, sg: sg, file: f, pos: hintHeaderSize}, nil
}

// add appends an entry. Entries come in the order of the segment.
func (w *hintWriter) add(e *format.Entry) error {
	if len(w.block) >= hintBlockSize || w.count == hintBlockCount {
		if err := w.flush(false); err != nil {
			return err
		}
	}
	if len(w.block) == 0 {
		w.block = append(w.block, make([]byte, 8)...)
		w.context.begin()
		w.count = 0
	}
	w.mixed = w.mixed || !e.Kind.Plain()
	w.count++
	w.block = w.context.append(w.block, e)
	return nil
}

func (w *hintWriter) flush(last bool) error {
	if len(w.block) == 0 {
		w.block = append(w.block, make([]byte, 8)...)
	}
	size := uint32(len(w.block))
	if last {
		size |= hintLast
	}
	binary.LittleEndian.PutUint32(w.block[4:], size)
	binary.LittleEndian.PutUint32(w.block, w.sg.seal.Sum(uint32(w.pos), w.block[4:]))
	if _, err := w.file.WriteAt(w.block, w.pos); err != nil {
		return err
	}
	w.pos += int64(len(w.block))
	w.block = w.block[:0]
	return nil
}

// finish publishes the hint. The segment is sealed by now.
func (w *hintWriter) finish() error {
	err := w.flush(true)
	h := w.sg.hintHeader(hintPlain)
	if w.mixed {
		h.flags = 0
	}
	if err == nil {
		h.end, err = w.sg.framesSum()
	}
	if err == nil {
		_, err = w.file.WriteAt(h.encode(), 0)
	}
	if err == nil {
		err = w.file.Sync()
	}
	if err = errors.Join(err, w.file.Close()); err == nil {
		err = w.fs.Rename(filepath.Join(w.dir, hintTemp), filepath.Join(w.dir, format.HintName(w.sg.id)))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", format.HintName(w.sg.id), err), w.fs.Remove(filepath.Join(w.dir, hintTemp)))
	}
	return w.fs.SyncDir(w.dir)
}

// abandon removes what has been written.
func (w *hintWriter) abandon() error {
	return errors.Join(w.file.Close(), w.fs.Remove(filepath.Join(w.dir, hintTemp)))
}

// writeHint makes the hint of a sealed segment by reading the segment.
func writeHint(fsys vfs.FS, dir string, sg *segment, cancelled func() bool) error {
	w, err := newHintWriter(fsys, dir, sg)
	if err != nil {
		return err
	}
	if err := w.addAll(newFrames(sg), cancelled); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", format.HintName(sg.id), err), w.abandon())
	}
	return w.finish()
}

// addAll adds the entries of all frames.
func (w *hintWriter) addAll(fr *frames, cancelled func() bool) error {
	for {
		entries, err := fr.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range entries {
			if err := w.add(&entries[i]); err != nil {
				return err
			}
		}
		if cancelled != nil && cancelled() {
			return errCancelled
		}
	}
}

func (h hintHeader) encode() []byte {
	b := make([]byte, 0, hintHeaderSize)
	b = append(b, hintMagic...)
	b = binary.LittleEndian.AppendUint16(b, hintVersion)
	b = binary.LittleEndian.AppendUint16(b, h.flags)
	b = binary.LittleEndian.AppendUint32(b, h.info.ID)
	b = append(b, h.store[:]...)
	b = binary.LittleEndian.AppendUint32(b, h.nonce)
	b = binary.LittleEndian.AppendUint64(b, h.info.Length)
	b = binary.LittleEndian.AppendUint64(b, h.info.MinSeq)
	b = binary.LittleEndian.AppendUint64(b, h.info.MaxSeq)
	b = binary.LittleEndian.AppendUint64(b, h.info.Records)
	b = binary.LittleEndian.AppendUint64(b, h.stamp)
	b = binary.LittleEndian.AppendUint32(b, h.end)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// parseHintHeader is the inverse of encode.
func parseHintHeader(b []byte) (hintHeader, error) {
	if format.OtherVersion(b, hintMagic, hintVersion) || format.OtherVersion(b[:hintHeaderOld], hintMagic, hintVersion) || format.OtherFlags(b, hintMagic, hintPlain) {
		return hintHeader{}, ErrVersion
	}
	end := hintHeaderSize - 4
	if string(b[:8]) != hintMagic || binary.LittleEndian.Uint16(b[8:]) != hintVersion ||
		binary.LittleEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) {
		return hintHeader{}, errHint
	}
	h := hintHeader{flags: binary.LittleEndian.Uint16(b[10:]), store: [16]byte(b[16:32])}
	h.info.ID = binary.LittleEndian.Uint32(b[12:])
	f := fields{b: b[32:end]}
	h.nonce = f.u32()
	h.info.Length, h.info.MinSeq, h.info.MaxSeq, h.info.Records = f.u64(), f.u64(), f.u64(), f.u64()
	h.stamp, h.end = f.u64(), f.u32()
	return h, nil
}
