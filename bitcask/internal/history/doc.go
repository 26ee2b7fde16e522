// Package history is the bytes of the record that says which order of commits a store is in, and the rule by which the
// next one follows.
package history
