package acl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
)

// table has the commands on keys, and some that a session would have.
var table = command.NewTable(command.Data(), []*command.Command{
	{Name: "select", Arity: 2, Group: command.GroupConnection, Flags: command.Fast},
	{Name: "auth", Arity: -2, Group: command.GroupConnection, Flags: command.NoAuth},
	{Name: "publish", Arity: 3, Group: command.GroupPubSub, Flags: command.PubSub, Listens: command.ToOneChannel},
	{Name: "psubscribe", Arity: -2, Group: command.GroupPubSub, Flags: command.PubSub, Listens: command.ToAllPatterns},
	{Name: "config", Arity: -2, Group: command.GroupServer, Subcommands: []*command.Command{
		{Name: "config|get", Arity: -3, Flags: command.Admin}, {Name: "config|set", Arity: -4, Flags: command.Admin},
	}},
})

// verdict checks a request, given as a line.
func verdict(t *testing.T, r *acl.Rules, line string) string {
	t.Helper()
	var args [][]byte
	for _, word := range strings.Fields(line) {
		args = append(args, []byte(word))
	}
	c, err := table.Resolve(args)
	if err != nil {
		t.Fatal(err)
	}
	d := r.Check(c, args)
	return fmt.Sprint(d.Verdict, " ", d.Object)
}

func TestRules(t *testing.T) {
	const ok, cmd, key, channel = "0", "1", "2", "4"
	for _, tt := range []struct{ rules, shown, request, want string }{
		{"", "off resetchannels -@all", "get a", cmd},
		{"on +@all ~*", "on ~* resetchannels +@all", "get a", ok},
		{"+@all -@string +get +GET ~*", "off ~* resetchannels +@all -@string +get", "set a b", cmd},
		{"+config|get -config +config|set", "off resetchannels -@all -config +config|set", "config get x", cmd},
		{"+config|get", "off resetchannels -@all +config|get", "config get x", ok},
		{"+config -config|set", "off resetchannels -@all +config -config|set", "config set x y", cmd},
		{"+select|0 +select|1", "off resetchannels -@all +select|0 +select|1", "select 1", ok},
		{"+select|0", "off resetchannels -@all +select|0", "select 2", cmd},
		{"-@all", "off resetchannels -@all", "auth x", ok},
		{"+@all %R~a* %W~b", "off %R~a* %W~b resetchannels +@all", "copy a1 b", ok},
		{"+@all %R~a* %W~b", "off %R~a* %W~b resetchannels +@all", "copy b a1", key},
		{"+@all %R~a %W~a", "off ~a resetchannels +@all", "getset a x", ok},
		{"+@all %W~a", "off %W~a resetchannels +@all", "set a x", ok},
		{"+@all %W~a", "off %W~a resetchannels +@all", "set a x get", key},
		{"+@all %R~a", "off %R~a resetchannels +@all", "bitfield a get u8 0", ok},
		{"+@all %R~a", "off %R~a resetchannels +@all", "bitfield a get u8 0 set u8 0 1", key},
		{"+@all %R~a", "off %R~a resetchannels +@all", "sort a store b", key},
		{"+@all %W~a", "off %W~a resetchannels +@all", "exists a", ok}, // it is told of neither
		{"+@all ~a", "off ~a resetchannels +@all", "exists b", key},
		{"+@all &c* &d", "off resetchannels &c* &d +@all", "publish c1 m", ok},
		{"+@all &c*", "off resetchannels &c* +@all", "psubscribe c1*", channel},
		{"+@all &c*", "off resetchannels &c* +@all", "psubscribe c*", ok},
		{"+get ~a (+set ~b) (%R~c +@all)", "off ~a resetchannels -@all +get (~b resetchannels -@all +set) (%R~c resetchannels +@all)", "set b x", ok},
		{"+get ~a (+set ~b)", "off ~a resetchannels -@all +get (~b resetchannels -@all +set)", "get b", key},
		{"+get ~a (+set ~b) clearselectors", "off ~a resetchannels -@all +get", "set b x", cmd},
		{"on nopass +@all ~* &* reset", "off sanitize-payload resetchannels -@all", "get a", cmd},
		{"allkeys allchannels allcommands nocommands", "off ~* &* -@all", "get a", cmd},
	} {
		u := acl.NewCheap(table)
		c, err := u.Set("alice", strings.Fields(tt.rules))
		if err != nil {
			t.Errorf("%s: %v", tt.rules, err)
			continue
		}
		if got := c.After.String(); got != tt.shown {
			t.Errorf("%s: shown %s, want %s", tt.rules, got, tt.shown)
		}
		if got := verdict(t, c.After, tt.request); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %s: %s, want %s", tt.rules, tt.request, got, tt.want)
		}
		again, err := acl.NewCheap(table).Set("alice", strings.Fields(c.After.String()))
		if err != nil || again.After.String() != c.After.String() {
			t.Errorf("%s: cannot be read again: %v", c.After, err)
		}
	}
}

// TestRefusedRules: nothing of a change with a wrong rule happens, and no password is repeated.
func TestRefusedRules(t *testing.T) {
	u := acl.NewCheap(table)
	if _, err := u.Set("alice", []string{"on", "~a"}); err != nil {
		t.Fatal(err)
	}
	before := u.Get("alice").Rules().String()
	for _, tt := range []struct{ rule, want string }{
		{"nonsense", "'nonsense': Syntax error"}, {"+nope", "Unknown command or category name in ACL"}, {"+@nope", "Unknown command"},
		{"%X~a", "Syntax error"}, {"%~a", "Syntax error"}, {"~a b", "Syntax error"}, {"#12", "exactly 64 characters"}, {"!12", "exactly 64 characters"},
		{"<hunter2", "'<(redacted)': The password you are trying to remove"}, {"+config|get|x", "Allowing first-arg of a subcommand"}, {"+select|", "Syntax error"},
		{"(+get", "Unmatched parenthesis in acl selector starting at '(+get'."}, {"((+get))", "Syntax error"}, {"#" + strings.Repeat("$2a$31$", 10)[:60], "exactly 64"},
	} {
		_, err := u.Set("alice", []string{"+@all", ">new", tt.rule})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", tt.rule, err, tt.want)
		}
	}
	for _, name := range []string{"a b", "a\x00", "", "a\n"} {
		if _, err := u.Set(name, nil); !errors.Is(err, acl.ErrUserName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if got := u.Get("alice").Rules().String(); got != before {
		t.Errorf("%s, want %s", got, before)
	}
}

func TestPasswords(t *testing.T) {
	u := acl.NewCheap(table)
	ctx := context.Background()
	auth := func(name, password string) error {
		_, err := u.Authenticate(ctx, name, password, "")
		return err
	}
	set := func(rules ...string) {
		t.Helper()
		if _, err := u.Set("alice", rules); err != nil {
			t.Fatal(err)
		}
	}
	set("on", ">one", ">two", ">one", "#"+strings.Repeat("0", 64))
	if n := len(u.Get("alice").Rules().Describe().Passwords); n != 3 {
		t.Errorf("%d passwords", n)
	}
	for password, want := range map[string]error{"one": nil, "two": nil, "": acl.ErrWrongPassword, "One": acl.ErrWrongPassword, strings.Repeat("x", 1<<20): acl.ErrWrongPassword} {
		for range 2 {
			if err := auth("alice", password); !errors.Is(err, want) {
				t.Errorf("%.10s: %v", password, err)
			}
		}
	}
	if strings.Contains(u.Text(), "#"+strings.Repeat("0", 64)) {
		t.Error("the SHA-256 that was given is shown")
	}
	// A copy of the users knows the same passwords, in its own time.
	other := acl.NewCheap(table)
	if _, err := other.Load(u.Text()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Authenticate(ctx, "alice", "two", ""); err != nil {
		t.Error(err)
	}
	// #SHA-256 as Redis has it, of "two".
	set("resetpass", "#3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3")
	if err := auth("alice", "two"); err != nil {
		t.Error(err)
	}
	set("<two")
	if err := auth("alice", "two"); !errors.Is(err, acl.ErrWrongPassword) {
		t.Error(err)
	}
	set("nopass")
	if err := auth("alice", "anything"); err != nil {
		t.Error(err)
	}
	set("off")
	if err := auth("alice", "anything"); !errors.Is(err, acl.ErrWrongPassword) {
		t.Error(err)
	}
	if _, err := u.Authenticate(ctx, "nobody", "x", ""); !errors.Is(err, acl.ErrWrongPassword) {
		t.Error(err)
	}
}

// TestBackoff: after ten failures an address waits, longer each time, and right passwords wait too; others do not.
func TestBackoff(t *testing.T) {
	var b acl.Backoff
	now := time.Unix(1, 0)
	for i := range 10 {
		if !b.Admit("a", now) {
			t.Fatalf("refused after %d failures", i)
		}
		b.Fail("a", now)
	}
	wait := time.Second
	for range 10 {
		if b.Admit("a", now.Add(wait-1)) || !b.Admit("a", now.Add(wait)) || !b.Admit("b", now) {
			t.Fatalf("not admitted after %s", wait)
		}
		now = now.Add(wait)
		b.Fail("a", now)
		wait = min(2*wait, time.Minute)
	}
	now = now.Add(11 * time.Minute)
	b.Fail("a", now)
	if !b.Admit("a", now) {
		t.Error("failures of long ago count")
	}
	for i := range 10_000 {
		b.Fail(fmt.Sprint(i), now)
	}
	if n := b.Kept(); n > 4096 {
		t.Errorf("%d addresses are kept", n)
	}
	for in, want := range map[string]string{
		"1.2.3.4:5": "1.2.3.4", "[::ffff:1.2.3.4]:5": "1.2.3.4", "[2001:db8:1:2:3::1]:5": "2001:db8:1:2::/64", "/tmp/s": "", "": "", "[fe80::1%eth0]:1": "fe80::/64",
	} {
		if got := acl.BackoffAddress(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	u := acl.NewCheap(table)
	if err := u.SetDefaultPassword("right"); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := u.Authenticate(context.Background(), "default", "wrong", "1.2.3.4:5"); !errors.Is(err, acl.ErrWrongPassword) {
			t.Fatal(err)
		}
	}
	if _, err := u.Authenticate(context.Background(), "default", "right", "1.2.3.4:6"); !errors.Is(err, acl.ErrTooManyFailures) {
		t.Error(err)
	}
	if _, err := u.Authenticate(context.Background(), "default", "right", "1.2.3.5:6"); err != nil {
		t.Error(err)
	}
}

// TestConcurrentChanges: a check sees the rules before or after a change, and no user that has been made is lost.
func TestConcurrentChanges(t *testing.T) {
	u := acl.NewCheap(table)
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for j := range 50 {
				name := fmt.Sprint("u", i, "-", j)
				if _, err := u.Set(name, []string{"on", "nopass", "+@all", "~*", "&*"}); err != nil {
					t.Error(err)
				}
				if _, err := u.Set("shared", []string{"reset", "+@all", "~*", "&*"}); err != nil {
					t.Error(err)
				}
				shared := u.Get("shared")
				if !shared.IsLimited() {
					continue
				}
				_ = shared.Rules().String()
				if _, err := u.Authenticate(context.Background(), name, "x", ""); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if n := len(u.Names()); n != 8*50+2 {
		t.Errorf("%d users", n)
	}
}

func TestLostChannels(t *testing.T) {
	rules := func(text string) *acl.Rules {
		c, err := acl.NewCheap(table).Set("u", strings.Fields(text))
		if err != nil {
			t.Fatal(err)
		}
		return c.After
	}
	for _, tt := range []struct {
		before, after, channel string
		pattern, lost          bool
	}{
		{"&*", "&*", "a", false, false}, {"&*", "&a", "a", false, false}, {"&*", "&a", "b", false, true}, {"&a", "&a &b", "a", false, false},
		{"&a*", "&ab", "ab", false, false}, {"&a*", "&ab", "a*", true, true}, {"&a", "(&a)", "a", false, false}, {"&a (&b)", "&a", "b", false, true},
		{"&a", "resetchannels", "a", false, true}, {"&a", "resetchannels (&*)", "a", false, false},
	} {
		lost := acl.LostChannels(rules(tt.before), rules(tt.after))
		if got := lost != nil && lost(tt.channel, tt.pattern); got != tt.lost {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestManyUsers: as many users as there may ever be are deleted by one command, which copies none of them for each of the others.
func TestManyUsers(t *testing.T) {
	const n = 100_000
	var text strings.Builder
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("u", i))
		fmt.Fprintf(&text, "user %s off\n", names[i])
	}
	u := acl.NewCheap(table)
	if _, err := u.Load(text.String()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	changes := u.Delete(append(names[1:], names[1], "nobody", acl.DefaultName))
	if took := time.Since(began); took > 20*time.Second { // a fraction of a second; half an hour if each copies the rest
		t.Errorf("deleting took %v", took)
	}
	if len(changes) != n-1 || fmt.Sprint(u.Names()) != "[default u0]" || changes[0].User.Name() != "u1" || changes[0].After != nil {
		t.Errorf("%d deleted, %d users are left", len(changes), len(u.Names()))
	}
}

// FuzzRules: rules that are accepted are shown as rules that mean the same, and a file of them too.
func FuzzRules(f *testing.F) {
	for _, seed := range []string{"on nopass ~a %R~b &c +@all -@dangerous +config|get (+get ~x)", "+select|0 #12 ~ % (", "reset ( ) +@all ~* ~a", ">one <one"} {
		f.Add(seed)
	}
	requests := []string{"get a", "set b x", "publish c m", "config get x", "select 0", "psubscribe c*", "sort a store b"}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Count(text, ">")+strings.Count(text, "<")+strings.Count(text, "#")+strings.Count(text, "!") > 3 {
			return // hashes take time
		}
		u := acl.NewCheap(table)
		c, err := u.Set("alice", strings.Split(text, " "))
		if err != nil {
			return
		}
		other := acl.NewCheap(table)
		if _, err := other.Load(u.Text()); err != nil {
			t.Fatalf("%q: %q: %v", text, u.Text(), err)
		}
		after := other.Get("alice").Rules()
		if after.String() != c.After.String() {
			t.Fatalf("%q: %q, then %q", text, c.After, after)
		}
		for _, r := range requests {
			if a, b := verdict(t, c.After, r), verdict(t, after, r); a != b {
				t.Fatalf("%q: %s: %s, then %s", text, r, a, b)
			}
		}
	})
}

// FuzzFile: any text is read or refused, and a text that is refused changes nothing.
func FuzzFile(f *testing.F) {
	f.Add("user a on ~a\n# x\n\nuser b (+get\nuser default off\n")
	f.Add("user a on\nuser a on")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Count(text, ">")+strings.Count(text, "#") > 3 {
			return
		}
		u := acl.NewCheap(table)
		before := u.Text()
		if _, err := u.Load(text); err != nil && u.Text() != before {
			t.Fatalf("%q: %v: %q", text, err, u.Text())
		}
		if u.Get("default") != u.Default() {
			t.Fatal("the default user is another one")
		}
	})
}
