// Package listeners keeps the sockets that a server listens on, and moves them to other addresses while it serves.
//
// A [Place] says where to listen, in the words of the settings bind, port and tls-port; a [Set] is the sockets that are
// open for it. [Set.Change] is CONFIG SET of these settings, or a reload of the file: the new sockets are open before
// the old ones are closed, the connections that those have accepted go on, and a failure leaves everything as it was.
// Where a new address overlaps with an old one on the same port, the old socket has to be closed first; after a failure it
// is opened again, unless another process has taken the address meanwhile, which the log then says.
//
// The package serves no connection and knows no user. Whether an address may be used ([Rules]) and what becomes of a
// socket ([Set.Start]) is up to the caller.
//
// The methods of a Set may be called from several goroutines, but for Close. Set.changing is held during a whole change,
// which may look up hosts and so take seconds. Set.mu guards the state that CONFIG GET and INFO show meanwhile; no host
// is looked up and no socket is opened while it is held. Whoever takes both takes changing first.
package listeners
