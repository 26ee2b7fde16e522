// Package seeded shows that the tests would notice. Each file in bugs is a defect that a storage
// engine may well have: a missing sync, a checksum that is not compared, a tombstone dropped too
// early. Its test puts one of them at a time into the code and expects the test that the file names
// to fail.
//
// A file is a header, then edits:
//
//	bug: what is wrong
//	fault: its fault in the fault model (docs/appendix/seeded-bugs.md)
//	test: package, name of the test, further arguments of go test
//	file: path of the source file
//	<<<<
//	lines as they stand in the file, there exactly once
//	====
//	lines that replace them
//	>>>>
//
// These are pieces of text rather than patches because a patch carries lines
// around it that change for other reasons. The code itself is not touched: go
// test takes the changed files as an overlay. That every edit still fits is
// tested always; the bugs are tried with
//
//	go test ./internal/test/seeded -v -seeded .
package seeded
