package segment

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/vfs"
)

// heldFile is a file whose reads wait, and are counted.
type heldFile struct {
	vfs.File
	release       chan struct{}
	reading, most atomic.Int64
}

func (f *heldFile) ReadAt(b []byte, _ int64) (int, error) {
	n := f.reading.Add(1)
	for most := f.most.Load(); n > most && !f.most.CompareAndSwap(most, n); most = f.most.Load() {
	}
	<-f.release
	f.reading.Add(-1)
	return len(b), nil
}

// TestReadsAreBounded: however many goroutines want to read from the disk, few threads wait for it.
func TestReadsAreBounded(t *testing.T) {
	f := &heldFile{release: make(chan struct{})}
	sg := &Segment{File: f}
	sg.Size.Store(1 << 20)
	var wg sync.WaitGroup
	for range 4 * cap(reads) {
		wg.Go(func() {
			if _, err := sg.bytesAt(nil, 0, 10, nil); err != nil {
				t.Error(err)
			}
		})
	}
	for f.reading.Load() < int64(cap(reads)) {
		time.Sleep(time.Millisecond)
	}
	close(f.release)
	wg.Wait()
	if most := f.most.Load(); most != int64(cap(reads)) {
		t.Errorf("%d read at once, should be %d", most, cap(reads))
	}
}
