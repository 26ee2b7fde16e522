// Package pubsub carries published messages from those who publish to those who have subscribed.
//
// A [Hub] knows who has subscribed to which names; a [Subscriber] is one of them, with a mailbox; a [Message] is what
// travels. Channels live in memory only: a message reaches those who are subscribed at that moment, and no one later.
// Shard channels are a second set of names, kept apart as in a cluster of one node.
//
// Delivery is in two steps. [Hub.Publish] puts a message into the mailboxes, with the hub's mutex held and without
// waiting. Each subscriber takes its mail ([Subscriber.Take]) when it has the time, and waits for the commits that it
// reports as for its own. All receivers of two messages get them in the same order. A subscriber that does not keep up
// is told so ([Subscriber.Flooded]) rather than served with gaps.
//
// The lock order is: stripes of keys, then the mutex of the hub, then that of one mailbox. A notification publishes
// with keys locked, so nothing here waits for a client, for the disk or for a key. A Hub, and what publishers do to a
// Subscriber, may be used by several goroutines; subscribing, leaving and taking mail is for the subscriber's own.
package pubsub
