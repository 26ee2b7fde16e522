package bitcask_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Where the system reports nothing, the store looks for itself, and has noticed within a second.
func TestDirectoryIsLookedAfter(t *testing.T) {
	for name, expect := range map[string]error{
		"LOCK": bitcask.ErrLockLost, "MANIFEST": bitcask.ErrDirectoryGone, "000000001.data": bitcask.ErrDirectoryGone, "": nil, "other": nil,
	} {
		for _, how := range []string{"removed", "moved aside", "replaced"} {
			if name == "" && how == "replaced" {
				continue
			}
			t.Run(name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					mem := vfs.NewMem()
					s, err := bitcask.Open("db", seam.With(&bitcask.Options{}, seam.Options{FS: vfstest.NewRecorder(vfstest.NewFault(mem))}))
					must(t, err)
					put(t, s, "k", "v")
					must(t, mem.MkdirAll("elsewhere"))
					write(t, mem, "db/other", nil)
					write(t, mem, "elsewhere/new", []byte("new"))
					time.Sleep(10*time.Second + 100*time.Millisecond) // not one of the moments at which it looks
					must(t, s.Err())
					switch {
					case name == "":
					case how == "removed":
						must(t, mem.Remove("db/"+name))
					case how == "moved aside":
						must(t, mem.Rename("db/"+name, "elsewhere/old"))
					default:
						must(t, mem.Rename("elsewhere/new", "db/"+name))
					}
					time.Sleep(time.Second)
					synctest.Wait()
					if err := s.Err(); expect == nil && err != nil || !errors.Is(err, expect) {
						t.Errorf("the error is %v, want %v", err, expect)
					}
					want(t, s, "k", "v")
					if err := s.Close(); !errors.Is(err, expect) {
						t.Errorf("Close gives %v, want %v", err, expect)
					}
				})
			})
		}
	}
}

// What the operator moves is logged when it is noticed, once, and nothing more happens.
func TestMovesOfTheDirectoryAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		var log strings.Builder
		s, err := bitcask.Open("db", seam.With(&bitcask.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, seam.Options{FS: mem}))
		must(t, err)
		for _, step := range []struct {
			do   func() error
			want string
		}{
			{func() error { return mem.RenameDir("db", "moved") }, "the directory was moved"},
			{func() error { return mem.MkdirAll("db") }, "another directory is in the place"},
			{func() error { return errors.Join(mem.RemoveDir("db"), mem.RenameDir("moved", "db")) }, "back in its place"},
		} {
			must(t, step.do())
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if !strings.Contains(log.String(), step.want) || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("the log has %q, want one line with %q", log.String(), step.want)
			}
			log.Reset()
			put(t, s, "k", "v")
			must(t, s.Rotate())
		}
		must(t, s.Close())
	})
}
