package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// switches is how often the threads of a process have given up their processors by themselves so far.
func switches(t *testing.T, pid int) (n int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if figure, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				k, err := strconv.Atoi(strings.TrimSpace(figure))
				if err != nil {
					t.Fatal(err)
				}
				n += k
			}
		}
	}
	return n
}

// TestIdleServerSleeps: a server that has nothing to do wakes once a second, for all that it looks at. One wake-up is about six
// switches of the threads of the Go runtime, more on a busy machine; a loop with moments of its own adds four a second.
func TestIdleServerSleeps(t *testing.T) {
	const window, most = 3 * time.Second, 12 // switches a second; it was 30 when each loop had its own moments
	p := startProgram(t, "--dir", filepath.Join(t.TempDir(), "store"), "--addr", "127.0.0.1:0")
	p.shows("PONG\n", "PING")
	least := 0
	for began := time.Now(); time.Since(began) < 2*time.Minute; { // until the machine leaves it alone for long enough
		before := switches(t, p.cmd.Process.Pid)
		time.Sleep(window)
		n := (switches(t, p.cmd.Process.Pid) - before) / int(window/time.Second)
		if n > 0 && n <= most {
			return
		}
		if least == 0 || n < least {
			least = n
		}
	}
	t.Errorf("%d switches a second at least, want %d at most", least, most)
}
