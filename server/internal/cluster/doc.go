// Package cluster is the cluster as clients find it: the slot of a key, what a cluster refuses, and CLUSTER with its like. It is a
// server that owns all slots, or groups of servers, each with its own.
//
// What is elsewhere is for package dispatch to say. What a cluster refuses is refused in Redis's words, so that a
// program which works with one server works on a larger cluster too: requests for keys of several slots, and databases but 0.
// Without cluster-enabled every question about a cluster has the same answer, and clients go on as with a single
// server.
//
// All are pure functions, but for the commands that look at the keys of a slot.
package cluster
