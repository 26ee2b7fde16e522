package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// An RDB file is "REDIS", four digits of its version, and then items, each begun by one byte: a type, which is followed
// by a key and its value, or an opcode. From version 5 on the opcode of the end is followed by the checksum of all
// bytes before; 0 says that there is none.

const (
	opSlotImport   = 243 // of a Valkey cluster: a job, and ranges of slots
	opSlot         = 244 // of a cluster: its number, how many keys, how many with deadlines
	opFunction     = opcodeFunction2
	opFunctionOld  = opcodeFunction // of release candidates of 7.0
	opModule       = 247
	opIdle         = 248
	opFrequency    = 249
	opAux          = 250
	opSizes        = 251
	opMilliseconds = 252
	opSeconds      = 253
	opDatabase     = 254
	opEnd          = 255
)

// The magic of an RDB file, before the digits of its version: four, and three since Valkey has its own versions.
const (
	Magic       = "REDIS"
	MagicValkey = "VALKEY"
)

// IsFile reports whether a file that begins with head is an RDB file, of whatever version.
func IsFile(head []byte) bool {
	_, _, ok := cutMagic(head)
	return ok
}

// cutMagic parts the version from the magic. A line of text could begin with REDIS: only digits are a version.
func cutMagic(head []byte) (version int, valkey, ok bool) {
	if len(head) < magicBytes {
		return 0, false, false
	}
	digits, valkey := bytes.CutPrefix(head[:magicBytes], []byte(MagicValkey))
	if !valkey {
		if digits, ok = bytes.CutPrefix(head[:magicBytes], []byte(Magic)); !ok {
			return 0, false, false
		}
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, valkey, false
		}
		version = 10*version + int(d-'0')
	}
	return version, valkey, version > 0
}

const magicBytes = 9

// MaxBytes is the length of the longest string that is read.
const MaxBytes = maxInflated

// Entry is a key of a file, or a piece of one whose value is large.
type Entry struct {
	Database uint64
	Name     []byte
	Deadline int64 // in Unix milliseconds; 0: none
	Value    Value // of the same kind in every piece. Its slices stay as they are. Of a stream the last piece has what is known besides entries
	First    bool
	Last     bool
	Offset   int64 // where the key begins in the file
}

// FileError says where a file is not what it should be.
type FileError struct {
	Offset int64  // where reading it ended
	Key    string // that was being read; "" if there is none
	Err    error  // ErrFormat, ErrTruncated, ErrChecksum, or one of reading
	Text   string // what is wrong, if there is more to say than Err does
}

func (e *FileError) Error() string {
	text := fmt.Sprintf("byte %d", e.Offset)
	if e.Key != "" {
		text += ", key " + strconv.Quote(e.Key[:min(len(e.Key), 100)])
	}
	if e.Text != "" {
		return text + ": " + e.Text
	}
	return text + ": " + e.Err.Error()
}

func (e *FileError) Unwrap() error { return e.Err }

var (
	// ErrTruncated says that a file ends before its end.
	ErrTruncated = errors.New("rdb: the file ends in the middle")
	// ErrChecksum says that the checksum of a file does not fit its bytes.
	ErrChecksum = errors.New("rdb: the checksum of the file is wrong")
)

// FileReader reads a file from its beginning to its end. It holds little more than a piece of one value, and one string
// in the two forms of LZF, however long the file is and whatever it says.
type FileReader struct {
	// Library, if it is set, gets the text of each library of functions, and where it begins in the file; its error
	// ends Visit, which returns it. Libraries are left out otherwise.
	Library func(text []byte, offset int64) error
	// Bad, if it is set, gets each key whose value cannot be decoded although it is known where it ends, and why. The key is
	// skipped if it returns nil; pieces of it may have been visited before. Otherwise its error ends Visit, which returns it.
	Bad func(e *Entry, why *FileError) error

	// Aux, if it is set, gets what a file says of its making.
	Aux func(name, value string)

	r       reader
	src     *file
	version int
	leftOut map[string]int64
	entry   Entry
	value   Value
}

// NewFileReader returns a reader of in.
func NewFileReader(in io.Reader) *FileReader {
	f := &FileReader{leftOut: map[string]int64{}}
	f.src = &file{in: in}
	f.r = reader{file: f.src, v: &f.value}
	return f
}

// Version is the version that the file says it has.
func (f *FileReader) Version() int { return f.version }

// Later says that the file has a version after all that are known, and after which one.
func (f *FileReader) Later() (newest int, later bool) {
	newest = Newest
	if f.r.valkey {
		newest = newestOfValkey
	}
	return newest, f.version > newest
}

// LeftOut counts what the file has and no store can hold, by names in plural.
func (f *FileReader) LeftOut() map[string]int64 { return f.leftOut }

// Offset is how many bytes have been taken.
func (f *FileReader) Offset() int64 { return f.src.at(&f.r) }

// Rest reads what comes after the end of the file.
func (f *FileReader) Rest() io.Reader { return f.src.remains(&f.r) }

// Visit calls visit for each key in order, and more than once in a row for one whose value is large, until it returns
// an error. It returns that one, or a *FileError.
func (f *FileReader) Visit(visit func(*Entry) error) error {
	sink := &pieceSink{f: f, visit: visit}
	f.r.piece = sink
	f.r.skips = f.Bad != nil
	if err := f.header(); err != nil {
		return err
	}
	for {
		code := f.r.byte()
		if code == opEnd && !f.r.failed {
			return f.end()
		}
		text := f.item(code)
		if sink.err != nil {
			return sink.err
		}
		if f.r.failed {
			return f.failure(text)
		}
	}
}

// failure words why the reader has failed. text is what is wrong if the file is whole.
func (f *FileReader) failure(text string) error {
	e := &FileError{Offset: f.src.failedAt, Key: string(f.entry.Name), Err: ErrFormat, Text: text}
	if err := f.src.err; err != nil {
		e.Err, e.Text = err, ""
	} else if f.src.tooLong > 0 {
		e.Text = fmt.Sprintf("a length of %d bytes, and the longest string has %d", f.src.tooLong, MaxBytes)
	}
	return e
}

func (f *FileReader) header() error {
	magic := f.r.take(magicBytes)
	if f.r.failed {
		return f.failure("")
	}
	version, valkey, ok := cutMagic(magic)
	if !ok {
		f.r.fail()
		return f.failure(fmt.Sprintf("an RDB file begins with REDIS and a version of four digits, or VALKEY and three, not with %q", magic))
	}
	f.version, f.r.valkey = version, valkey
	return nil
}

// end verifies the checksum.
func (f *FileReader) end() error {
	sum := f.src.checksum(&f.r)
	if f.version < 5 {
		return nil
	}
	b := f.r.take(8)
	if b == nil {
		return f.failure("")
	}
	if want := binary.LittleEndian.Uint64(b); want != 0 && want != sum {
		f.r.fail()
		e := f.failure("").(*FileError)
		e.Err = ErrChecksum
		return e
	}
	return nil
}

// item reads one item, and returns what is wrong with it if it can say that.
func (f *FileReader) item(code byte) (wrong string) {
	r := &f.r
	if f.entry.Deadline == 0 {
		f.entry.Offset = f.Offset() - 1
	}
	switch code {
	case opSlot:
		r.count()
		r.count()
		r.count()
	case opSlotImport:
		if !r.valkey {
			return f.key(code)
		}
		r.shortString()
		for n := r.count(); n > 0 && !r.failed; n-- {
			r.count()
			r.count()
		}
	case opFunction:
		f.library(r.shortString())
	case opFunctionOld:
		r.fail()
		return "a function as a release candidate of Redis 7.0 wrote it; save the file with a release"
	case opModule:
		id := r.count()
		r.count()
		r.count()
		f.leave("records of the module " + moduleName(id))
		return f.module()
	case opIdle:
		r.count()
	case opFrequency:
		r.byte()
	case opAux:
		name := string(r.shortString())
		value := r.shortString()
		if f.Aux != nil && !r.failed {
			f.Aux(name, string(value))
		}
	case opSizes:
		r.count()
		r.count()
	case opMilliseconds:
		f.entry.Deadline = max(int64(r.fixed(8)), 1)
	case opSeconds:
		f.entry.Deadline = max(int64(int32(r.fixed(4)))*1000, 1)
	case opDatabase:
		f.entry.Database = r.count()
	default:
		return f.key(code)
	}
	return ""
}

// library hands over a library.
func (f *FileReader) library(text []byte) {
	if f.Library == nil {
		f.leave("libraries of functions")
		return
	}
	if f.r.failed {
		return
	}
	if f.r.piece.err = f.Library(text, f.entry.Offset); f.r.piece.err != nil {
		f.r.fail()
	}
}

// key reads a key and its value, and hands them over.
func (f *FileReader) key(code byte) (wrong string) {
	r := &f.r
	name := r.shortString()
	f.entry.Name = name
	switch {
	case r.failed:
		return ""
	case code == typeModule:
		id := r.count()
		f.leave("keys of the module " + moduleName(id))
		wrong = f.module()
	case !f.known(code):
		r.fail()
		return f.unknownType(code)
	default:
		f.value = Value{}
		f.entry.First = true
		r.inflate, r.spoiled = maxInflated, false
		r.piece.size = 0
		r.value(code)
		if r.spoiled || r.failed {
			wrong = fmt.Sprintf("its value, of type %d, cannot be decoded", code)
		}
		if r.spoiled && !r.failed {
			f.skip(wrong)
		} else if !r.failed {
			r.piece.hand(r, true)
		}
	}
	if !r.failed {
		f.entry = Entry{Database: f.entry.Database}
	}
	return wrong
}

// skip reports a key whose value has been read to its end, and cannot be decoded.
func (f *FileReader) skip(wrong string) {
	why := &FileError{Offset: f.r.spoilAt, Key: string(f.entry.Name), Err: ErrFormat, Text: wrong}
	f.r.piece.drop(&f.r)
	if f.r.piece.err = f.Bad(&f.entry, why); f.r.piece.err != nil {
		f.r.fail()
	}
}

// known says whether a value of a type can be read, or skipped.
func (f *FileReader) known(code byte) bool {
	last := byte(typeTimedListpack)
	if f.r.valkey {
		last = typeTimedHashOfValkey // a number that both have given
	}
	return code != typeModuleOld && code <= last
}

// unknownType says which servers write a type that is not read. Nobody knows where such a value ends.
func (f *FileReader) unknownType(code byte) string {
	newest, _ := f.Later()
	if code == typeModuleOld {
		return "a value of a module as a release candidate of Redis 4.0 wrote it, which cannot even be skipped"
	}
	return fmt.Sprintf("a value of type %d, which came after version %d of the format and cannot be skipped", code, newest)
}

// module skips what a module has written: parts, each after its kind, and the end.
func (f *FileReader) module() (wrong string) {
	const end, signed, unsigned, float, double, text = 0, 1, 2, 3, 4, 5
	r := &f.r
	for !r.failed {
		switch kind := r.count(); kind {
		case end:
			return ""
		case signed, unsigned:
			r.count()
		case float:
			r.take(4)
		case double:
			r.take(8)
		case text:
			r.shortString()
		default:
			r.fail()
			return fmt.Sprintf("a module's value has a part of kind %d, which is unknown", kind)
		}
	}
	return ""
}

// leave counts one more of what is left out. A file can make up names without end.
func (f *FileReader) leave(name string) {
	if _, known := f.leftOut[name]; !known && len(f.leftOut) >= maxLeftOut {
		name = "others"
	}
	f.leftOut[name]++
}

const maxLeftOut = 100

// moduleName takes the name out of a module's id: nine characters of six bits, and ten bits of a version.
func moduleName(id uint64) string {
	const set = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	name := make([]byte, 9)
	for i := range name {
		name[8-i] = set[id>>(10+6*i)&63]
	}
	return string(name)
}

// shortString reads a string with an allowance of its own for what it may inflate to.
func (r *reader) shortString() []byte {
	r.inflate = maxInflated
	return r.string()
}
