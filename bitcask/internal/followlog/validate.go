package followlog

import (
	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

// Validate finds what applying an entry would find wrong with it.
func Validate(sg *segment.Segment, e *format.Entry) (err error) {
	ok, reason := true, ""
	switch e.Kind {
	case format.KindDeadline, format.KindFieldDeadline:
		_, err = e.Deadline(sg.Name)
	case format.KindElement, format.KindElementTombstone:
		ok, reason = validElement(e)
	case format.KindMeta:
		if e.Type == keydir.Stream {
			_, ok = format.ParseStreamMeta(e.Inline)
		}
		reason = format.BadStreamMeta
	case format.KindNamespaces:
		ok, reason = namespace.Parses(e.Inline), "namespace map"
	}
	if !ok {
		return &failure.CorruptError{File: sg.Name, Offset: int64(e.At), Reason: reason}
	}
	return err
}

// validElement is Validate for an element or its tombstone.
func validElement(e *format.Entry) (ok bool, reason string) {
	there := e.Kind == format.KindElement
	switch ok = true; e.Type {
	case keydir.ZSet:
		if there {
			_, ok = ordered.ParseHex(e.Inline)
		}
		return ok, "score is not 16 hex digits"
	case keydir.List, keydir.Chunks:
		index, is := format.ParseIndex(e.Elem)
		if ok = is; ok && there && e.Type == keydir.Chunks {
			_, _, ok = keydir.ChunkAt(index)
		}
		return ok, "no index of a list or of a chunk"
	case keydir.Stream:
		_, ok = format.ParseEntryName(e.Elem)
		return ok, format.BadEntryName
	case keydir.StreamGroups:
		if there {
			_, ok = keydir.GroupsScore(e.Elem, e.Inline)
		} else {
			_, ok = keydir.GroupsRangeOf(e.Elem)
		}
		return ok, format.BadGroups
	}
	return true, ""
}
