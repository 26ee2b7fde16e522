package main

import (
	"bytes"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
)

// victim is a store to be damaged: its files.
type victim struct{ files []victimFile }

// victimFile is a file up to its last byte that is not zero. Engines lay out
// files of megabytes ahead; what they have not used yet is not damaged.
type victimFile struct {
	name string
	used []byte
	size int64 // with the zeros
}

// used is how many bytes can be damaged.
func (v *victim) used() int {
	n := 0
	for _, f := range v.files {
		n += len(f.used)
	}
	return n
}

func readVictim(dir string) (*victim, error) {
	v := &victim{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		used, size, err := readUsed(path)
		v.files = append(v.files, victimFile{name, used, size})
		return err
	})
	return v, err
}

// readUsed reads a file and drops the zeros at its end as it goes.
func readUsed(path string) (used []byte, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	buf := make([]byte, 1<<20)
	for {
		n, err := f.Read(buf)
		if trimmed := bytes.TrimRight(buf[:n], "\x00"); len(trimmed) > 0 {
			used = append(used, make([]byte, int(size)-len(used))...)
			used = append(used, trimmed...)
		}
		size += int64(n)
		if err == io.EOF {
			return used, size, nil
		}
		if err != nil {
			return nil, 0, err
		}
	}
}

// faultKind is a kind of damage.
type faultKind int

const (
	flipped faultKind = iota
	cutOff
	zeroed
	faultKinds
)

var faultNames = [faultKinds]string{"one bit flipped", "cut off at a length", "zeros from a place to the end"}

// fault is one damage to one file: to a bit, or from a byte on.
type fault struct {
	kind     faultKind
	file, at int
}

// faults are one in stride of the bits, lengths and places, spread over all
// files alike.
func (v *victim) faults(stride int) iter.Seq[fault] {
	return func(yield func(fault) bool) {
		for kind := range faultKinds {
			at := 0 // offset from here on
			for i, file := range v.files {
				n := len(file.used)
				if kind == flipped {
					n *= 8
				}
				for ; at < n; at += stride {
					if !yield(fault{kind, i, at}) {
						return
					}
				}
				at -= n
			}
		}
	}
}

// write makes the store afresh in a directory, with a fault unless that is nil.
func (v *victim) write(dir string, f *fault) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i, file := range v.files {
		used, size := file.used, file.size
		if f != nil && f.file == i {
			used, size = f.apply(used, size)
		}
		name := filepath.Join(dir, file.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, used, 0o644); err != nil {
			return err
		}
		if err := os.Truncate(name, size); err != nil {
			return err
		}
	}
	return nil
}

// apply returns what the fault makes of a file, and its length.
func (f *fault) apply(used []byte, size int64) ([]byte, int64) {
	switch f.kind {
	case flipped:
		used = bytes.Clone(used)
		used[f.at/8] ^= 1 << (f.at % 8)
	case cutOff:
		used, size = used[:f.at], int64(f.at)
	case zeroed:
		used = used[:f.at]
	}
	return used, size
}
