package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/vfs"
)

// HintTemp is the name of a hint in the making; there is one at a time.
const HintTemp = "HINT.new"

// HintWriter writes a hint file entry by entry: under a temporary name, synced,
// renamed, its directory synced, so that a hint never stands there half done.
// A crash before the rename leaves a HINT.new that the next Open removes.
type HintWriter struct {
	fs      vfs.FS
	dir     string
	sg      *Segment
	file    vfs.File
	pos     int64
	Block   []byte
	count   int // entries in block
	context HintContext
	Mixed   bool // there are other entries than strings and deadlines
}

// NewHintWriter begins the hint of a segment, which need not be sealed yet.
func NewHintWriter(fsys vfs.FS, dir string, sg *Segment) (*HintWriter, error) {
	temp := filepath.Join(dir, HintTemp)
	f, err := vfs.Temporary(fsys, temp)
	if err != nil {
		return nil, err
	}
	return &HintWriter{fs: fsys, dir: dir, sg: sg, file: f, pos: hintHeaderSize}, nil
}

// Add appends an entry. Entries come in the order of the segment.
func (w *HintWriter) Add(e *format.Entry) error {
	if len(w.Block) >= hintBlockSize || w.count == hintBlockCount {
		if err := w.flush(false); err != nil {
			return err
		}
	}
	if len(w.Block) == 0 {
		w.Block = append(w.Block, make([]byte, 8)...)
		w.context.Begin()
		w.count = 0
	}
	w.Mixed = w.Mixed || !e.Kind.Plain()
	w.count++
	w.Block = w.context.Append(w.Block, e)
	return nil
}

func (w *HintWriter) flush(last bool) error {
	if len(w.Block) == 0 {
		w.Block = append(w.Block, make([]byte, 8)...)
	}
	size := uint32(len(w.Block))
	if last {
		size |= hintLast
	}
	binary.LittleEndian.PutUint32(w.Block[4:], size)
	binary.LittleEndian.PutUint32(w.Block, w.sg.Seed.Sum(uint32(w.pos), w.Block[4:]))
	if _, err := w.file.WriteAt(w.Block, w.pos); err != nil {
		return err
	}
	w.pos += int64(len(w.Block))
	w.Block = w.Block[:0]
	return nil
}

// Finish publishes the hint. The segment is sealed.
func (w *HintWriter) Finish() error {
	err := w.flush(true)
	h := w.sg.HintHeader(HintPlain)
	if w.Mixed {
		h.flags = 0
	}
	if err == nil {
		h.end, err = w.sg.framesSum()
	}
	if err == nil {
		_, err = w.file.WriteAt(h.Encode(), 0)
	}
	name := format.HintName(w.sg.ID)
	if err := vfs.Publish(w.fs, w.file, filepath.Join(w.dir, HintTemp), filepath.Join(w.dir, name), err); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return w.fs.SyncDir(w.dir)
}

// Abandon removes the unfinished file.
func (w *HintWriter) Abandon() error {
	return errors.Join(w.file.Close(), w.fs.Remove(filepath.Join(w.dir, HintTemp)))
}

// WriteHint makes the hint of a sealed segment by reading the segment.
func WriteHint(fsys vfs.FS, dir string, sg *Segment, cancelled func() bool) error {
	w, err := NewHintWriter(fsys, dir, sg)
	if err != nil {
		return err
	}
	if err := w.AddAll(NewFrames(sg), cancelled); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", format.HintName(sg.ID), err), w.Abandon())
	}
	return w.Finish()
}

// AddAll adds the entries of all frames.
func (w *HintWriter) AddAll(fr *Frames, cancelled func() bool) error {
	for {
		entries, err := fr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range entries {
			if err := w.Add(&entries[i]); err != nil {
				return err
			}
		}
		if cancelled != nil && cancelled() {
			return failure.ErrCancelled
		}
	}
}

func (h HintHeader) Encode() []byte {
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

// parseHintHeader is the inverse of Encode.
func parseHintHeader(b []byte) (HintHeader, error) {
	if format.OtherVersion(b, hintMagic, hintVersion) || format.OtherVersion(b[:hintHeaderOld], hintMagic, hintVersion) || format.OtherFlags(b, hintMagic, HintPlain) {
		return HintHeader{}, failure.ErrVersion
	}
	end := hintHeaderSize - 4
	if string(b[:8]) != hintMagic || binary.LittleEndian.Uint16(b[8:]) != hintVersion ||
		binary.LittleEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) {
		return HintHeader{}, ErrHint
	}
	h := HintHeader{flags: binary.LittleEndian.Uint16(b[10:]), store: [16]byte(b[16:32])}
	h.info.ID = binary.LittleEndian.Uint32(b[12:])
	f := format.Fields{B: b[32:end]}
	h.nonce = f.U32()
	h.info.Length, h.info.MinSeq, h.info.MaxSeq, h.info.Records = f.U64(), f.U64(), f.U64(), f.U64()
	h.stamp, h.end = f.U64(), f.U32()
	return h, nil
}
