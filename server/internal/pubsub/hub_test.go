package pubsub_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/internal/pubsub"
)

// mail returns what waits for a subscriber, as "pattern channel payload".
func mail(t *testing.T, s *pubsub.Subscriber) (list []string) {
	t.Helper()
	for s.HasMail() {
		messages, overflow := s.Take()
		if overflow {
			t.Fatal("the mailbox overflowed")
		}
		for _, m := range messages {
			list = append(list, strings.TrimSpace(m.Pattern+" "+m.Channel+" "+m.Payload))
		}
	}
	return list
}

func TestWhoGetsAMessage(t *testing.T) {
	var h pubsub.Hub
	var a, b pubsub.Subscriber
	if !h.Silent() || h.Monitored() {
		t.Error("a new hub has subscribers")
	}
	h.Subscribe(&a, pubsub.Channel, "c")
	h.Subscribe(&a, pubsub.Channel, "c")
	h.Subscribe(&a, pubsub.Pattern, "c*")
	h.Subscribe(&b, pubsub.Pattern, "[a-c]")
	h.Subscribe(&b, pubsub.Shard, "c")
	h.Subscribe(&b, pubsub.Commands, "")
	for _, c := range []struct {
		message   pubsub.Message
		receivers int
		a, b      []string
	}{
		{pubsub.Message{Channel: "c", Payload: "1"}, 3, []string{"c 1", "c* c 1"}, []string{"[a-c] c 1"}},
		{pubsub.Message{Channel: "cc", Payload: "2"}, 1, []string{"c* cc 2"}, nil},
		{pubsub.Message{Channel: "d", Payload: "3"}, 0, nil, nil},
		{pubsub.Message{Kind: pubsub.Shard, Channel: "c", Payload: "4"}, 1, nil, []string{"c 4"}},
		{pubsub.Message{Kind: pubsub.Commands, Payload: "5"}, 1, nil, []string{"5"}},
	} {
		if n := h.Publish(c.message, nil); n != c.receivers {
			t.Errorf("%+v has %d receivers, not %d", c.message, n, c.receivers)
		}
		if got := mail(t, &a); !slices.Equal(got, c.a) {
			t.Errorf("%+v: a got %q, not %q", c.message, got, c.a)
		}
		if got := mail(t, &b); !slices.Equal(got, c.b) {
			t.Errorf("%+v: b got %q, not %q", c.message, got, c.b)
		}
	}
	if got := h.Counts(pubsub.Channel, []string{"c", "none"}); !slices.Equal(got, []int{1, 0}) {
		t.Errorf("counts are %d", got)
	}
	if got := h.Names(pubsub.Pattern); !slices.Equal(got, []string{"[a-c]", "c*"}) {
		t.Errorf("patterns are %q", got)
	}
	if got := h.NamesOf(&a, pubsub.Pattern); !slices.Equal(got, []string{"c*"}) || !slices.Equal(a.Names(pubsub.Pattern), got) {
		t.Errorf("patterns of a are %q", got)
	}
	if !a.Listens() || !h.Monitored() || h.Silent() || a.Held() == 0 {
		t.Error("subscriptions do not show")
	}
	h.UnsubscribeAll(&a)
	h.UnsubscribeAll(&b)
	h.Unsubscribe(&b, pubsub.Channel, "never")
	if n := h.Publish(pubsub.Message{Channel: "c"}, nil); n != 0 || !h.Silent() || h.Monitored() || a.Listens() || a.Held() != 0 || b.Held() != 0 || len(h.Names(pubsub.Pattern)) != 0 {
		t.Errorf("something is left of the subscriptions: %d receivers, %d and %d bytes", n, a.Held(), b.Held())
	}
	if !h.MatchesQuickly(1 << 40) {
		t.Error("without patterns matching takes long")
	}
}

// A pattern that takes long to match can be given up; what has been found is posted.
func TestMatchingStops(t *testing.T) {
	var h pubsub.Hub
	var s pubsub.Subscriber
	long := "*" + strings.Repeat("a", 2000) + "b"
	h.Subscribe(&s, pubsub.Pattern, long)
	channel := strings.Repeat("a", 20_000)
	if h.MatchesQuickly(len(channel)) {
		t.Error("matching is thought to be quick")
	}
	asked := 0
	if n := h.Publish(pubsub.Message{Channel: channel}, func(int) bool { asked++; return true }); n != 0 || asked == 0 {
		t.Errorf("%d receivers; it was asked %d times whether to stop", n, asked)
	}
}

// More than the hard limit, or more than the soft one for too long, loses the mail and is reported once.
func TestFlood(t *testing.T) {
	for name, set := range map[string]func(*pubsub.Limits){
		"hard": func(l *pubsub.Limits) { l.Hard.Store(1000) },
		"soft": func(l *pubsub.Limits) { l.Soft.Store(1000) }, // 0 seconds
	} {
		t.Run(name, func(t *testing.T) {
			var h pubsub.Hub
			set(&h.Limits)
			flooded, woken := 0, 0
			s := pubsub.Subscriber{Flooded: func() { flooded++ }, Wake: func() { woken++ }}
			h.Subscribe(&s, pubsub.Channel, "c")
			held := s.Held()
			for deadline := time.Now().Add(time.Minute); flooded == 0 && time.Now().Before(deadline); {
				h.Publish(pubsub.Message{Channel: "c", Payload: strings.Repeat("x", 300)}, nil)
			}
			h.Publish(pubsub.Message{Channel: "c"}, nil)
			messages, overflow := s.Take()
			if flooded != 1 || woken != 1 || !overflow || len(messages) != 0 || s.Held() != held {
				t.Errorf("flooded %d times, woken %d times, overflow %t, %d messages, %d bytes", flooded, woken, overflow, len(messages), s.Held()-held)
			}
		})
	}
}

// All receivers get messages of several publishers in the same order, and none is lost, whenever they look.
func TestOrderIsTheSameForAll(t *testing.T) {
	var h pubsub.Hub
	const publishers, each = 4, 500
	woken := [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
	var subs [2]pubsub.Subscriber
	for i := range subs {
		subs[i].Wake = func() {
			select {
			case woken[i] <- struct{}{}:
			default:
			}
		}
		h.Subscribe(&subs[i], pubsub.Channel, "c")
	}
	var got [2][]string
	var work sync.WaitGroup
	for i := range subs {
		work.Go(func() {
			for len(got[i]) < publishers*each {
				<-woken[i]
				for subs[i].HasMail() {
					messages, _ := subs[i].Take()
					for _, m := range messages {
						got[i] = append(got[i], m.Payload)
					}
				}
			}
		})
	}
	for p := range publishers {
		work.Go(func() {
			for i := range each {
				h.Publish(pubsub.Message{Channel: "c", Payload: fmt.Sprintf("%d %d", p, i)}, nil)
			}
		})
	}
	work.Wait()
	if !slices.Equal(got[0], got[1]) {
		t.Error("two receivers got the messages in different orders")
	}
	slices.Sort(got[0])
	if n := len(slices.Compact(got[0])); n != publishers*each {
		t.Errorf("%d different messages of %d", n, publishers*each)
	}
}

func TestWrite(t *testing.T) {
	for _, c := range []struct {
		message pubsub.Message
		two     string
	}{
		{pubsub.Message{Channel: "c", Payload: "p"}, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\np\r\n"},
		{pubsub.Message{Kind: pubsub.Shard, Channel: "c", Payload: "p"}, "*3\r\n$8\r\nsmessage\r\n$1\r\nc\r\n$1\r\np\r\n"},
		{pubsub.Message{Kind: pubsub.Pattern, Pattern: "*", Channel: "c", Payload: "p"}, "*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\nc\r\n$1\r\np\r\n"},
		{pubsub.Message{Kind: pubsub.Commands, Payload: "line"}, "+line\r\n"},
	} {
		var two, three resp.Writer
		three.SetVersion(3)
		c.message.Write(&two)
		c.message.Write(&three)
		if got := string(two.Bytes()); got != c.two {
			t.Errorf("RESP2: %q, not %q", got, c.two)
		}
		if got, want := string(three.Bytes()), strings.Replace(c.two, "*", ">", 1); got != want && c.two[0] == '*' {
			t.Errorf("RESP3: %q, not %q", got, want)
		}
	}
}

// A prepared message goes to those who listen when it is posted; the publisher's own subscriber gets it if that
// listened when it was prepared.
func TestPrepareAndPost(t *testing.T) {
	var h pubsub.Hub
	var own, a, b pubsub.Subscriber
	if p, n := h.Prepare(pubsub.Message{Channel: "c"}, &own, nil); n != 0 || p.Size() == 0 {
		t.Errorf("%d receivers of a message to nobody", n)
	}
	h.Subscribe(&own, pubsub.Channel, "c")
	h.Subscribe(&own, pubsub.Pattern, "*")
	h.Subscribe(&a, pubsub.Channel, "c")
	p, n := h.Prepare(pubsub.Message{Channel: "c", Payload: "m", Ticket: 3}, &own, nil)
	if n != 3 || own.HasMail() || a.HasMail() {
		t.Errorf("%d receivers, or it was posted", n)
	}
	h.UnsubscribeAll(&own)
	h.UnsubscribeAll(&a)
	h.Subscribe(&b, pubsub.Channel, "c")
	later, n := h.Prepare(pubsub.Message{Channel: "c", Payload: "later"}, &own, nil)
	if n != 1 {
		t.Errorf("%d receivers after the others have left", n)
	}
	h.Subscribe(&own, pubsub.Channel, "c")
	h.Post(&p, 2)
	h.Post(&later, 7)
	if got := mail(t, &own); !slices.Equal(got, []string{"c m", "* c m"}) {
		t.Errorf("the publisher got %q", got)
	}
	if got := mail(t, &a); got != nil {
		t.Errorf("who has left got %q", got)
	}
	messages, _ := b.Take()
	if len(messages) != 2 || messages[0].Ticket != 3 || messages[1].Ticket != 7 || messages[1].Payload != "later" {
		t.Errorf("who listens got %+v", messages)
	}
}
