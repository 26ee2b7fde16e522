package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/remote"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/jsonl"
)

// Verify compares every key of a server, and every key that the store alone has. It changes nothing. It reads all
// values of both sides, so it takes longer than an import. Keys that are written meanwhile may be reported though they
// are right.
func Verify(ctx context.Context, store *db.Store, conn *remote.Conn, o ImportOptions) (Result, error) {
	im := &importer{link: link{conn}, store: store, o: o, compare: true, started: time.Now()}
	err := im.run(ctx)
	return im.Result, err
}

// compareLibraries compares the libraries of functions, by name and source to the last byte.
func (im *importer) compareLibraries(theirs map[string]string) error {
	ours, err := serverside.DB.Libraries(im.store)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if _, ok := ours[name]; !ok {
			im.differs(fmt.Errorf("library %s is on one side only", humanize.Name(name, 60)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		switch other, ok := theirs[name]; {
		case !ok:
			im.differs(fmt.Errorf("library %s is in the store only", humanize.Name(name, 60)))
		case other != ours[name]:
			im.differs(fmt.Errorf("library %s has another text", humanize.Name(name, 60)))
		}
	}
	return nil
}

// strangers names the keys that the store has and the server has not. It asks for existence only: those that both have
// were compared before.
func (im *importer) strangers(ctx context.Context) error {
	for _, ns := range im.store.Stats().Namespaces {
		if im.o.Database >= 0 && ns.Namespace != im.o.Database {
			continue
		}
		store, err := im.store.Use(ns.Namespace)
		if err != nil {
			return err
		}
		if _, err := im.Call(ctx, "SELECT", fmt.Sprint(ns.Namespace)); err != nil {
			return fmt.Errorf("the keys of namespace %d: %w; a URL with a database compares that one alone", ns.Namespace, err)
		}
		for cursor, more := uint64(0), true; more; more = cursor != 0 {
			var page []db.KeyInfo
			if page, cursor, err = store.Keyspace().Scan(cursor, db.KeyScanOptions{Match: im.o.Match, Count: pageKeys}); err != nil {
				return err
			}
			page = slices.DeleteFunc(page, func(k db.KeyInfo) bool { return im.o.Type != "" && !strings.EqualFold(k.Type.String(), im.o.Type) })
			gone, err := im.missing(ctx, page)
			if err != nil {
				return err
			}
			for _, key := range gone {
				im.differs(fmt.Errorf("key %s is in the store only", humanize.Name(key, 60)))
			}
		}
	}
	return nil
}

// differs counts a difference, and names the first maxNamed.
func (im *importer) differs(why error) {
	if im.Different++; im.Different <= maxNamed {
		im.o.warn(why)
	}
}

// comparePage compares a page of keys with the store, and names those that differ. Deadlines of a server that does not
// tell them exactly may be a second apart: they were computed from two clocks.
func (im *importer) comparePage(store *db.Store, keys [][]byte, found []dumped) error {
	ours := make([]dumped, len(keys))
	for i, key := range keys {
		var err error
		if ours[i], err = dumpOwn(store, string(key)); err != nil {
			return fmt.Errorf("key %s: %w", humanize.Name(string(key), 60), err)
		}
	}
	// In milliseconds.
	slack := int64(0)
	if !im.exact {
		slack = 1000
	}
	different, err := compareDumps(keys, found, ours, slack)
	if err != nil {
		return err
	}
	im.Keys += int64(len(keys))
	for _, why := range different {
		im.differs(why)
	}
	return nil
}

// dumpOwn is what the store has of a key, in one view, so that the deadline is that of the value. A key that is not
// there has no payload, and that is no error.
func dumpOwn(store *db.Store, key string) (d dumped, err error) {
	err = store.ViewKeys([]string{key}, func(tx *db.Tx) error {
		if d.payload, err = tx.Key(key).Dump(); err != nil {
			return err
		}
		at, err := tx.Key(key).Deadline()
		if !at.IsZero() {
			d.deadline = at.UnixMilli()
		}
		return err
	})
	if errors.Is(err, db.ErrNotFound) {
		return dumped{}, nil
	}
	return d, err
}

// compareDumps compares what two servers have of the same keys, and says how they differ. Two payloads may encode the
// same value in different ways and orders, so both are restored, and compared as lines of JSON, which have an order.
// The keys get numbers for names in the stores in memory, by which a line finds its place; the cycle of expiry is off
// there. a and b are not changed. slack is by how many milliseconds deadlines may differ. The error is one of this
// program, not of a key.
func compareDumps(keys [][]byte, a, b []dumped, slack int64) (different []error, err error) {
	lines := func(of []dumped) ([][]byte, error) {
		store, err := db.OpenMemory(&db.Options{NoMerge: true, ExpireEvery: -1})
		if err != nil {
			return nil, err
		}
		defer store.Close()
		for i, d := range of {
			if d.payload == nil || d.refused != nil {
				continue
			}
			if err := store.Key(fmt.Sprintf("%06d", i)).Restore(d.payload); err != nil {
				of[i].refused = err
			}
		}
		var out bytes.Buffer
		if _, err := jsonl.Export(context.Background(), store, &out, jsonl.ExportOptions{Sort: true}); err != nil {
			return nil, err
		}
		list := make([][]byte, len(of))
		for line := range bytes.Lines(out.Bytes()) { // a key has none if the last of its fields has expired meanwhile
			var named struct{ Key string }
			if err := json.Unmarshal(line, &named); err != nil {
				return nil, err
			}
			i, err := strconv.Atoi(named.Key)
			if err != nil {
				return nil, err
			}
			list[i] = line
		}
		return list, nil
	}
	// Copies, because a payload that is refused here is noted in them.
	a, b = slices.Clone(a), slices.Clone(b)
	first, err := lines(a)
	if err != nil {
		return nil, err
	}
	second, err := lines(b)
	if err != nil {
		return nil, err
	}
	for i, key := range keys {
		// Only the first difference is reported: of another value the deadline does not matter.
		why := ""
		switch gap := a[i].deadline - b[i].deadline; {
		case a[i].payload == nil && b[i].payload == nil:
		case a[i].refused != nil || b[i].refused != nil:
			why = fmt.Sprintf("cannot be compared: %v", errors.Join(a[i].refused, b[i].refused))
		case (a[i].payload == nil) != (b[i].payload == nil):
			why = "is on one side only"
		case !bytes.Equal(first[i], second[i]):
			why = "has another value"
		case (a[i].deadline == 0) != (b[i].deadline == 0) || gap < -slack || gap > slack:
			why = fmt.Sprintf("has another deadline: %s and %s", deadlineText(a[i].deadline), deadlineText(b[i].deadline))
		}
		if why != "" {
			different = append(different, fmt.Errorf("key %s %s", humanize.Name(string(key), 60), why))
		}
	}
	return different, nil
}

// deadlineText shows a deadline, in Unix milliseconds, to the millisecond that it may differ by.
func deadlineText(ms int64) string {
	if ms == 0 {
		return "none"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
