package replication

import (
	"errors"
	"strconv"
	"strings"
)

// A master that does not continue the stream of its replica replaces all that the replica has. What the replica alone has is
// kept then (orphans.go), and where the two parted only the master knows: INFO replication says it, of Redis servers since 4.0.
// Its reply is the only one before the stream that has several lines.

// History is which streams a server has: its own, and up to an offset the one that this continues.
type History struct {
	ID        string
	Offset    int64
	Former    string // "" for none
	FormerEnd int64
}

// common returns up to which offset two histories are the same; ok is false if they have no stream in common.
func (h History) common(other History) (offset int64, ok bool) {
	type part struct {
		id  string
		end int64
	}
	for _, mine := range []part{{h.ID, h.Offset}, {h.Former, h.FormerEnd}} {
		for _, its := range []part{{other.ID, other.Offset}, {other.Former, other.FormerEnd}} {
			if mine.id == its.id && mine.id != "" {
				offset, ok = max(offset, min(mine.end, its.end)), true
			}
		}
	}
	return offset, ok
}

// now is the history of a server that had h a moment ago, and has this stream.
func (h History) now(id string, offset int64) History {
	if h.ID != id { // it is not the one of a moment ago
		return History{ID: id, Offset: offset}
	}
	h.Offset = offset
	return h
}

// History is the master's when it begins to send everything. If the link did not ask, or the master does not tell, it is the
// master's stream alone.
func (l *Link) History() History { return l.theirs }

// AskedEarly reports whether the master begins to send everything and has become one after it was asked for its history. What it
// said is no answer then: it may have got more of this server's stream since. Another link is to ask again.
func (l *Link) AskedEarly() bool { return l.early }

// askHistory asks for it, if the replica has a stream.
func (l *Link) askHistory() {
	if !l.options.Known {
		l.synchronize()
		return
	}
	l.step = stepHistory
	l.send("INFO", "replication")
}

// maxInfo bounds the master's INFO, in bytes.
const maxInfo = 64 << 10

// beginInfo takes the first line of the reply to INFO. A master that refuses it is followed none the less.
func (l *Link) beginInfo(line string) error {
	text, isBulk := strings.CutPrefix(line, "$")
	if !isBulk {
		l.synchronize()
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxInfo {
		return errors.New("the master's reply to INFO has no length, or is too long")
	}
	l.info = n + len("\r\n")
	return nil
}

// takeInfo takes one more line of INFO, without the byte that ends it.
func (l *Link) takeInfo(line string) {
	name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
	number, _ := strconv.ParseInt(value, 10, 64)
	switch h := &l.theirs; {
	case name == "master_replid" && IsReplID(value):
		h.ID = value
	case name == "master_repl_offset":
		h.Offset = number
	case name == "master_replid2" && IsReplID(value):
		h.Former = value
	case name == "second_repl_offset":
		h.FormerEnd = number - 1 // it is the number of the first byte that is another one, from 1; -1 for none
	}
	if l.info -= len(line) + len("\n"); l.info > 0 {
		return
	}
	if l.info = 0; l.theirs.FormerEnd < 0 {
		l.theirs.Former, l.theirs.FormerEnd = "", 0
	}
	l.synchronize()
}
