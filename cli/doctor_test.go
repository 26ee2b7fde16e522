package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What is fine has no advice, and what is not has one.
func TestDiagnoses(t *testing.T) {
	const segment, gb = 256 << 20, int64(1e9)
	tests := []struct {
		got  diagnosis
		want string
	}{
		{judgeRoom(100*gb, 200*gb, gb, segment), stateOK},
		{judgeRoom(10*gb, 200*gb, 100*gb, segment), stateWarning},
		{judgeRoom(400<<20, 200*gb, 0, segment), stateWarning},
		{judgeRoom(1<<20, 200*gb, 0, segment), stateFailure},
		{judgeFiles(65536), stateOK},
		{judgeFiles(1024), stateWarning},
		{judgeFileSystem("ext4"), stateOK},
		{judgeFileSystem("tmpfs"), stateWarning},
		{judgeFileSystem("nfs"), stateWarning},
		{judgeSync(200*time.Microsecond, 3*time.Millisecond, 50), stateOK},
		{judgeSync(time.Microsecond, 3*time.Microsecond, 50), stateWarning},
		{judgeSync(40*time.Millisecond, 60*time.Millisecond, 50), stateWarning},
		{judgeSync(time.Millisecond, time.Second, 50), stateWarning},
		{examineClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), stateOK},
		{examineClock(time.Unix(0, 0)), stateFailure},
	}
	for _, test := range tests {
		if test.got.State != test.want || (test.got.Advice == "") != (test.want == stateOK) || test.got.Found == "" {
			t.Errorf("%+v, want %s", test.got, test.want)
		}
	}
}

// What a demoted master alone had is named, and nothing else in that directory.
func TestOrphansAreNamed(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "orphans"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"notes", strings.Repeat("a", 40) + "-7.resp.new"} {
		if err := os.WriteFile(filepath.Join(dir, "orphans", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	named := func() bool {
		return slices.ContainsFunc(examineStore(t.Context(), dir), func(d diagnosis) bool { return d.Name == "orphans" && d.State == stateWarning })
	}
	if named() {
		t.Error("orphans are named, and there are none")
	}
	if err := os.WriteFile(filepath.Join(dir, "orphans", strings.Repeat("a", 40)+"-7.resp"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !named() {
		t.Error("orphans are not named")
	}
}

// The measurement leaves nothing behind, and says why it could not be made.
func TestSyncIsMeasured(t *testing.T) {
	dir := t.TempDir()
	times, err := syncTimes(t.Context(), dir, 5, time.Minute)
	if err != nil || len(times) != 5 {
		t.Errorf("%v, %v", times, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if d := examineSync(t.Context(), filepath.Join(dir, "none")); d.State != stateWarning || !strings.Contains(d.Found, "not measured") {
		t.Errorf("%+v", d)
	}
}
