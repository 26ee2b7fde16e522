package server_test

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// TestErrorsNameNoFile: whatever fails in the store's files, no reply names the directory or a file, and an error of
// the system has a code that clients know as one: MISCONF. (INFO storage has the directory, for who may run it.)
func TestErrorsNameNoFile(t *testing.T) {
	const dir = "secret-place/store"
	ops := []vfstest.Op{vfstest.OpOpen, vfstest.OpCreate, vfstest.OpList, vfstest.OpRemove, vfstest.OpRename, vfstest.OpLink, vfstest.OpSyncDir,
		vfstest.OpRead, vfstest.OpWrite, vfstest.OpTruncate, vfstest.OpSync, vfstest.OpSize, vfstest.OpClose}
	causes := []error{syscall.ENOSPC, syscall.EMFILE, syscall.ENFILE, syscall.EIO, syscall.EACCES, syscall.EROFS, syscall.EDQUOT, syscall.EFBIG, syscall.ENOENT, fs.ErrInvalid}
	library := func(name string) string {
		return "#!lua name=" + name + "\nredis.register_function('" + name + "', function() return 1 end)"
	}
	large := strings.Repeat("x", 100<<10)
	commands := [][]string{
		{"SET", "new", large}, {"GET", "old"}, {"MGET", "old", "old2"}, {"SET", "new", large}, {"SET", "small", "v"}, {"DEL", "old2"},
		{"EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", "new", large}, {"EVAL", "return redis.pcall('GET', KEYS[1])", "1", "old"},
		{"MULTI"}, {"SET", "new", large}, {"GET", "old"}, {"EXEC"}, {"DUMP", "old"}, {"SORT", "list"}, {"DEBUG", "DIGEST"},
		{"FUNCTION", "LOAD", library("m")}, {"FUNCTION", "DELETE", "l"},
		{"SAVE"}, {"BGSAVE"}, {"MERGE"}, {"CHECK"}, {"FLUSHALL"}, {"LATENCY", "DOCTOR"},
	}
	errors := 0
	for _, op := range ops {
		for _, cause := range causes {
			fault := vfstest.NewFault(vfs.NewMem())
			o := seam.With(&db.Options{Sync: db.SyncAlways, NoMerge: true, SegmentSize: 64 << 10}, seam.Options{FS: fault, NoMapping: true})
			store, err := db.Open(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			s, err := server.NewSession(store, &server.Options{Debug: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, setup := range [][]string{{"SET", "old", large}, {"SET", "old2", large}, {"RPUSH", "list", "1", "2"}, {"FUNCTION", "LOAD", library("l")}, {"DEL", "old2"}, {"SET", "old2", large}} {
				if got := ask(s, requestOf(setup...)); strings.HasPrefix(got, "-") {
					t.Fatal(got)
				}
			}
			fault.Inject(vfstest.Rule{Ops: []vfstest.Op{op}, Err: cause, Sticky: true})
			for _, command := range commands {
				got := ask(s, requestOf(command...))
				what := fmt.Sprintf("%v fails with %v: %s: %.300q", op, cause, command[0], got)
				text := strings.ReplaceAll(got, "input/output", "")
				if strings.Contains(text, "secret-place") || strings.HasPrefix(text, "-") && strings.ContainsAny(text, "/\\") {
					t.Errorf("names a file: %s", what)
				}
				if !strings.HasPrefix(got, "-") {
					continue
				}
				errors++
				if code, _, _ := strings.Cut(got, " "); code != "-MISCONF" && code != "-EXECABORT" {
					t.Errorf("code: %s", what)
				}
				if s.Closed() { // the reply could not be made durable
					break
				}
			}
			fault.Heal()
			s.Close()
			_ = store.Close() // it may have failed
		}
	}
	if errors < 100 {
		t.Errorf("only %d errors: the faults did not come through", errors)
	}
}
