package ttl

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/crc32"

	"github.com/stavedb/stave/internal/vfs"
)

// store is the store id of fuzzed files.
var store = [16]byte{1, 2, 3}

// checkpoint returns the bytes of a file with these blocks, each given as its entries, and a count.
func checkpoint(count uint64, blocks ...[]byte) []byte {
	data := header{store: store, upTo: Mark{Sequence: 9}, count: count}.encode()
	for _, entries := range blocks {
		data = append(data, make([]byte, blockHeaderSize)...)
		data = append(data, entries...)
	}
	return reseal(data, blocks)
}

// reseal gives the header and the blocks, whose lengths are known, their checksums.
func reseal(data []byte, blocks [][]byte) []byte {
	binary.LittleEndian.PutUint32(data[headerSize-4:], crc32.ChecksumIEEE(data[:headerSize-4]))
	at := headerSize
	for _, b := range blocks {
		end := at + blockHeaderSize + len(b)
		sealBlock(data[at:end], headerSum(data), int64(at))
		at = end
	}
	return data
}

func load(t testing.TB, data []byte) (upTo Mark, entries []Entry, err error) {
	t.Helper()
	m := vfs.NewMem()
	f, err := m.Open(FileName, vfs.Create)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if leaks := m.Leaks(); len(leaks) > 0 {
			t.Errorf("left open: %v", leaks)
		}
	}()
	return Read(m, ".", store)
}

// TestWellSealedNonsense has right checksums and wrong contents: what only a broken writer would make.
func TestWellSealedNonsense(t *testing.T) {
	one := appendEntry(nil, Entry{Key: "k", Deadline: 1})
	for name, c := range map[string]struct {
		data   []byte
		offset int64
	}{
		"more entries announced":    {checkpoint(2, one), headerSize + 25},
		"fewer entries announced":   {checkpoint(1, one, one), headerSize + 25},
		"absurd count":              {checkpoint(1<<62, one), 0},
		"empty block":               {checkpoint(1, one, nil), headerSize + 25},
		"entry cut within its head": {checkpoint(1, one[:15]), headerSize},
		"entry cut within its key":  {checkpoint(1, one[:16]), headerSize},
		"bytes after the last":      {checkpoint(1, append(slices.Clone(one), 0)), headerSize},
		"key longer than the block": {checkpoint(1, append(append([]byte{}, one[:12]...), 0xff, 0xff, 0xff, 0xff, 'k')), headerSize},
	} {
		_, entries, err := load(t, c.data)
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || corrupt.Offset != c.offset || entries != nil {
			t.Errorf("%s: %v and %v, want corruption at %d", name, entries, err, c.offset)
		}
	}
	if _, entries, err := load(t, checkpoint(2, one, one)); err != nil || len(entries) != 2 {
		t.Errorf("a good file gives %v, %v", entries, err)
	}
}

// TestLongBlockLengthAllocatesNothing: a length must be checked against the file before memory is made for it.
func TestLongBlockLengthAllocatesNothing(t *testing.T) {
	data := checkpoint(1, appendEntry(nil, Entry{Key: "k"}))
	binary.LittleEndian.PutUint32(data[headerSize:], 1<<31)
	if n := allocated(func() { load(t, data) }); n > 64<<10 {
		t.Errorf("reading %d bytes allocates %d", len(data), n)
	}
}

func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestChangeDuringWriteIsNoticed(t *testing.T) {
	d := NewDeadlines()
	d.Set(0, "k", 1)
	(*d.spaces.Load())[0].count.Add(1) // As if a key had gone between counting and writing.
	m := vfs.NewMem()
	if err := Write(m, ".", store, Mark{Sequence: 1}, d); !errors.Is(err, errChanged) {
		t.Errorf("error is %v", err)
	}
	if _, _, err := Read(m, ".", store); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a checkpoint of no moment was published: %v", err)
	}
}

// FuzzRead reads arbitrary files. Every other one gets right checksums first, or little but checksums would be tested.
func FuzzRead(f *testing.F) {
	one := appendEntry(nil, Entry{Namespace: 3, Key: "key", Deadline: 1_700_000_000_000})
	for _, sealed := range []bool{false, true} {
		f.Add(checkpoint(0), sealed)
		f.Add(checkpoint(1, one), sealed)
		f.Add(checkpoint(3, one, slices.Concat(one, one)), sealed)
		f.Add(checkpoint(1<<40, one), sealed)
		f.Add([]byte(magic), sealed)
		f.Add([]byte{}, sealed)
	}
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		data = slices.Clone(data)
		if sealed && len(data) >= headerSize {
			copy(data, magic)
			binary.LittleEndian.PutUint32(data[8:], version)
			copy(data[12:], store[:])
			data = reseal(data, cutBlocks(data))
		}
		var entries []Entry
		var upTo Mark
		var err error
		if n := allocated(func() { upTo, entries, err = load(t, data) }); n > uint64(8*len(data)+1<<20) {
			t.Errorf("reading %d bytes allocates %d", len(data), n) // Half of it is the file system in memory.
		}
		if err != nil {
			if entries != nil || upTo != (Mark{}) {
				t.Errorf("beside the error %v there are %v, %v", err, entries, upTo)
			}
			return
		}
		again := header{store: store, upTo: upTo, count: uint64(len(entries))}.encode()
		if !slices.Equal(again, data[:headerSize]) {
			t.Errorf("the header %x says what %x says", data[:headerSize], again)
		}
	})
}

// cutBlocks finds the blocks of a file as far as their lengths make sense.
func cutBlocks(data []byte) (blocks [][]byte) {
	for at := headerSize; at+blockHeaderSize <= len(data); {
		n := int(binary.LittleEndian.Uint32(data[at:]) & 0xffff)
		start := at + blockHeaderSize
		if n > len(data)-start {
			n = len(data) - start
		}
		blocks = append(blocks, data[start:start+n])
		at = start + n
	}
	return blocks
}
