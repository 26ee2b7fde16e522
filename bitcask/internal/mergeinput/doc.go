// Package mergeinput reads the segments that a merge has picked: their entries in order of sequence, from hints where
// these are good, and the records worth copying.
//
// Inputs yields entries of many segments with few of them open at a time; an Input knows which of its strings and
// deadlines are live, if a live scan has found out; a RecordReader reads ahead and verifies; a Batch groups entries by
// stripe, so that a lock is taken for many at a time. Nothing here takes a lock: package mergeselect visits batches and
// decides which entries are live.
package mergeinput
