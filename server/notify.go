package server

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/structures"
)

// The store calls for the classes of events that the setting asks for, and for no others: with the
// setting empty, which is the default, a write pays nothing. keymiss is not an event of the store,
// which has no commands; sessions publish it themselves after a read.

// Redis's keyspace notifications: db.Store.OnEvents calls publishEvent with the key locked. The
// message carries the ticket of the commit, so that no subscriber sees it before the write is as
// durable as its writer is promised.

// notifier publishes what happens to keys, as the setting notify-keyspace-events says.
type notifier struct {
	flags   atomic.Uint32 // notifyFlags
	keymiss atomic.Bool   // reads of keys that do not exist are reported as well

	mu      sync.Mutex // guards the two below
	stop    func()     // listening to the store; nil while nothing is to be reported
	serving int        // calls of Serve that have not returned
}

// notifyFlags is the setting in Redis's letters: bit i is for letter i of notifyLetters.
type notifyFlags uint32

const notifyLetters = "g$lshzxetdnKEm"

// notifyAll is the value of the letter A.
const notifyAll = "g$lshzxetd"

// notifyClasses are the events that letters stand for. Streams and modules do not exist here.
var notifyClasses = map[byte]db.EventClass{
	'g': structures.ClassGeneric, '$': structures.ClassString, 'l': structures.ClassList, 's': structures.ClassSet,
	'h': structures.ClassHash, 'z': structures.ClassSortedSet, 'x': structures.ClassExpired, 'e': structures.ClassEvicted,
	'n': structures.ClassNew,
}

// notifyBits is the setting that has these letters.
func notifyBits(letters string) (f notifyFlags) {
	for i := range len(letters) {
		f |= 1 << strings.IndexByte(notifyLetters, letters[i])
	}
	return f
}

// has reports whether the setting has a letter.
func (f notifyFlags) has(letter byte) bool { return f&notifyBits(string(letter)) != 0 }

// parseNotifyFlags reads the setting.
func parseNotifyFlags(text string) (f notifyFlags, err error) {
	for i := range len(text) {
		switch letter := text[i]; {
		case letter == 'A':
			f |= notifyBits(notifyAll)
		case strings.IndexByte(notifyLetters, letter) >= 0:
			f |= notifyBits(string(letter))
		default:
			return 0, command.Error("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
		}
	}
	return f, nil
}

// String is the setting as CONFIG GET shows it. As in Redis, A hides n, which it does not stand
// for.
func (f notifyFlags) String() string {
	var text strings.Builder
	rest := notifyLetters
	if all := notifyBits(notifyAll); f&all == all {
		text.WriteByte('A')
		rest = "KEm"
	}
	for i := range len(rest) {
		if f.has(rest[i]) {
			text.WriteByte(rest[i])
		}
	}
	return text.String()
}

// setNotifyFlags changes the setting. Events that are under way when the setting changes are
// published by the old one or the new one.
func (v *Server) setNotifyFlags(f notifyFlags) {
	n := &v.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	v.stopListeningLocked()
	n.flags.Store(uint32(f))
	n.keymiss.Store((f.has('K') || f.has('E')) && f.has('m'))
	v.listenLocked()
}

// addServing counts the calls of Serve. When the last one returns, nothing is reported any more:
// the store stays open, and every write to it would otherwise pay for a server that has ended. If
// it serves again, its setting holds again.
func (v *Server) addServing(delta int) {
	n := &v.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.serving += delta; n.serving == 0 {
		v.stopListeningLocked()
	} else if n.stop == nil {
		v.listenLocked()
	}
}

// listenLocked listens to what the setting asks for.
func (v *Server) listenLocked() {
	f := notifyFlags(v.notifier.flags.Load())
	var classes db.EventClass
	if f.has('K') || f.has('E') {
		for letter, class := range notifyClasses {
			if f.has(letter) {
				classes |= class
			}
		}
	}
	if classes != 0 {
		v.notifier.stop = v.store.OnEvents(classes, func(e db.Event) { v.publishEvent(e.Namespace, e.Kind.String(), e.Key, e.Ticket) })
	}
}

// stopListeningLocked ends what listenLocked began.
func (v *Server) stopListeningLocked() {
	if n := &v.notifier; n.stop != nil {
		n.stop()
		n.stop = nil
	}
}

// publishEvent publishes an event on its two channels. It is called with the key locked. The
// namespace in the name of the channel is that of the key, not that of the subscriber.
func (v *Server) publishEvent(namespace int, event, key string, ticket db.Ticket) {
	if v.hub.subscriptions.Load() == 0 {
		return
	}
	flags := notifyFlags(v.notifier.flags.Load())
	at := "@" + strconv.Itoa(namespace) + "__:"
	if flags.has('K') {
		v.hub.publish(message{channel: "__keyspace" + at + key, payload: event, ticket: ticket})
	}
	if flags.has('E') {
		v.hub.publish(message{channel: "__keyevent" + at + event, payload: key, ticket: ticket})
	}
}

// notifyMisses reports the keys that a command was to read and that do not exist, if there is a
// listener. As in Redis looking at how a key is stored is not reading it. It runs inside the
// transaction, so the answer is that of the moment of the read; it costs a second search of each
// key.
func (s *Session) notifyMisses(c *command.Call) error {
	v := s.server
	if !v.notifier.keymiss.Load() || c.Tx == nil || c.Command.Flags&command.ReadOnly == 0 || c.Command.Container != nil {
		return nil
	}
	for _, key := range c.Command.AppendKeys(nil, c.Args) {
		switch exists, err := c.Tx.Key(key).Exists(); {
		case err != nil:
			return err
		case !exists:
			v.publishEvent(c.Tx.Namespace(), "keymiss", key, 0)
		}
	}
	return nil
}
