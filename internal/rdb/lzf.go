package rdb

// maxRatio is how many bytes a byte of LZF can stand for at most: a reference of three bytes gives 264.
const maxRatio = 88

// inflate undoes LZF, the compression of longer strings: literal runs, and references to what came before.
func inflate(in []byte, size int) ([]byte, bool) {
	out := make([]byte, 0, size)
	for len(in) > 0 {
		control := int(in[0])
		in = in[1:]
		if control < 32 {
			n := control + 1
			if n > len(in) || n > size-len(out) {
				return nil, false
			}
			out = append(out, in[:n]...)
			in = in[n:]
			continue
		}
		n := control >> 5
		if n == 7 {
			if len(in) == 0 {
				return nil, false
			}
			n += int(in[0])
			in = in[1:]
		}
		n += 2
		if len(in) == 0 {
			return nil, false
		}
		from := len(out) - (control&0x1f)<<8 - int(in[0]) - 1
		in = in[1:]
		if from < 0 || n > size-len(out) {
			return nil, false
		}
		// Byte by byte, for a reference may reach into its own output.
		for i := range n {
			out = append(out, out[from+i])
		}
	}
	return out, len(out) == size
}
