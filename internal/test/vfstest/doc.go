// Package vfstest has the two file systems by which tests see and disturb what a store does to its files. Both wrap
// another one of package vfs:
//
//   - [Fault] makes chosen operations fail.
//   - [Recorder] keeps every operation, in order, with the bytes: enough to read the order of syncs as text, and to rebuild
//     every state that a power cut could have left.
package vfstest
