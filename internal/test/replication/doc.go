// Package replication has tests of Stave as the master and as the replica of unpatched Redis servers, and of other Staves: what the
// servers have is compared key by key.
package replication
