// Package etcd keeps the record of a group in etcd, version 3.
package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stavedb/stave/internal/group"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Service is a record in one key of etcd, as JSON, {"term":2,"primary":"a","in_sync":[{"id":"a","incarnation":1}],
// "addresses":{"a":"10.0.0.1:6379"}}, whose version is etcd's of the key: it begins with 1 where a deleted key is
// made anew. So the key of a group is not to be deleted, nor etcd to be restored from a backup, while nodes run that know it. (Those that
// start later know by what they have noted: group.Noting.)
type Service struct {
	client *clientv3.Client
	key    string
}

var _ group.Service = (*Service)(nil)

// New returns the service of a record. The client is the caller's to close. It should have DialKeepAliveTime and DialKeepAliveTimeout
// set, to seconds: else it stays with a member of etcd whose machine has vanished until TCP gives up.
func New(client *clientv3.Client, key string) *Service { return &Service{client, key} }

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
	for ctx.Err() == nil {
		s.watch(ctx, fn)
		select {
		case <-ctx.Done():
		case <-time.After(watchRetry):
		}
	}
}

// watch is one attempt, which lasts a minute at most.
func (s *Service) watch(ctx context.Context, fn func(group.Versioned)) {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), watchMost)
	defer cancel()
	within, done := context.WithTimeout(ctx, readWithin)
	v, revision, err := s.read(within)
	if done(); err != nil {
		return
	}
	fn(v)
	for r := range s.client.Watch(ctx, s.key, clientv3.WithRev(revision+1)) {
		if r.Err() != nil {
			return
		}
		for _, e := range r.Events {
			if e.Type != mvccpb.PUT {
				continue
			}
			v, err := s.decode([]*mvccpb.KeyValue{e.Kv})
			if err != nil {
				return
			}
			fn(v)
		}
	}
}
