// Package etcd keeps the record of a group in etcd, version 3.
package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/group"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Service is a record in one key of etcd, as JSON, {"term":2,"primary":"a","in_sync":[{"id":"a","incarnation":1}],
// "addresses":{"a":"10.0.0.1:6379"},"slots":"0-8191"}, whose version is etcd's of the key: it begins with 1 where a deleted key is
// made anew. So the key of a group is not to be deleted, nor etcd to be restored from a backup, while nodes run that know it. (Those that
// start later know by what they have noted: group.Noting.)
//
// The groups of a cluster have keys that are the same up to the last slash.
type Service struct {
	client *clientv3.Client
	key    string
	prefix string // the key up to its last slash
}

var (
	_ group.Service = (*Service)(nil)
	_ group.Others  = (*Service)(nil)
)

// New returns the service of a record, in a key such as /stave/default/groups/main. The client is the caller's to close. It should have DialKeepAliveTime and DialKeepAliveTimeout
// set, to seconds: else it stays with a member of etcd whose machine has vanished until TCP gives up.
func New(client *clientv3.Client, key string) *Service {
	return &Service{client, key, key[:strings.LastIndexByte(key, '/')+1]}
}

// Read returns the record as a quorum of etcd has it.
func (s *Service) Read(ctx context.Context) (group.Versioned, error) {
	v, _, err := s.read(ctx)
	return v, err
}

// read returns the revision of etcd as well.
func (s *Service) read(ctx context.Context) (v group.Versioned, revision int64, err error) {
	r, err := s.client.Get(ctx, s.key)
	if err != nil {
		return v, 0, fmt.Errorf("etcd: read %s: %w", s.key, err)
	}
	v, err = s.decode(r.Kvs)
	return v, r.Header.Revision, err
}

// Swap replaces the record in one transaction of etcd.
func (s *Service) Swap(ctx context.Context, w group.Swap) (group.Versioned, error) {
	text, err := json.Marshal(w.Record)
	if err != nil {
		return group.Versioned{}, err
	}
	if w.If == 0 {
		return s.begin(ctx, w, string(text))
	}
	r, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.Version(s.key), "=", w.If)).
		Then(clientv3.OpPut(s.key, string(text))).Else(clientv3.OpGet(s.key)).Commit()
	switch {
	case err != nil:
		return group.Versioned{}, fmt.Errorf("etcd: swap %s: %w", s.key, err)
	case r.Succeeded:
		return group.Versioned{Version: w.If + 1, Record: w.Record}, nil
	}
	return s.decode(r.Responses[0].GetResponseRange().Kvs)
}

// begin makes the record. No other group has its slots: in a transaction that fails if one was begun since they were read.
func (s *Service) begin(ctx context.Context, w group.Swap, text string) (group.Versioned, error) {
	r, err := s.client.Get(ctx, s.prefix, clientv3.WithPrefix())
	if err != nil {
		return group.Versioned{}, fmt.Errorf("etcd: read %s: %w", s.prefix, err)
	}
	if i := slices.IndexFunc(r.Kvs, func(kv *mvccpb.KeyValue) bool { return string(kv.Key) == s.key }); i >= 0 {
		return s.decode(r.Kvs[i:][:1])
	}
	others, err := s.others(r.Kvs)
	if err == nil {
		err = group.CheckSlots(w.Record.Slots, others)
	}
	if err != nil {
		return group.Versioned{}, err
	}
	done, err := s.client.Txn(ctx).If(
		clientv3.Compare(clientv3.Version(s.key), "=", 0),
		clientv3.Compare(clientv3.CreateRevision(s.prefix).WithPrefix(), "<", r.Header.Revision+1),
	).Then(clientv3.OpPut(s.key, text)).Commit()
	switch {
	case err != nil:
		return group.Versioned{}, fmt.Errorf("etcd: begin %s: %w", s.key, err)
	case !done.Succeeded:
		return group.Versioned{}, fmt.Errorf("etcd: begin %s: a group of the cluster was begun meanwhile", s.key)
	}
	return group.Versioned{Version: 1, Record: w.Record}, nil
}

// others returns the records of the other groups of the cluster, by their names, and an error if there are some that cannot be read.
func (s *Service) others(kvs []*mvccpb.KeyValue) (others map[string]group.Record, err error) {
	others = make(map[string]group.Record)
	for _, kv := range kvs {
		err = errors.Join(err, s.note(others, kv))
	}
	return others, err
}

// note has what a key has replace what it had, if it is that of another group. Nothing stands for a record that cannot be read.
func (s *Service) note(others map[string]group.Record, kv *mvccpb.KeyValue) error {
	key := string(kv.Key)
	name := strings.TrimPrefix(key, s.prefix)
	if key == s.key || !group.IsName(name) {
		return nil
	}
	delete(others, name)
	if len(kv.Value) == 0 { // it was deleted
		return nil
	}
	v, err := (&Service{key: key}).decode([]*mvccpb.KeyValue{kv})
	if err == nil {
		others[name] = v.Record
	}
	return err
}

// decode returns the record of the key, which is there once or not at all.
func (s *Service) decode(kvs []*mvccpb.KeyValue) (v group.Versioned, err error) {
	if len(kvs) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(kvs[0].Value, &v.Record); err != nil {
		return group.Versioned{}, fmt.Errorf("etcd: %s is no record of a group: %w", s.key, err)
	}
	if v.Term == 0 || !slices.ContainsFunc(v.InSync, func(m group.Member) bool { return m.ID == v.Primary }) {
		return group.Versioned{}, fmt.Errorf("etcd: %s is no record of a group: it lacks a term, or its primary among those in sync", s.key)
	}
	v.Version = kvs[0].Version
	return v, nil
}

// Waits of Watch before it tries again.
const (
	watchRetry = 100 * time.Millisecond
	readWithin = 2 * time.Second
	watchMost  = time.Minute // the connection may be dead, and nobody say so
)

// Watch reads the record and follows its changes from there on. Where a member of etcd has lost its leader, or what is to be
// followed has been compacted, it begins again.
func (s *Service) Watch(ctx context.Context, fn func(group.Versioned)) {
	again(ctx, func(ctx context.Context) error {
		within, done := context.WithTimeout(ctx, readWithin)
		v, revision, err := s.read(within)
		if done(); err != nil {
			return err
		}
		fn(v)
		return s.follow(ctx, s.key, revision, func(e *clientv3.Event) error {
			if e.Type != mvccpb.PUT {
				return nil
			}
			v, err := s.decode([]*mvccpb.KeyValue{e.Kv})
			if err == nil {
				fn(v)
			}
			return err
		})
	})
}

// WatchOthers reads the records of the other groups and follows their changes, as Watch does.
func (s *Service) WatchOthers(ctx context.Context, fn func(map[string]group.Record)) {
	again(ctx, func(ctx context.Context) error {
		within, done := context.WithTimeout(ctx, readWithin)
		r, err := s.client.Get(within, s.prefix, clientv3.WithPrefix())
		if done(); err != nil {
			return err
		}
		others, _ := s.others(r.Kvs) // clients cannot be sent to a group whose record cannot be read
		fn(maps.Clone(others))
		return s.follow(ctx, s.prefix, r.Header.Revision, func(e *clientv3.Event) error {
			_ = s.note(others, e.Kv)
			fn(maps.Clone(others))
			return nil
		}, clientv3.WithPrefix())
	})
}

// again makes attempts until ctx ends, each of a minute at most.
func again(ctx context.Context, attempt func(context.Context) error) {
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), watchMost)
		_ = attempt(within) // the next one begins anew
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(watchRetry):
		}
	}
}

// follow calls fn for the changes after a revision, until one returns an error.
func (s *Service) follow(ctx context.Context, key string, after int64, fn func(*clientv3.Event) error, o ...clientv3.OpOption) error {
	for r := range s.client.Watch(ctx, key, append(o, clientv3.WithRev(after+1))...) {
		if err := r.Err(); err != nil {
			return err
		}
		for _, e := range r.Events {
			if err := fn(e); err != nil {
				return err
			}
		}
	}
	return nil
}
