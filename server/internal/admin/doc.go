// Package admin has the commands about the server itself, a file for each of Redis's groups of them: CLIENT, CONFIG,
// CLUSTER, INFO, SHUTDOWN, MONITOR, PUBSUB, SAVE and its like, WAIT. ACL, COMMAND, DEBUG, LATENCY and SLOWLOG have
// packages of their own, which it puts into the table.
//
// It knows no session: a command gets a [Caller], which has what the sessions share, the client of the session that it
// is executed for, and the few things that the session lends. So none can reach into a conversation, and a caller without
// a session can execute them.
package admin
