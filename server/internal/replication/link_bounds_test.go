package replication

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// bounded is a link in the middle of a stream, which takes transactions of so many bytes, and the bytes that it has passed on.
func bounded(t *testing.T, most int) (l *Link, passedOn *bytes.Buffer) {
	t.Helper()
	passedOn = new(bytes.Buffer)
	l = NewLink(Options{Known: true, Origin: at("a", 0, 0)}, Replica{
		Apply: func(_ []Command, received []byte, _ Origin) error {
			passedOn.Write(received)
			return nil
		},
		Load: func(io.Reader, Origin, func(io.Reader) error) (int, error) { panic("nothing is to be loaded") },
	})
	l.mostTransaction = most
	if _, err := l.Feed([]byte("+PONG\r\n+OK\r\n+OK\r\n+OK\r\n$0\r\n\r\n+CONTINUE\r\n")); err != nil {
		t.Fatal(err)
	}
	return l, passedOn
}

// TestTransactionIsBounded: a transaction of the master takes no more than so much memory, whatever is in it: what is received
// waits for its end. What goes as far as the bound is passed on.
func TestTransactionIsBounded(t *testing.T) {
	const most = 64 << 10
	for _, words := range [][]string{{"PING"}, {"SELECT", "0"}, {"MULTI"}, {"SET", "k", strings.Repeat("v", 100)}} {
		one := commandOf(words...)
		l, passedOn := bounded(t, most)
		all := commandOf("MULTI")
		for len(all)+len(one) <= most {
			all = append(all, one...)
		}
		all = append(all, commandOf("EXEC")...)
		if _, err := l.Feed(all); err != nil || !bytes.Equal(passedOn.Bytes(), all) {
			t.Errorf("%s: a transaction within the bound: %v, %d bytes of %d were passed on", words[0], err, passedOn.Len(), len(all))
		}
		_, err := l.Feed(commandOf("MULTI"))
		for n := 0; err == nil && n < 4*most; n += len(one) {
			_, err = l.Feed(one)
		}
		if err == nil || !strings.Contains(err.Error(), "larger than") {
			t.Errorf("%s: a transaction without an end: %v, and %d bytes are kept", words[0], err, len(l.raw))
		}
	}
}

// TestLargeBuffersAreReleased: after a large transaction, and one of many commands, a link keeps the memory of neither.
func TestLargeBuffersAreReleased(t *testing.T) {
	l, passedOn := bounded(t, maxTransaction)
	all := commandOf("MULTI")
	for range 8 * keepCommands {
		all = append(all, commandOf("SET", "k", strings.Repeat("v", 300))...)
	}
	all = append(append(all, commandOf("EXEC")...), commandOf("PING")...)
	for rest := all; len(rest) > 0; {
		n := min(len(rest), 100_000)
		if _, err := l.Feed(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if !bytes.Equal(passedOn.Bytes(), all) {
		t.Errorf("%d bytes of %d were passed on", passedOn.Len(), len(all))
	}
	if cap(l.raw) > keepBytes || cap(l.pending) > keepCommands {
		t.Errorf("the link keeps room for %d bytes and %d commands", cap(l.raw), cap(l.pending))
	}
}
