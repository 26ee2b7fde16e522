package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/cli"
	"github.com/stavedb/stave/cluster/etcd"
	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/server"
	urfave "github.com/urfave/cli/v2"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// The options of serve, and what they come to.

// serveFlags are the options of a member.
func serveFlags() []urfave.Flag {
	return []urfave.Flag{
		&urfave.StringFlag{Name: "id", Usage: "be the member `ID` of the group; it stays with the store"},
		&urfave.StringFlag{Name: "group", Value: "main", Usage: "be a member of the group `NAME`"},
		&urfave.StringFlag{Name: "cluster", Value: "default", Usage: "the group is one of the cluster `NAME`: its record in etcd is /stave/CLUSTER/groups/GROUP"},
		&urfave.StringFlag{Name: "announce", Usage: "clients and other members reach this one at `HOST:PORT` (default: where it listens)"},
		&urfave.BoolFlag{Name: "bootstrap", Usage: "begin the group if there is no record of it: for the first start of its first member", DisableDefaultText: true},
		&urfave.StringFlag{Name: "slots", Usage: "the group has the slots `RANGES`, such as 0-8191, of a cluster of several groups; with --bootstrap, for they stay"},
		&urfave.IntFlag{Name: "min-in-sync", Value: 2, Usage: "acknowledge writes that `N` members have, this one included"},
		&urfave.DurationFlag{Name: "insync-timeout", Value: time.Second, Usage: "go on without a member that has been silent for `TIME`; others take over after half as much again"},
		&urfave.BoolFlag{Name: "strict-reads", Usage: "confirm reads by a round trip to the others, instead of relying on clocks", DisableDefaultText: true},
		&urfave.StringFlag{Name: "etcd", Usage: "the record of the group is in the etcd at `URLS`, with commas between them"},
		&urfave.StringFlag{Name: "peers", Usage: "run an etcd in each of these members: `ID=HOST[:PORT],...` of all three, this one included (port 2380)"},
		&urfave.StringFlag{Name: "etcd-dir", Usage: "the etcd of --peers has its data in `DIR` (default: the store's with -etcd appended)"},
		&urfave.StringFlag{Name: "etcd-client", Value: "127.0.0.1:2379", Usage: "the etcd of --peers serves this member, and etcdctl, on `HOST:PORT`"},
		&urfave.BoolFlag{Name: "etcd-rejoin", Usage: "the etcd of --peers has lost its data, and joins the others as a new one", DisableDefaultText: true},
		&urfave.StringFlag{Name: "etcd-cacert", Usage: "speak to etcd, and between its members, by TLS; certificates are verified by those in `FILE`"},
		&urfave.StringFlag{Name: "etcd-cert", Usage: "this member's certificate for that is in `FILE`"},
		&urfave.StringFlag{Name: "etcd-key", Usage: "its key is in `FILE`"},
	}
}

// part is a member of a group, as its options describe it.
type part struct {
	group     server.Group
	key       string   // of the record
	endpoints []string // of etcd
	own       *ownEtcd // nil without --peers
	files     transport.TLSInfo
}

// mistakes collects what is wrong with the options, so that one run of the command names all of it.
type mistakes []error

func (m *mistakes) add(is bool, format string, args ...any) {
	if is {
		*m = append(*m, fmt.Errorf(format, args...))
	}
}

// recordKey is that of the record in etcd.
func recordKey(c *urfave.Context, wrong *mistakes) string {
	for _, name := range []string{"group", "cluster"} {
		wrong.add(!group.IsName(c.String(name)), "--%s must be up to 64 letters, digits or any of \"._-\", not %q", name, c.String(name))
	}
	return fmt.Sprintf("/stave/%s/groups/%s", c.String("cluster"), c.String("group"))
}

// readEtcd reads where an etcd is that runs, and the files of its TLS.
func (p *part) readEtcd(c *urfave.Context, wrong *mistakes) {
	p.files = transport.TLSInfo{CertFile: c.String("etcd-cert"), KeyFile: c.String("etcd-key"), TrustedCAFile: c.String("etcd-cacert"), ClientCertAuth: true}
	files := []string{p.files.CertFile, p.files.KeyFile, p.files.TrustedCAFile}
	wrong.add(p.isTLS() && slices.Contains(files, ""), "--etcd-cacert, --etcd-cert and --etcd-key go together")
	for _, f := range files {
		if f != "" {
			_, err := os.Stat(f)
			wrong.add(err != nil, "a file of etcd's TLS: %w", err)
		}
	}
	if c.String("etcd") == "" {
		return
	}
	p.endpoints = strings.Split(c.String("etcd"), ",")
	for _, e := range p.endpoints {
		wrong.add(!isEndpoint(e), "--etcd must be URLs such as http://10.0.0.1:2379, with commas between them, and has %q", e)
	}
}

// isTLS reports whether any of its files is named.
func (p *part) isTLS() bool {
	return p.files.CertFile != "" || p.files.KeyFile != "" || p.files.TrustedCAFile != ""
}

// serve judges the options, all of them.
func serve(c *urfave.Context, config *server.Config) (cli.Join, error) {
	var wrong mistakes
	p := part{
		key: recordKey(c, &wrong),
		group: server.Group{
			Name: c.String("group"), ID: c.String("id"), Address: c.String("announce"), Bootstrap: c.Bool("bootstrap"), Slots: c.String("slots"), MinInSync: c.Int("min-in-sync"), Silence: c.Duration("insync-timeout"),
			StrictReads: c.Bool("strict-reads"),
		},
	}
	p.readEtcd(c, &wrong)
	wrong.add(p.group.ID == "", "--id is missing: which member of the group %s is this one? stave serve has a server without a group", p.group.Name)
	wrong.add(p.group.ID != "" && !group.IsName(p.group.ID), "--id must be up to 64 letters, digits or any of \"._-\", not %q", p.group.ID)
	errSlots := checkSlots(p.group.Slots, config)
	wrong.add(errSlots != nil, "%w", errSlots)
	wrong.add(p.group.MinInSync < 1, "--min-in-sync must be positive, not %d", p.group.MinInSync)
	wrong.add(p.group.Silence < 50*time.Millisecond, "--insync-timeout must be 50ms or more, not %s", p.group.Silence)
	wrong.add(c.Bool("follow") || c.Bool("read-damaged"), "a member of a group writes its store: leave --follow and --read-damaged out")
	wrong.add(config.Get("replicaof") != "", "the group says whom a member follows: leave replicaof out")
	if p.group.Address != "" {
		host, port, err := net.SplitHostPort(p.group.Address)
		wrong.add(err != nil || host == "" || port == "" || port == "0", "--announce must be HOST:PORT, not %q", p.group.Address)
	}
	switch peers := c.String("peers"); {
	case p.endpoints == nil && peers == "":
		wrong.add(true, "where is etcd? --etcd URL,... names one that runs; with --peers a=HOST,b=HOST,c=HOST the members run their own")
	case p.endpoints != nil && peers != "":
		wrong.add(true, "--etcd names one that runs, and --peers has the members run their own: leave one out")
	case p.endpoints != nil:
		for _, name := range []string{"etcd-dir", "etcd-client", "etcd-rejoin"} {
			wrong.add(c.IsSet(name), "--%s is for an etcd in the members, and --etcd names one that runs elsewhere: leave one out", name)
		}
	default:
		p.readPeers(c, config, &wrong)
	}
	return p.join, errors.Join(wrong...)
}

// readPeers reads which etcd this member runs.
func (p *part) readPeers(c *urfave.Context, config *server.Config, wrong *mistakes) {
	dir, err := filepath.Abs(config.Get("dir"))
	wrong.add(err != nil, "the directory of the store: %w", err)
	if name := c.String("etcd-dir"); name != "" {
		store := dir
		dir, err = filepath.Abs(name)
		wrong.add(err != nil, "--etcd-dir: %w", err)
		inside, err := filepath.Rel(store, dir)
		wrong.add(err == nil && !strings.HasPrefix(inside, ".."), "--etcd-dir must not be within the store's directory, which is Stave's alone")
	} else {
		dir += "-etcd"
	}
	p.own, err = newOwnEtcd(p.group.ID, c.String("peers"), dir, c.String("etcd-client"), c.Bool("etcd-rejoin"), p.files)
	wrong.add(err != nil, "%w", err)
	wrong.add(err == nil && !p.isTLS() && p.own.isOpen() && config.Get("protected-mode") != "no",
		"--peers names other machines, and whoever reaches an etcd without TLS decides who is the primary: give --etcd-cacert, --etcd-cert and --etcd-key, or --protected-mode no if the network is trusted")
}

// checkSlots judges --slots.
func checkSlots(text string, config *server.Config) error {
	slots, err := group.ParseSlots(text)
	switch {
	case err != nil:
		return fmt.Errorf("--slots: %w", err)
	case !slots.IsAll() && config.Get("cluster-enabled") != "yes":
		return fmt.Errorf("--slots %s is a part of a cluster, whose clients find the other slots in cluster mode only: set cluster-enabled yes", text)
	}
	return nil
}

// join begins the member's part. What has no answer yet, such as etcd, is no error: the server answers -CLUSTERDOWN until there is one.
func (p *part) join(o *server.Options, listening []net.Addr) (run func(context.Context) error, err error) {
	if p.group.Address == "" {
		if p.group.Address, err = announced(listening); err != nil {
			return nil, err
		}
	}
	ended := make(<-chan struct{})
	if p.own != nil {
		if err := p.own.start(o.Logger); err != nil {
			return nil, err
		}
		p.endpoints, ended = p.own.endpoints(), p.own.ended()
	}
	client, err := p.connect()
	if err != nil {
		return nil, errors.Join(err, p.own.close())
	}
	p.group.Records = etcd.New(client, p.key)
	o.Group = &p.group
	return func(ctx context.Context) error {
		var err error
		select {
		case <-ctx.Done():
		case <-ended:
			err = errors.New("the etcd of this member has ended: its log says why")
		}
		return errors.Join(err, client.Close(), p.own.close())
	}, nil
}

// connect returns a client of etcd. It does not wait for it.
func (p *part) connect() (*clientv3.Client, error) {
	c := clientv3.Config{
		Endpoints: p.endpoints, Logger: zap.NewNop(),
		DialTimeout: 2 * time.Second, DialKeepAliveTime: 2 * time.Second, DialKeepAliveTimeout: 2 * time.Second,
	}
	if p.files.CertFile != "" {
		tls, err := p.files.ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("the files of etcd's TLS: %w", err)
		}
		c.TLS = tls
	}
	return clientv3.New(c)
}

// announced is the address that a server listens on, if others can use it as it is.
func announced(listening []net.Addr) (string, error) {
	if len(listening) == 1 {
		if a, ok := listening[0].(*net.TCPAddr); ok && !a.IP.IsUnspecified() {
			return a.String(), nil
		}
	}
	return "", fmt.Errorf("the server listens on %v: say by --announce HOST:PORT where other members reach it", listening)
}
