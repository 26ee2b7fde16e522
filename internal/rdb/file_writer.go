package rdb

import (
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"io"
)

// The versions of files that can be written: up to 8 sorted sets have their scores as text, and no Redis writes more
// than the newest one. Valkey loads those before version 12, and its own since FirstOfValkey.
const (
	OldestFile = 9
	NewestFile = Newest
)

// timedVersion is the first version that has deadlines of fields, countedVersion that of streams that know what was
// deleted and how many entries were ever added, and LibraryVersion that of libraries of functions: an older Redis loads
// no file with one.
const (
	timedVersion   = 12
	countedVersion = 10
	LibraryVersion = 10
)

// spillBytes are gathered for one write.
const spillBytes = 64 << 10

// FileWriter writes a file. Its methods are called in the order of the file: Aux, Library, Database, keys, End. A key
// is one of the Begin methods and the parts of its value, as for a Writer. After a write has failed nothing more is
// written, and End, or Err, returns the error.
type FileWriter struct {
	w       Writer
	out     io.Writer
	version int
	sum     uint64
	written int64
	err     error
}

// NewFileWriter begins a file of a version, OldestFile to NewestFile or FirstOfValkey.
func NewFileWriter(out io.Writer, version int) *FileWriter {
	f := &FileWriter{out: out, version: version}
	magic := Magic
	if f.ofValkey() {
		magic = MagicValkey
	}
	f.w.buf = fmt.Appendf(nil, "%s%0*d", magic, magicBytes-len(magic), version)
	return f
}

func (f *FileWriter) ofValkey() bool { return f.version >= FirstOfValkey }

// Timed says whether the version has deadlines of fields.
func (f *FileWriter) Timed() bool { return f.version >= timedVersion }

// Written is how many bytes have been written, or wait for it.
func (f *FileWriter) Written() int64 { return f.written + int64(len(f.w.buf)) }

// Err is the error of the write that failed.
func (f *FileWriter) Err() error { return f.err }

// Aux says something of the file's making.
func (f *FileWriter) Aux(name, value string) {
	f.op(opAux)
	f.Bytes([]byte(name))
	f.Bytes([]byte(value))
}

// Library writes the text of a library of functions. The version must be LibraryVersion or later.
func (f *FileWriter) Library(text string) bool {
	f.op(opFunction)
	return f.Bytes([]byte(text))
}

// Database begins a database of so many keys, about.
func (f *FileWriter) Database(n, keys int) {
	f.op(opDatabase)
	f.w.length(uint64(n))
	f.op(opSizes)
	f.w.length(uint64(keys))
	f.w.length(0) // of which with deadlines: not known, and a hint only
}

func (f *FileWriter) op(code byte) { f.w.buf = append(f.w.buf, code) }

// Begin begins a key with a deadline in Unix milliseconds, or 0, whose value has so many elements, members or fields.
func (f *FileWriter) Begin(name []byte, deadline int64, kind Kind, n int) {
	f.begin(name, deadline, plainType[kind])
	f.w.number(kind, n)
}

// BeginTimed begins a hash of n fields of which some have deadlines, the first of them being first. The version must have
// them. Each field is a TimedField.
func (f *FileWriter) BeginTimed(name []byte, deadline int64, n int, first int64) {
	if f.ofValkey() {
		f.begin(name, deadline, typeTimedHashOfValkey)
		f.w.length(uint64(n))
		return
	}
	f.begin(name, deadline, typeTimedHash)
	f.w.firstDeadline(n, first)
}

// TimedField writes a field of such a hash, with its deadline in Unix milliseconds, or 0. It reports whether to go on.
func (f *FileWriter) TimedField(field, value []byte, deadline int64) bool {
	if !f.ofValkey() {
		f.w.Deadline(deadline)
		return f.Bytes(field) && f.Bytes(value)
	}
	if deadline == 0 {
		deadline = noDeadlineOfValkey
	}
	ok := f.Bytes(field) && f.Bytes(value)
	f.w.buf = binary.LittleEndian.AppendUint64(f.w.buf, uint64(deadline))
	return ok
}

// BeginStream begins a stream of so many nodes.
func (f *FileWriter) BeginStream(name []byte, deadline int64, nodes int) {
	code := byte(typeStream)
	if f.version >= countedVersion {
		code = typeStream2
	}
	f.begin(name, deadline, code)
	f.w.length(uint64(nodes))
}

func (f *FileWriter) begin(name []byte, deadline int64, code byte) {
	f.spill(spillBytes)
	if deadline != 0 {
		f.op(opMilliseconds)
		f.w.buf = binary.LittleEndian.AppendUint64(f.w.buf, uint64(deadline))
	}
	f.op(code)
	f.Bytes(name)
}

// Bytes and Score write parts of a value as those of a Writer do. Bytes reports whether to go on.
func (f *FileWriter) Bytes(b []byte) bool {
	f.w.Bytes(b)
	return f.spill(spillBytes)
}

// Score writes the score of the member before.
func (f *FileWriter) Score(score float64) { f.w.Score(score) }

// Nodes writes nodes of a stream, as StreamWriter.Take returns them.
func (f *FileWriter) Nodes(nodes []byte) bool {
	f.w.buf = append(f.w.buf, nodes...)
	return f.spill(spillBytes)
}

// EndStream writes what is known of a stream besides its entries.
func (f *FileWriter) EndStream(w *StreamWriter, s Stream) {
	w.about(&f.w, s, f.version >= countedVersion)
}

// End ends the file.
func (f *FileWriter) End() error {
	f.op(opEnd)
	f.spill(0)
	f.w.buf = binary.LittleEndian.AppendUint64(f.w.buf, f.sum)
	f.spill(0)
	return f.err
}

// spill writes what has been gathered once it exceeds limit.
func (f *FileWriter) spill(limit int) bool {
	if len(f.w.buf) <= limit || f.err != nil {
		return f.err == nil
	}
	f.sum = ^crc64.Update(^f.sum, table, f.w.buf)
	n, err := f.out.Write(f.w.buf)
	f.written += int64(n)
	f.err = err
	if f.w.buf = f.w.buf[:0]; cap(f.w.buf) > 16*spillBytes {
		f.w.buf = nil
	}
	return err == nil
}

// Nodes is the number of nodes that are complete.
func (w *StreamWriter) Nodes() int { return w.count }

// Take returns the nodes that are complete, and forgets them.
func (w *StreamWriter) Take() []byte {
	nodes := w.nodes
	w.nodes = w.nodes[:0]
	return nodes
}

// about writes what is known of the stream. An older form has no more than the number of entries, the last id and the
// groups, without how much they have read.
func (w *StreamWriter) about(out *Writer, s Stream, counted bool) {
	numbers := []uint64{uint64(w.total), s.Last.Ms, s.Last.Seq}
	if counted {
		numbers = []uint64{uint64(w.total), s.Last.Ms, s.Last.Seq, w.first.Ms, w.first.Seq, s.Delete.Ms, s.Delete.Seq, s.Added}
	}
	for _, n := range numbers {
		out.length(n)
	}
	out.groups(s.Groups, counted)
}
