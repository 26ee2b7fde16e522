package bitcask_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestSyncGate fails each sync of a workload once, as kernels do: its bytes stay in memory, are
// called clean, and never reach the disk, whatever is synced later. Then the store is opened again,
// the machine still running, used, and the power goes: everything acknowledged before and
// afterwards is there, and so is all that the second opening showed.
func TestSyncGate(t *testing.T) {
	for name, options := range map[string]func(vfs.FS, bool) *bitcask.Options{"written": faultOptions, "copied": copiedFaults} {
		for _, zeros := range []bool{false, true} {
			n := 0
			for ; syncGate(t, n, zeros, options) && !t.Failed(); n++ {
			}
			t.Logf("%s: %d syncs failed, zeros on the disk: %v", name, n, zeros)
		}
	}
}

func syncGate(t *testing.T, n int, zeros bool, options func(vfs.FS, bool) *bitcask.Options) (failed bool) {
	mem := vfs.NewMem()
	fault := vfstest.NewFault(mem, vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync, vfstest.OpSyncDir}, Skip: n, Err: syscall.EIO})
	rec := vfstest.NewRecorder(fault)
	acked, unsure, _ := workload(options(rec, true))
	if fault.Failed() == 0 {
		return false
	}
	disk := crash.NewDisk("d", nil)
	disk.Zeros = zeros
	what := ""
	for i, e := range rec.Events() {
		if disk.Apply(i, e); e.Err != nil {
			what = fmt.Sprintf("sync %d, %v, zeros %v", n, e, zeros)
		}
	}
	open := func(when string, keep crash.Choice) {
		left, err := disk.Cut(crash.Weak, keep).Mem("d")
		if err != nil {
			t.Fatal(err)
		}
		healed(t, what+": "+when, left, acked, unsure)
	}
	if len(acked) > 0 {
		open("power cut", crash.Choice{})
	}
	// Where the kernel reads again from the disk what it could not write.
	open("the old contents are back", crash.All(disk.Units()))

	again := vfstest.NewRecorder(mem)
	s, err := bitcask.Open("d", faultOptions(again, true))
	if err != nil {
		t.Errorf("%s: opened again: %v", what, err)
		return true
	}
	for key := range unsure { // what is seen once must stay
		value, err := s.Get(key)
		switch {
		case err == nil:
			acked[key] = string(value)
		case errors.Is(err, bitcask.ErrNotFound):
			delete(acked, key)
		default:
			t.Errorf("%s: opened again: %s: %v", what, key, err)
		}
	}
	clear(unsure)
	put(t, s, "last", "after it all")
	acked["last"] = "after it all"
	disk = disk.Clone()
	for i, e := range again.Events() {
		disk.Apply(i, e)
	}
	if err := s.Close(); err != nil {
		t.Errorf("%s: close: %v", what, err)
	}
	open("opened again, then a power cut", crash.Choice{})
	return true
}
