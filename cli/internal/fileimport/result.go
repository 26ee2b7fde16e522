package fileimport

import "fmt"

// Options are how a file is imported.
type Options struct {
	Namespace int  // of what names none itself: lines and rows
	KeepGoing bool // skip what is bad
	// Warn is called with what is noteworthy and ends nothing, such as the first hundred that are skipped. Default:
	// nothing.
	Warn func(error)
	// Progress is called now and then with the bytes read, and with the keys stored, or the commands run. It must be
	// quick. Default: nothing.
	Progress func(bytes, keys int64)
}

// maxNamed is how many bad lines, keys, ... are named one by one: a file of the wrong kind would flood a terminal.
const maxNamed = 100

// skip counts what is bad, and names the first.
func (o Options) skip(r *Result, err error) {
	switch r.Skipped++; {
	case r.Skipped <= maxNamed:
		o.warn(err)
	case r.Skipped == maxNamed+1:
		o.warn(fmt.Errorf("more %ss follow; they are counted, not named", r.Unit))
	}
}

// warn passes a warning on, if somebody wants it.
func (o Options) warn(err error) {
	if o.Warn != nil {
		o.Warn(err)
	}
}

// progress reports, if somebody wants to know.
func (o Options) progress(bytes, keys int64) {
	if o.Progress != nil {
		o.Progress(bytes, keys)
	}
}

// An OptionError is an option that does not fit the file or the store.
type OptionError struct {
	Option string // key-template, value, score or db
	Err    error
}

func (e *OptionError) Error() string { return e.Option + ": " + e.Err.Error() }
func (e *OptionError) Unwrap() error { return e.Err }

// A Result is what an import did. Its JSON is an interface: programs read it.
type Result struct {
	Keys      int64            `json:"keys"`               // stored
	Libraries int64            `json:"libraries"`          // of functions, stored
	Expired   int64            `json:"expired"`            // keys whose deadline had passed
	Commands  int64            `json:"commands"`           // command lines run
	Skipped   int64            `json:"skipped"`            // bad lines, or keys
	LeftOut   map[string]int64 `json:"left_out,omitempty"` // what a store cannot hold, by name
	Bytes     int64            `json:"bytes"`              // read
	Seconds   float64          `json:"seconds"`

	Unit string `json:"-"` // what Skipped counts, in the singular
}

// Add adds the result of a part, but for the time, which is that of the whole import. The unit becomes that of the last
// part.
func (r *Result) Add(part Result) {
	r.Keys, r.Libraries, r.Expired = r.Keys+part.Keys, r.Libraries+part.Libraries, r.Expired+part.Expired
	r.Commands, r.Skipped, r.Bytes = r.Commands+part.Commands, r.Skipped+part.Skipped, r.Bytes+part.Bytes
	for name, n := range part.LeftOut {
		if r.LeftOut == nil {
			r.LeftOut = map[string]int64{}
		}
		r.LeftOut[name] += n
	}
	r.Unit = part.Unit
}
