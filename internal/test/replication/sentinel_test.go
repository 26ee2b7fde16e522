//go:build unix

package replication_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	failovers  = flag.Int("failovers", 3, "failovers of each Sentinel test, in turn by kill -9, SIGSTOP and SENTINEL FAILOVER")
	nodeKinds  = flag.String("group", "stave stave redis", "TestSentinel: the nodes, the first of which is the master")
	isPatient  = flag.Bool("patient", false, "the Sentinels have their own periods")
	fewClients = 4
)

// fail makes the master go, in one of three ways, and lets it come back when there is another one.
func (g *group) fail(round int) (how string) {
	g.t.Helper()
	old := g.master()
	how = [...]string{"kill -9", "SIGSTOP", "SENTINEL FAILOVER"}[round%3]
	back := func() {}
	switch round % 3 {
	case 0:
		old.signal(syscall.SIGKILL)
		back = old.start
	case 1:
		old.signal(syscall.SIGSTOP)
		back = func() { old.signal(syscall.SIGCONT) }
	}
	asked := time.Time{}
	await(g.t, how+": another master than "+old.name(), func() bool {
		if round%3 == 2 && time.Since(asked) > 10*time.Second { // it may fail, and has to be asked for again then
			asked = time.Now()
			g.askAt(g.sentinels[round%len(g.sentinels)], "", "SENTINEL", "FAILOVER", masterName)
		}
		m := g.master()
		return m != nil && m != old && m.info("role") == "master"
	})
	back()
	return how + " of " + old.name()
}

// failUnderLoad is so many failovers, each from a healthy group.
func (g *group) failUnderLoad(l *load) {
	g.t.Helper()
	var gaps []time.Duration
	for round := range *failovers {
		g.awaitHealthy()
		enough := l.count() + 100
		await(g.t, "writes are confirmed", func() bool { return l.count() >= enough })
		l.takeGap()
		how := g.fail(round)
		g.awaitHealthy()
		enough = l.count() + 1
		await(g.t, "writes are confirmed again", func() bool { return l.count() >= enough })
		gap := l.takeGap()
		gaps = append(gaps, gap)
		g.t.Logf("%s: no write for %.1f s; the master is %s", how, gap.Seconds(), g.master().name())
	}
	slices.Sort(gaps)
	g.t.Logf("without a write: median %.1f s, longest %.1f s", gaps[len(gaps)/2].Seconds(), gaps[len(gaps)-1].Seconds())
}

// TestSentinel: three stock Sentinels watch Staves and a Redis: the master fails in three ways under load, one of the others is
// promoted, and the one that comes back becomes a replica. Of what every replica had acknowledged nothing is lost; of the rest the
// log says how much is.
func TestSentinel(t *testing.T) {
	g := startGroup(t, groupOptions{kinds: *nodeKinds, patient: *isPatient})
	l := startLoad(g, fewClients, len(g.nodes)-1)
	g.failUnderLoad(l)
	t.Log(l.wantKept(t))
}

// TestSentinelOrphans: a master that is stopped for a while, or replaced on purpose, goes on acknowledging until a Sentinel makes it a
// replica. All that is lost of that is in a file of the one that alone had it.
func TestSentinelOrphans(t *testing.T) {
	g := startGroup(t, groupOptions{kinds: "stave stave stave", patient: *isPatient})
	l := startLoad(g, fewClients, 2)
	for round := range *failovers {
		g.awaitHealthy()
		enough := l.count() + 100
		await(t, "writes are confirmed", func() bool { return l.count() >= enough })
		t.Log(g.fail(3*round + 1 + round%2)) // not by kill -9
	}
	g.awaitHealthy()
	l.end()
	g.awaitHealthy()
	kept, files := map[string]bool{}, 0
	for _, n := range g.nodes {
		for name, o := range orphansIn(t, filepath.Join(n.dir, "data")) {
			files++
			if o.Before != 0 {
				t.Errorf("%s says that %d bytes before are lost", name, o.Before)
			}
			for _, c := range o.commands {
				if c[0] == "SADD" {
					for _, element := range c[2:] {
						kept[c[1]+" "+element] = true
					}
				}
			}
		}
	}
	lost, all := missing(g.master(), l.acked)
	for _, one := range lost {
		if !kept[one] {
			t.Errorf("%s was acknowledged, is lost, and is in no file", one)
		}
	}
	t.Logf("%d of %d are lost, and %d are in %d files", len(lost), all, len(kept), files)
}

// TestSentinelConfirmed: of a pair, with min-replicas-to-write 1, nothing is lost that WAIT 1 has confirmed.
func TestSentinelConfirmed(t *testing.T) {
	g := startGroup(t, groupOptions{kinds: "stave stave", settings: "min-replicas-to-write 1\n", patient: *isPatient})
	l := startLoad(g, fewClients, 1)
	g.failUnderLoad(l)
	t.Log(l.wantKept(t))
}

// contributed is a file of contrib/sentinel, which has all of some texts that a test replaces.
func contributed(t *testing.T, name string, replaced ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "contrib", "sentinel", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range replaced {
		if !strings.Contains(string(text), one) {
			t.Fatalf("contrib/sentinel/%s has no %q", name, one)
		}
	}
	return string(text)
}

// TestSentinelWithTLS: with the lines of contrib/sentinel/tls.conf servers and Sentinels speak TLS alone, to each other too.
func TestSentinelWithTLS(t *testing.T) {
	g := startGroup(t, groupOptions{kinds: "stave stave redis", secure: true, patient: *isPatient})
	l := startLoad(g, fewClients, 2)
	g.failUnderLoad(l)
	t.Log(l.wantKept(t))
	for _, n := range g.nodes {
		if port := n.ask("CONFIG", "GET", "port").Items; len(port) != 2 || string(port[1].Text) != "0" {
			t.Errorf("%s listens on a port without TLS: %v", n.name(), port)
		}
	}
}

// TestSentinelWithUsers: with the files of contrib/sentinel clients need a password, and Sentinels and replicas are users that may do
// what they need.
func TestSentinelWithUsers(t *testing.T) {
	sample := contributed(t, "sentinel.conf", "port 26379\n", "dir /var/lib/stave-sentinel\n", "10.0.0.1 6380", "5000\n", "60000\n")
	g := startGroup(t, groupOptions{
		kinds: "stave redis", settings: contributed(t, "stave.conf"), password: "the-password-of-clients", patient: *isPatient,
		sentinelFile: func(port, dir, master string) string {
			return strings.NewReplacer("port 26379", "port "+port, "/var/lib/stave-sentinel", dir, "10.0.0.1 6380", "127.0.0.1 "+master, "60000\n", "6000\n", "5000\n", "1500\n").Replace(sample)
		},
	})
	l := startLoad(g, fewClients, 1)
	g.failUnderLoad(l)
	t.Log(l.wantKept(t))
}
