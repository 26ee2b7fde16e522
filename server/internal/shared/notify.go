package shared

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/internal/pubsub"
	"github.com/stavedb/stave/server/internal/settings"
	"github.com/stavedb/stave/structures"
)

// The store calls for the classes of events that the setting asks for, and for no others: with the
// setting empty, which is the default, a write pays nothing. keymiss is not an event of the store,
// which has no commands; sessions publish it themselves after a read.

// Redis's keyspace notifications: db.Store.OnEvents calls PublishEvent with the key locked. The
// message carries the ticket of the commit, so that no subscriber sees it before the write is as
// durable as its writer is promised.

// notifier publishes what happens to keys, as the setting notify-keyspace-events says.
type notifier struct {
	flags   atomic.Uint32 // settings.Events
	Keymiss atomic.Bool   // reads of keys that do not exist are reported as well

	mu      sync.Mutex // guards the two below
	stop    func()     // listening to the store; nil while nothing is to be reported
	serving int        // calls of Serve that have not returned
}

// notifyClasses are the events that letters stand for. Modules do not exist here.
var notifyClasses = map[byte]db.EventClass{
	'g': structures.ClassGeneric, '$': structures.ClassString, 'l': structures.ClassList, 's': structures.ClassSet,
	'h': structures.ClassHash, 'z': structures.ClassSortedSet, 'x': structures.ClassExpired, 'e': structures.ClassEvicted,
	'n': structures.ClassNew, 't': structures.ClassStream,
}

// setNotifyFlags changes the setting. Events that are under way when the setting changes are
// published by the old one or the new one.
func (v *State) setNotifyFlags(f settings.Events) {
	n := &v.Notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	v.stopListeningLocked()
	n.flags.Store(uint32(f))
	n.Keymiss.Store((f.Has('K') || f.Has('E')) && f.Has('m'))
	v.listenLocked()
}

// ServesOnce reports whether one call of Serve has not returned.
func (v *State) ServesOnce() bool {
	v.Notifier.mu.Lock()
	defer v.Notifier.mu.Unlock()
	return v.Notifier.serving == 1
}

// AddServing counts the calls of Serve. When the last one returns, nothing is reported any more:
// the store stays open, and every write to it would otherwise pay for a server that has ended. If
// it serves again, its setting holds again.
func (v *State) AddServing(delta int) {
	n := &v.Notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.serving == 0 && delta > 0 {
		if err := v.Replicas.Start(); err != nil {
			v.Options.Logger.Error("replicas will be synchronized as a whole: it is not known where they are", "error", err)
		}
	}
	if n.serving += delta; n.serving == 0 {
		v.stopListeningLocked()
		if err := v.Replicas.Stop(); err != nil {
			v.Options.Logger.Error("replicas will be synchronized as a whole: where they are could not be kept", "error", err)
		}
	} else if n.stop == nil {
		v.listenLocked()
	}
}

// listenLocked listens to what the setting asks for. Without K or E there is no channel to publish on, so the other
// letters ask for nothing, as in Redis.
func (v *State) listenLocked() {
	f := settings.Events(v.Notifier.flags.Load())
	var classes db.EventClass
	if f.Has('K') || f.Has('E') {
		for letter, class := range notifyClasses {
			if f.Has(letter) {
				classes |= class
			}
		}
	}
	if classes != 0 {
		v.Notifier.stop = v.Store.OnEvents(classes, func(e db.Event) { v.PublishEvent(e.Namespace, e.Kind.String(), e.Key, e.Ticket) })
	}
}

// stopListeningLocked ends what listenLocked began.
func (v *State) stopListeningLocked() {
	if n := &v.Notifier; n.stop != nil {
		n.stop()
		n.stop = nil
	}
}

// PublishEvent publishes an event on its two channels. It is called with the key locked. The
// namespace in the name of the channel is that of the key, not that of the subscriber.
func (v *State) PublishEvent(namespace int, event, key string, ticket db.Ticket) {
	if v.Hub.Silent() {
		return
	}
	flags := settings.Events(v.Notifier.flags.Load())
	at := "@" + strconv.Itoa(namespace) + "__:"
	if flags.Has('K') {
		v.Hub.Publish(pubsub.Message{Channel: "__keyspace" + at + key, Payload: event, Ticket: ticket}, nil)
	}
	if flags.Has('E') {
		v.Hub.Publish(pubsub.Message{Channel: "__keyevent" + at + event, Payload: key, Ticket: ticket}, nil)
	}
}

// overheadOfName is how much longer the channels of a keyspace notification are than the key.
const overheadOfName = 64

// NotifiesQuickly reports whether the keyspace notifications of a command with so many bytes of
// arguments are soon matched with the patterns: that is done with the keys locked.
func (v *State) NotifiesQuickly(size, args int) bool {
	return v.Notifier.flags.Load() == 0 || v.Hub.MatchesQuickly(size+args*overheadOfName)
}

// ListensToStore reports whether events of keys are received.
func (v *State) ListensToStore() bool {
	v.Notifier.mu.Lock()
	defer v.Notifier.mu.Unlock()
	return v.Notifier.stop != nil
}
