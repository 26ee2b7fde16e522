package transfer

import (
	"context"
	"time"
)

// Options are how keys travel.
type Options struct {
	Match     string // a glob; "": all keys
	Rate      int    // keys per second at most; 0: no limit
	KeepGoing bool   // skip what the other side refuses
	// Warn is called with what is noteworthy and ends nothing: the first hundred keys that are skipped, or differ.
	// Default: nothing.
	Warn func(error)
	// Progress is called after a page of keys with the keys and the bytes of their values so far. It must be quick.
	// Default: nothing.
	Progress func(keys, bytes int64)
}

// ImportOptions are how keys come from a server.
type ImportOptions struct {
	Options
	Database int    // the only one; -1: all
	Type     string // of the keys; "": any
	State    string // the file that notes the progress, so that another import goes on from there; "": none
}

// ExportOptions are how keys go to a server.
type ExportOptions struct {
	Options
	Namespaces []int
	Libraries  bool // of functions go, too
	Database   int  // the one for the keys of all namespaces; -1: that of the namespace's number
}

// A Result is what was done.
type Result struct {
	Keys      int64 // stored, or compared
	Libraries int64 // of functions, stored
	Expired   int64 // keys that had gone by the time that they were stored
	Skipped   int64 // keys and libraries
	Different int64 // keys and libraries
	Bytes     int64 // of values
}

// maxNamed is how many keys that are skipped, or differ, are named one by one; all of them are counted.
const maxNamed = 100

// skip names what the other side cannot take, and counts it. Without KeepGoing it returns end.
func (o *Options) skip(r *Result, why, end error) error {
	if !o.KeepGoing {
		return end
	}
	if r.Skipped++; r.Skipped <= maxNamed {
		o.warn(why)
	}
	return nil
}

// warn passes a warning on, if somebody wants it.
func (o *Options) warn(err error) {
	if o.Warn != nil {
		o.Warn(err)
	}
}

// pace reports the progress, and waits until so many keys are due: those so far, at the rate, since the start. A
// transfer that was slow for a while may catch up after that.
func (o *Options) pace(ctx context.Context, started time.Time, r *Result) error {
	if o.Progress != nil {
		o.Progress(r.Keys, r.Bytes)
	}
	if o.Rate <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(started.Add(time.Duration(float64(r.Keys) / float64(o.Rate) * float64(time.Second))))):
		return nil
	}
}
