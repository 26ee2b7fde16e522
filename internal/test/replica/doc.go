// Package replica has tests of Stave as a replica of an unpatched redis-server: what the two have is compared key by key.
package replica
