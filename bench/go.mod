module github.com/stavedb/stave/bench

go 1.26.0

require github.com/stavedb/stave v0.0.0

require (
	github.com/google/btree v1.1.3 // indirect
	github.com/klauspost/crc32 v1.3.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/stavedb/stave => ../
