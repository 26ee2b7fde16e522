package format

// Entry is what loading needs to know of one record and its followers. Its
// slices are valid until the source of entries moves on.
type Entry struct {
	Identity
	Seq    uint64
	At     uint32 // offset of the record in its segment
	Size   uint32 // with the records that follow it
	Inline []byte // the value, for the kinds that RAM holds the value of
}
