package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/internal/group"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The etcd of a member: three of them, one in each, keep the record of the group.

func isEndpoint(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.Trim(u.Path, "/") == ""
}

// ownEtcd is one that runs in this process.
type ownEtcd struct {
	conf  *embed.Config
	hosts []string // of all members
	log   *etcdLog
	run   *embed.Etcd
}

const etcdPort = "2380"

// newOwnEtcd reads the options of an etcd.
func newOwnEtcd(id, peers, dir, client string, rejoins bool, files transport.TLSInfo) (*ownEtcd, error) {
	conf := embed.NewConfig()
	conf.Name, conf.Dir = id, dir
	scheme := "http"
	if files.CertFile != "" {
		scheme = "https"
		conf.PeerTLSInfo, conf.ClientTLSInfo = files, files
	}
	e := &ownEtcd{conf: conf}
	var members, ids []string
	isOne := false
	for peer := range strings.SplitSeq(peers, ",") {
		one, host, ok := strings.Cut(peer, "=")
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), etcdPort)
		}
		u, err := url.Parse(scheme + "://" + host)
		if !ok || !group.IsName(one) || err != nil || u.Hostname() == "" || u.Path != "" {
			return nil, fmt.Errorf("--peers must be such as a=10.0.0.1,b=10.0.0.2,c=10.0.0.3, and has %q", peer)
		}
		ids, members, e.hosts = append(ids, one), append(members, one+"="+u.String()), append(e.hosts, u.Hostname())
		if one == id {
			isOne = true
			conf.ListenPeerUrls, conf.AdvertisePeerUrls = []url.URL{*u}, []url.URL{*u}
		}
	}
	slices.Sort(ids)
	switch {
	case len(slices.Compact(slices.Clone(ids))) < len(ids):
		return nil, fmt.Errorf("--peers names a member twice: %s", peers)
	case len(ids)%2 == 0:
		return nil, fmt.Errorf("--peers must name three members, or another odd number, not %d: etcd needs more than half of them", len(ids))
	case !isOne:
		return nil, fmt.Errorf("--peers names all members, and this one is not among them: --id is %q", id)
	}
	host, port, err := net.SplitHostPort(client)
	if err != nil || host == "" || port == "" {
		return nil, fmt.Errorf("--etcd-client must be HOST:PORT, not %q", client)
	}
	if !isLoopback(host) {
		e.hosts = append(e.hosts, host)
	}
	conf.ListenClientUrls = []url.URL{{Scheme: scheme, Host: client}}
	conf.AdvertiseClientUrls = conf.ListenClientUrls
	conf.InitialCluster, conf.InitialClusterToken = strings.Join(members, ","), "stave"
	if rejoins {
		conf.ClusterState = embed.ClusterStateFlagExisting
	}
	conf.EnableGRPCGateway = false // its connection would keep the end waiting
	conf.AutoCompactionMode, conf.AutoCompactionRetention = embed.CompactorModeRevision, "1000"
	return e, nil
}

// isOpen reports whether other machines can reach it.
func (e *ownEtcd) isOpen() bool {
	return slices.ContainsFunc(e.hosts, func(host string) bool { return !isLoopback(host) })
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// start starts it, and does not wait until it has found others.
func (e *ownEtcd) start(logger *slog.Logger) (err error) {
	e.log = &etcdLog{logger: logger, closing: new(atomic.Bool)}
	e.conf.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(e.log))
	if e.run, err = embed.StartEtcd(e.conf); err != nil {
		return fmt.Errorf("the etcd of this member, in %s: %w", e.conf.Dir, err)
	}
	return nil
}

func (e *ownEtcd) endpoints() []string {
	return []string{e.conf.ListenClientUrls[0].Scheme + "://" + e.run.Clients[0].Addr().String()}
}

// ended is closed when it has ended by itself.
func (e *ownEtcd) ended() <-chan struct{} { return e.run.Server.StopNotify() }

// close ends it. Close alone would wait for seconds for another one to lead, though all end, or for calls that wait for a leader.
func (e *ownEtcd) close() error {
	if e != nil {
		e.log.closing.Store(true)
		late := time.AfterFunc(time.Second, e.run.Server.HardStop)
		e.run.Server.Stop()
		late.Stop()
		e.run.Close()
	}
	return nil
}

// etcdLog passes what etcd logs on to the log of the server: errors, and with loglevel debug warnings, of which there are many while another
// member is away.
type etcdLog struct {
	logger  *slog.Logger
	closing *atomic.Bool // closed listeners are no errors any more
	fields  []zapcore.Field
}

func (l *etcdLog) Enabled(level zapcore.Level) bool {
	return level >= zapcore.WarnLevel && !l.closing.Load()
}

func (l *etcdLog) With(fields []zapcore.Field) zapcore.Core {
	return &etcdLog{l.logger, l.closing, slices.Concat(l.fields, fields)}
}

func (l *etcdLog) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l.Enabled(e.Level) {
		return to.AddCore(e, l)
	}
	return to
}

func (l *etcdLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	level := slog.LevelDebug
	if e.Level >= zapcore.ErrorLevel {
		level = slog.LevelError
	}
	values := zapcore.NewMapObjectEncoder()
	for _, f := range slices.Concat(l.fields, fields) {
		f.AddTo(values)
	}
	var attrs []slog.Attr
	for name, v := range values.Fields {
		if name != "stacktrace" {
			attrs = append(attrs, slog.Any(name, v))
		}
	}
	slices.SortFunc(attrs, func(a, b slog.Attr) int { return strings.Compare(a.Key, b.Key) })
	l.logger.LogAttrs(context.Background(), level, "etcd: "+e.Message, attrs...)
	return nil
}

func (l *etcdLog) Sync() error { return nil }
