package group

import (
	"context"
	"fmt"
	"reflect"
	"sync"
)

// noting is a service whose member notes each record before it learns of that, and each swap before that is asked for.
type noting struct {
	Service
	keep func(Noted) error

	mu    sync.Mutex // guards the rest, and keep
	noted Noted
	read  bool // the process has had a record as an answer
}

// Noting returns a service for the driver of a member that has noted something before, in another process. Keep is to keep what is noted as
// durably as the member's commits. It may wait: to the member an answer comes late then, and after an error there is none. A record that
// is gone, or older at first than what was noted, is an error, too.
func Noting(s Service, noted Noted, keep func(Noted) error) Service {
	return &noting{Service: s, noted: noted, keep: keep}
}

func (s *noting) Read(ctx context.Context) (Versioned, error) {
	v, err := s.Service.Read(ctx)
	if err == nil {
		err = s.learn(v, false)
	}
	return v, err
}

func (s *noting) Swap(ctx context.Context, w Swap) (v Versioned, err error) {
	if err := s.try(w); err != nil {
		return v, err
	}
	if v, err = s.Service.Swap(ctx, w); err == nil {
		err = s.learn(v, false)
	}
	return v, err
}

func (s *noting) Watch(ctx context.Context, fn func(Versioned)) {
	s.Service.Watch(ctx, func(v Versioned) {
		if s.learn(v, true) == nil {
			fn(v)
		}
	})
}

// learn notes a record. Terms grow also where it was made anew, and versions begin again. Before the first answer a member learns nothing from a
// watch, which may have an old record.
func (s *noting) learn(v Versioned, isWatched bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	newer := compareVersions(v, s.noted.Known)
	switch {
	case isWatched && (v.Version == 0 || !s.read):
		return nil
	case newer < 0 && (v.Version == 0 || !s.read):
		return &OlderRecordError{v, s.noted.Known}
	case newer > 0:
		if err := s.note(Noted{s.noted.Group, v, nil}); err != nil {
			return err
		}
	}
	s.read = s.read || v.Version > 0
	return nil
}

// try notes a swap. One of a record that is not the newest will fail, and one that is tried again is noted.
func (s *noting) try(w Swap) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.If != s.noted.Known.Version || s.noted.Tried != nil && reflect.DeepEqual(*s.noted.Tried, w) {
		return nil
	}
	return s.note(Noted{s.noted.Group, s.noted.Known, &w})
}

// note is called with s.mu locked.
func (s *noting) note(n Noted) error {
	if err := s.keep(n); err != nil {
		return fmt.Errorf("noting the record of the group: %w", err)
	}
	s.noted = n
	return nil
}

// OlderRecordError says that the service has an older record than a member has seen. It has lost its data, or is a copy of the past: those in
// sync by that record may lack what has been acknowledged since.
type OlderRecordError struct{ Is, Seen Versioned }

func (e *OlderRecordError) Error() string {
	if e.Is.Version == 0 {
		return fmt.Sprintf("the record of the group is gone, and this member has seen it (term %d): etcd has lost its data", e.Seen.Term)
	}
	return fmt.Sprintf("the record of the group is older (term %d, version %d) than what this member has seen of it (%d, %d): etcd has lost its data, or was restored from a backup",
		e.Is.Term, e.Is.Version, e.Seen.Term, e.Seen.Version)
}
