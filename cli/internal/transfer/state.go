package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// A state is where an import stands, as --state keeps it. A cursor of SCAN is one for a run of a server. All pages
// before the cursor are on disk: the store is synced before the state is written, so it never promises too much. It may
// be some seconds old; what came after it is imported once more.
type state struct {
	Run string `json:"run"`
	importOf
	Database int    `json:"database"`
	Cursor   string `json:"cursor"`
	Done     bool   `json:"done"`
}

// importOf is what an import takes, and to where: another one cannot go on from its state.
type importOf struct {
	Store string `json:"store"` // its id
	Only  int    `json:"only"`  // database; -1: all
	Match string `json:"match"`
	Type  string `json:"type"`
}

// loadState reads where an earlier import stopped. A cursor of another run of the server, or one that came to its end,
// is no use: the import begins from the beginning, with a warning. The state of another import that can still go on is an
// error instead, because this one would overwrite it.
func (im *importer) loadState(run string, of importOf) error {
	im.state = state{Run: run, importOf: of}
	if im.o.State == "" {
		return nil
	}
	text, err := os.ReadFile(im.o.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var before state
	if err := json.Unmarshal(text, &before); err != nil {
		return fmt.Errorf("%s is not the state of an import: %w", im.o.State, err)
	}
	if before.Run != run || before.Done {
		im.o.warn(fmt.Errorf("%s is of an import that has ended, or of another run of the server: starting from the beginning", im.o.State))
		return nil
	}
	if before.importOf != of {
		return fmt.Errorf("%s is of an import to another store, or of other keys (database, --match, --type): give this one a file of its own", im.o.State)
	}
	im.state = before
	return nil
}

// saveState notes where the import stands, every few seconds and at its end, after all of it is on disk. The file is
// replaced by a rename, so it is the old or the new one if the process ends here. Its own name is not synced: a power
// cut may bring the old one back, which is only older.
func (im *importer) saveState(now bool) error {
	const interval = 2 * time.Second
	if im.o.State == "" || !im.loaded || im.compare || !now && time.Since(im.saved) < interval {
		return nil
	}
	im.saved = time.Now()
	if err := im.store.Sync(); err != nil {
		return err
	}
	text, err := json.Marshal(im.state)
	if err == nil {
		err = os.WriteFile(im.o.State+".new", append(text, '\n'), 0o644)
	}
	if err == nil {
		err = os.Rename(im.o.State+".new", im.o.State)
	}
	return err
}
