//go:build unix

package db_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask/archive"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/chance"
)

// archiveKillEnv is the directory of the child of TestKilledArchiver.
const archiveKillEnv = "STAVE_ARCHIVE_KILL_TEST"

const killedKeys = 20

// TestKilledArchiverChild is the child: it counts, in one commit each, and is archived.
func TestKilledArchiverChild(t *testing.T) {
	parent := os.Getenv(archiveKillEnv)
	if parent == "" {
		t.Skip("this is the child of TestKilledArchiver")
	}
	to := ok[*archive.Directory](t)(archive.OpenDirectory(filepath.Join(parent, "archive")))
	s := ok[*db.Store](t)(db.Open(filepath.Join(parent, "store"), &db.Options{
		SegmentSize: 64 << 10, NoMerge: true, SyncEvery: 10 * time.Millisecond, Archive: &archive.Options{To: to, Every: 10 * time.Millisecond},
	}))
	out := os.NewFile(3, "what is archived")
	for {
		must(t, s.Update(func(tx *db.Tx) error {
			n, err := tx.String("n").Incr(1)
			if err != nil {
				return err
			}
			return tx.String(fmt.Sprint("k", n%killedKeys)).Put(fmt.Append(nil, n))
		}))
		st := s.Stats().Archive
		if st.Bases == 0 { // nothing can be restored yet
			st.Sequence = 0
		}
		if _, err := fmt.Fprintln(out, st.Sequence, st.Gaps); err != nil {
			return
		}
	}
}

// TestKilledArchiver kills a process that writes and archives, again and again. Whatever sequence number the archive has is
// restored to a number of whole commits, the same ones always, and what was archived before a kill still is.
func TestKilledArchiver(t *testing.T) {
	r, parent := chance.Rand(t), t.TempDir()
	kills, archived := 12, uint64(0)
	if testing.Short() || underRace {
		kills = 4
	}
	for n := 0; n < kills || archived == 0 && n < 20*kills; n++ { // ever longer, if the machine is slow
		seq, gaps := killArchiver(t, parent, time.Duration((20+r.IntN(250))*(n/kills+1))*time.Millisecond)
		if archived = max(archived, seq); gaps > 0 {
			t.Errorf("%d gaps", gaps)
		}
	}
	to := ok[*archive.Directory](t)(archive.OpenDirectory(filepath.Join(parent, "archive")))
	spans := ok[[]*archive.Span](t)(archive.Spans(t.Context(), to))
	if len(spans) == 0 || spans[len(spans)-1].Last.Sequence < archived {
		t.Fatalf("%d was archived, and there are %d spans: %+v", archived, len(spans), spans)
	}
	newest := spans[len(spans)-1] // there is one before it if the first kill left a base and none of the log
	first, last := newest.First.Sequence, newest.Last.Sequence
	for range 15 {
		seq := max(2, first+r.Uint64N(last-first+1))
		s, made := restoredTo(t, to, archive.Target{Sequence: seq})
		if made.Sequence > seq || made.Sequence+2 <= seq {
			t.Errorf("sequence %d: restored to %d", seq, made.Sequence)
		}
		n, err := strconv.Atoi(string(ok[[]byte](t)(s.String("n").Get())))
		must(t, err)
		equal(t, "commits", uint64(n)*2, made.Sequence)
		for i := max(1, n-killedKeys+1); i <= n; i++ {
			equal(t, fmt.Sprint("k", i%killedKeys), string(ok[[]byte](t)(s.String(fmt.Sprint("k", i%killedKeys)).Get())), fmt.Sprint(i))
		}
	}
}

// killArchiver runs a child for a while, and returns what it has said last.
func killArchiver(t *testing.T, parent string, wait time.Duration) (archived, gaps uint64) {
	t.Helper()
	read, write, err := os.Pipe()
	must(t, err)
	defer read.Close()
	var output strings.Builder
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledArchiverChild$")
	cmd.Env = append(os.Environ(), archiveKillEnv+"="+parent)
	cmd.ExtraFiles = []*os.File{write}
	cmd.Stdout, cmd.Stderr = &output, &output
	must(t, cmd.Start())
	must(t, write.Close())
	kill := time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	for lines := bufio.NewReader(read); ; {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break
		}
		must(t, err)
		_, err = fmt.Sscan(line, &archived, &gaps)
		must(t, err)
	}
	if err := cmd.Wait(); strings.Contains(output.String(), "FAIL") {
		t.Fatalf("the child failed: %v\n%s", err, output.String())
	}
	return archived, gaps
}
