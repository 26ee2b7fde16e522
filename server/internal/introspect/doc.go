// Package introspect is COMMAND, by which a client learns the protocol: drivers read the positions of keys from it,
// shells their help. All of it is derived from the rows of the command table, so that it cannot disagree with them; the
// forms are Redis's, with one key specification for each run of keys. It changes nothing and reads no keys.
package introspect
