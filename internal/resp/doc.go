// Package resp speaks the Redis serialization protocol, versions 2 and 3, in both directions.
//
// A server uses [Parser], which turns bytes that arrive in any split into commands, and [Writer], which appends replies
// to a buffer in the version the client asked for. A client uses [AppendCommand] to send and [Decoder] (or [Decode],
// for a reply that is already in memory) to receive. [SplitLine] and [AppendQuoted] are the quoting rules that inline
// commands and interactive shells share.
//
// Nothing here trusts an announced length: buffers grow with the bytes that have arrived, every limit is a named
// constant or option and is checked before anything is allocated for it. No type here is safe for concurrent use, and
// none starts a goroutine.
//
// The protocol is described at https://redis.io/docs/latest/develop/reference/protocol-spec/.
package resp
