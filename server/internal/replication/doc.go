// Package replication speaks Redis's replication protocol: bytes in, bytes out. It knows no socket and
// executes no commands; the functions of the server that it needs are given to it.
//
// [Stream] is what a master sends, [Feeder] the side of a master for one replica, [Feeders] all of them.
// [Link] is the side of a replica. What that receives is the stream for the replica's own replicas ([Stream.Pass]), and goes on
// with the commits of a replica that is promoted ([Feeders.Lead]). What a demoted master alone has is kept ([KeepOrphans]).
package replication
