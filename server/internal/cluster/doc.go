// Package cluster is a cluster of one node, which owns all slots, for clients that speak to clusters only: the slot of
// a key, what a cluster refuses, and CLUSTER with its like.
//
// Nothing is ever elsewhere, so no client is redirected. What a cluster refuses is refused in Redis's words, so that a
// program which works here works on a larger cluster too: requests for keys of several slots, and databases but 0.
// Without cluster-enabled every question about a cluster has the same answer, and clients go on as with a single
// server.
//
// All are pure functions, but for the commands that look at the keys of a slot.
package cluster
