package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// importText imports text into a fresh store and returns its directory.
func importText(t *testing.T, text string, wantStatus int, flags ...string) (dir, stderr string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	var out, errs bytes.Buffer
	args := append([]string{"stave", "import", "--dir", dir}, flags...)
	if got := Run(append(args, "-"), strings.NewReader(text), &out, &errs); got != wantStatus {
		t.Fatalf("status %d, want %d: %s", got, wantStatus, errs.String())
	}
	return dir, errs.String()
}

// exported returns the sorted export of a store.
func exported(t *testing.T, dir string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if got := Run([]string{"stave", "export", "--dir", dir, "--sort"}, nil, &out, &errs); got != 0 {
		t.Fatalf("export: status %d: %s", got, errs.String())
	}
	return out.String()
}

// TestRefusedRecord has the store refuse records in the middle of a batch: the
// others of the batch must be stored all the same.
func TestRefusedRecord(t *testing.T) {
	line := func(key string) string { return `{"key":"` + key + `","type":"set","value":["a","b"]}` + "\n" }
	long := strings.Repeat("k", 70_000)
	text := line("a") + line(long) + line("b") + line("c") + line(long) + line("d")
	dir, stderr := importText(t, text, exitCommand)
	if !strings.Contains(stderr, "stdin:2: ") || exported(t, dir) != line("a") {
		t.Errorf("%s\n%s", clip(stderr, 200), clip(exported(t, dir), 500))
	}
	dir, stderr = importText(t, text, exitPartial, "--keep-going")
	if !strings.Contains(stderr, "stdin:2: ") || !strings.Contains(stderr, "stdin:5: ") || exported(t, dir) != line("a")+line("b")+line("c")+line("d") {
		t.Errorf("%s\n%s", clip(stderr, 200), clip(exported(t, dir), 500))
	}
}

// TestLargeCollection imports collections that take several commits each.
func TestLargeCollection(t *testing.T) {
	var text strings.Builder
	value := strings.Repeat("v", 40_000)
	for _, kind := range []string{"hash", "list"} {
		open, format, end := "{", `"%05d":"%s"`, "}"
		if kind == "list" {
			open, format, end = "[", `"%05d%s"`, "]"
		}
		fmt.Fprintf(&text, `{"key":"%s","type":"%s","expire_at_ms":4102444800000,"value":%s`, kind, kind, open)
		for i := range 450 {
			if i > 0 {
				text.WriteByte(',')
			}
			fmt.Fprintf(&text, format, i, value)
		}
		text.WriteString(end + "}\n")
	}
	dir, _ := importText(t, text.String(), exitOK)
	if got := exported(t, dir); got != text.String() {
		t.Errorf("%d bytes in, %d bytes out: %s", text.Len(), len(got), clip(got, 200))
	}
	gone := strings.ReplaceAll(text.String(), "4102444800000", "1")
	dir, _ = importText(t, gone, exitOK)
	if got := exported(t, dir); got != "" {
		t.Errorf("expired keys are there: %s", clip(got, 200))
	}
}

func TestBlanksAndByteOrderMark(t *testing.T) {
	dir, _ := importText(t, "\xef\xbb\xbf{\"key\":\"a\",\"type\":\"string\",\"value\":\"1\"}\r\n  \t{\"key\":\"b\",\"type\":\"string\",\"value\":\"2\"} \r\n \t SET c 3\r\n", exitOK)
	if n := strings.Count(exported(t, dir), "\n"); n != 3 {
		t.Errorf("%d keys: %s", n, exported(t, dir))
	}
}

func TestManyBadLinesAreCounted(t *testing.T) {
	_, stderr := importText(t, strings.Repeat("{\n", maxComplaints+50), exitPartial, "--keep-going")
	if n := strings.Count(stderr, "\n"); n != maxComplaints+1 {
		t.Errorf("%d lines of complaints", n)
	}
}

// TestExportIntoAFullPipe has the output fail.
func TestExportIntoAFullPipe(t *testing.T) {
	dir, _ := importText(t, `{"key":"a","type":"string","value":"1"}`, exitOK)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	var errs bytes.Buffer
	if got := Run([]string{"stave", "export", "--dir", dir}, nil, full, &errs); got != exitCommand || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("status %d: %s", got, errs.String())
	}
}

// clip shortens text for a message.
func clip(text string, n int) string {
	if len(text) > n {
		return text[:n] + "..."
	}
	return text
}
