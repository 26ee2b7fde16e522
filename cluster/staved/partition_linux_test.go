package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/test/chance"
)

var partitions = flag.Int("partitions", 0, "TestPartitions: so many (root only: it makes network namespaces)")

// network is a bridge, and a namespace of its own for each member. The test is on the bridge, where everybody reaches it but for those that are
// told not to. What is cut off is lost without a word: it is sent to a machine that is not there.
type network struct {
	t    *testing.T
	name string // of the bridge, which those of the namespaces begin with
	byte byte   // of its addresses
}

// networks counts those that this process has made, so that each has another name: the kernel removes a namespace some time after it is asked to.
var networks int

// Places on the bridge: of the test, and of its etcd, if it has one.
const (
	hub     = 253
	hubEtcd = 252
)

func newNetwork(t *testing.T) *network {
	t.Helper()
	networks++
	n := &network{t: t, name: fmt.Sprintf("stv%d%c", os.Getpid()%10000, 'A'+networks), byte: byte(os.Getpid())}
	t.Cleanup(func() {
		for i := range localIDs {
			_ = exec.Command("ip", "netns", "del", n.namespace(i)).Run()
		}
		_ = exec.Command("ip", "link", "del", n.name).Run()
	})
	n.ip("link", "add", n.name, "type", "bridge")
	n.ip("addr", "add", n.host(hub)+"/24", "dev", n.name)
	n.ip("addr", "add", n.host(hubEtcd)+"/24", "dev", n.name)
	n.ip("link", "set", n.name, "address", n.mac(hubEtcd), "up")
	for i := range localIDs {
		n.ip("netns", "add", n.namespace(i))
		n.ip("link", "add", fmt.Sprint(n.name, localIDs[i]), "type", "veth", "peer", "name", "eth0", "address", n.mac(i), "netns", n.namespace(i))
		n.ip("link", "set", fmt.Sprint(n.name, localIDs[i]), "master", n.name, "up")
		n.in(i, "addr", "add", n.host(i)+"/24", "dev", "eth0")
		n.in(i, "link", "set", "eth0", "up")
		n.in(i, "link", "set", "lo", "up")
	}
	n.heal()
	return n
}

func (n *network) namespace(i int) string { return fmt.Sprint(n.name, "-", localIDs[i]) }
func (n *network) host(i int) string      { return fmt.Sprintf("10.77.%d.%d", n.byte, i+1) }
func (n *network) mac(i int) string       { return fmt.Sprintf("02:77:00:00:%02x:%02x", n.byte, i+1) }

func (n *network) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// in is ip in the namespace of a member.
func (n *network) in(i int, args ...string) {
	n.t.Helper()
	n.ip(append([]string{"-n", n.namespace(i)}, args...)...)
}

// cut has nothing that one member sends reach another one, or the etcd of the test.
func (n *network) cut(from, to int) {
	n.in(from, "neigh", "replace", n.host(to), "lladdr", "02:77:ff:ff:ff:ff", "dev", "eth0", "nud", "permanent")
}

// heal has everything reach everybody.
func (n *network) heal() {
	for i := range localIDs {
		for _, to := range []int{0, 1, 2, hubEtcd} {
			if to != i {
				n.in(i, "neigh", "replace", n.host(to), "lladdr", n.mac(to), "dev", "eth0", "nud", "permanent")
			}
		}
	}
}

// startApart starts a group whose members are in the network, with its etcd in the members or in the test.
func (n *network) startApart(rng *rand.Rand, own bool, mode string, silence time.Duration) *rig {
	r := &rig{t: n.t, rng: rng, sync: mode, own: own, silence: silence, apartURL: "http://" + n.host(hubEtcd) + ":2379"}
	var peers []string
	for i, id := range localIDs {
		peers = append(peers, id+"="+n.host(i))
	}
	dir := n.t.TempDir()
	for i, id := range localIDs {
		client := n.host(i) + ":2379"
		p := &process{id: id, address: n.host(i) + ":6380", dir: filepath.Join(dir, id), etcd: "http://" + client, via: []string{"ip", "netns", "exec", n.namespace(i)}, password: "secret"}
		p.env = []string{"STAVE_REQUIREPASS=" + p.password, "STAVE_MASTERAUTH=" + p.password}
		if p.args = append(r.serves(p), "--protected-mode", "no"); own {
			p.args = append(p.args, "--peers", strings.Join(peers, ","), "--etcd-dir", filepath.Join(p.dir, "etcd"), "--etcd-client", client)
		}
		r.members = append(r.members, p)
	}
	r.start()
	return r
}

// partition cuts one member off, mostly the primary, from some of the others: nothing that it sends reaches them, or it gets nothing of theirs, or
// both. If the etcd is in the test, the member may be cut off from that, too. Clients go on reaching all members. What was drawn is returned, for logs.
func (n *network) partition(r *rig, primary int) string {
	one := r.rng.IntN(len(localIDs))
	if primary >= 0 && r.rng.IntN(4) > 0 {
		one = primary
	}
	sends, gets := true, true
	switch r.rng.IntN(4) {
	case 0:
		sends = false
	case 1:
		gets = false
	}
	said := fmt.Sprintf("%s sends %t, gets %t:", localIDs[one], !sends, !gets)
	if !r.own && r.rng.IntN(3) > 0 {
		said += " etcd"
		n.cut(one, hubEtcd)
	}
	all := r.rng.IntN(3) > 0
	for i, id := range localIDs {
		if i == one || !all && r.rng.IntN(2) == 0 {
			continue
		}
		said += " " + id
		if sends {
			n.cut(one, i)
		}
		if gets {
			n.cut(i, one)
		}
	}
	return said
}

// TestPartitions cuts members off from each other, in one direction or both, while clients write and read at all of them: no write is lost that
// was acknowledged, and none that was seen.
func TestPartitions(t *testing.T) {
	if *partitions == 0 {
		t.Skip("-partitions N, as root on Linux: cuts members off in network namespaces")
	}
	seed := chance.Seed(t)
	for i, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own=%t", own), func(t *testing.T) {
			n := newNetwork(t)
			r := n.startApart(rand.New(rand.NewPCG(seed, uint64(i))), own, "interval", *silence)
			whileUsedBy(t, r, seed, func(h *harm) {
				r.awaitAll()
				longest := time.Duration(0)
				for range *partitions / 2 {
					primary := -1
					for j, p := range r.members {
						if p == r.primary() {
							primary = j
						}
					}
					said := n.partition(r, primary)
					h.l.watch()
					r.wait(5 * time.Second)
					n.heal()
					h.l.watch()
					gap := h.serves()
					if longest = max(longest, gap); gap > 5*time.Second {
						t.Logf("%s: %s without service after it is healed", said, gap)
					}
					r.wait(time.Second)
					if r.rng.IntN(2) == 0 {
						r.awaitAll()
					}
				}
				t.Logf("%d partitions, term %d; service again %s after the end of one, at most", *partitions/2, r.record().Term, longest)
			})
		})
	}
}
