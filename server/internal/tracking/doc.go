// Package tracking is client-side caching. A client that caches what it reads turns CLIENT TRACKING on, and gets a
// message when a key that it has read changes. A [Table] knows who may have cached what, a [Client] is one of those, a
// [Mode] what it has chosen.
//
// No message is lost:
//
//	a read is noted in the table while its key is locked    Table.Remember
//	a change looks into the table while its key is locked   Table.changed, called by the store
//
// So a change either comes before the read, which then has its outcome, or finds the reader. A message follows the
// reply that it makes obsolete, for it waits in the reader's mailbox until the command is answered. Too many messages
// do no harm but for another read, so a read is noted also if its command fails, and a key that makes room in the table
// for others is reported as if it had changed.
//
// What is reported is what WATCH notices, and what expires (serverside.DB.OnChangesAndReads). The store calls only while some client
// tracks; without one, reads and writes pay nothing.
//
// A Table may be used by several goroutines. Its mutex is taken with keys locked; with it held, only mutexes of
// mailboxes, and what finds a client by its id, are taken.
package tracking
