package structures

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestElementList: elements come back in their order, with any length of a name, and the list has few chunks.
func TestElementList(t *testing.T) {
	var l elementList
	type element struct {
		name   string
		number uint64
	}
	var want []element
	bytes := 0
	for i := range 200_000 {
		e := element{fmt.Sprint("name", i), uint64(i) << (i % 40)}
		switch i {
		case 0, 100:
			e.name = ""
		case 200, 50_000:
			e.name = strings.Repeat("long", elementChunk/2)
		}
		want = append(want, e)
		name := []byte(e.name)
		l.add(name, e.number)
		clear(name) // it has been copied
		bytes += len(name) + 12
	}
	if most := bytes/elementChunk + 16; len(l.chunks) > most || l.n != len(want) {
		t.Errorf("%d chunks for %d elements of %d bytes, want at most %d", len(l.chunks), l.n, bytes, most)
	}
	failed := errors.New("enough")
	at := 0
	var held []string // stays as it is
	err := l.drain(func(name string, number uint64) error {
		if w := want[at]; name != w.name || number != w.number {
			t.Fatalf("element %d is %.20q, %d; want %.20q, %d", at, name, number, w.name, w.number)
		}
		held = append(held, name)
		if at++; at == len(want)-1 {
			return failed
		}
		return nil
	})
	if err != failed || at != len(want)-1 {
		t.Errorf("ended after %d with %v", at, err)
	}
	for i, name := range held {
		if name != want[i].name {
			t.Fatalf("the name of element %d has become %.20q", i, name)
		}
	}
}
