package commitlog_test

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/test/vfstest"
)

// TestLargeFramesOfAGroup: large frames that wait for another write are finished when the group is written, with values in
// line and out of line, and stand whole between their neighbours.
func TestLargeFramesOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixtureOf(t, 10*commitlog.LargeFrame)
		proceed := make(chan struct{})
		f.fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data", Do: func(vfstest.Event) { <-proceed }})
		short, long := []byte("value"), bytes.Repeat([]byte("long"), commitlog.LargeFrame/4)
		inline := make([][]byte, commitlog.LargeFrame/50) // short values, each in line
		for i := range inline {
			inline[i] = bytes.Repeat([]byte("x"), 50)
		}
		var writers sync.WaitGroup
		appendOne := func(key string, values ...[]byte) {
			writers.Go(func() {
				if _, _, _, err := f.Append(frame(key, values...)); err != nil {
					t.Errorf("%s: %v", key, err)
				}
			})
			time.Sleep(10 * time.Millisecond) // it is being written, or in the queue
		}
		appendOne("a", short)
		appendOne("b", short, long, short)
		appendOne("c", short)
		appendOne("d", inline...)
		appendOne("e", long)
		appendOne("f", short, short)
		if !f.MayWait() {
			t.Error("no warning of the large frames")
		}
		close(proceed)
		writers.Wait()
		f.end()
		var got, want []string
		for key, n := range map[string]int{"a": 1, "b": 3, "c": 1, "d": len(inline), "e": 1, "f": 2} {
			for i := range n {
				want = append(want, fmt.Sprint(key, ".", i))
			}
		}
		last := byte('a')
		for _, sg := range f.segments.Load().All() {
			for fr := segment.NewFrames(sg); ; {
				entries, err := fr.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(sg.Name, err)
				}
				for i := range entries {
					got = append(got, string(entries[i].Key))
					if key := entries[i].Key[0]; key < last {
						t.Errorf("%c after %c", key, last)
					} else {
						last = key
					}
				}
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d records, want %d", len(got), len(want))
		}
	})
}
