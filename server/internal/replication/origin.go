package replication

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
)

// Origin is where a replica stands in the stream of its master.
type Origin = serverside.Origin

// Done reports whether what was to bring a store to a position has, also if it has an error: that may have come after the commit.
func Done(store *db.Store, at Origin, err error) (bool, error) {
	if err == nil {
		return true, nil
	}
	now, known := serverside.DB.Origin(store)
	return known && now == at, err
}

// replIDSize is the length of the id of a replication: hexadecimal digits.
const replIDSize = len(Origin{}.ReplID)

// IsReplID reports whether a text may be the id of a replication.
func IsReplID(text string) bool {
	if len(text) != replIDSize {
		return false
	}
	_, err := hex.DecodeString(text)
	return err == nil
}

// parseReplID checks an id.
func parseReplID(text string) (id [replIDSize]byte, err error) {
	if !IsReplID(text) {
		return id, fmt.Errorf("the master sent %.60q as the id of its replication", text)
	}
	copy(id[:], text)
	return id, nil
}

// parseOffset checks an offset.
func parseOffset(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("the master sent %.60q as its offset", text)
	}
	return n, nil
}
