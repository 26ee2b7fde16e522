package resp

import "strconv"

// AppendCommand appends a command as a client sends it: an array of bulk strings.
func AppendCommand(dst []byte, args ...[]byte) []byte { return appendCommand(dst, args) }

// AppendCommandStrings is [AppendCommand] for strings.
func AppendCommandStrings(dst []byte, args ...string) []byte { return appendCommand(dst, args) }

func appendCommand[T string | []byte](dst []byte, args []T) []byte {
	dst = appendHeader(dst, '*', len(args))
	for _, arg := range args {
		dst = appendHeader(dst, '$', len(arg))
		dst = append(dst, arg...)
		dst = append(dst, '\r', '\n')
	}
	return dst
}

func appendHeader(dst []byte, kind byte, n int) []byte {
	switch {
	case uint(n) < 10:
		return append(dst, kind, '0'+byte(n), '\r', '\n')
	case uint(n) < 100:
		return append(dst, kind, '0'+byte(n/10), '0'+byte(n%10), '\r', '\n')
	case uint(n) < 1000:
		return append(dst, kind, '0'+byte(n/100), '0'+byte(n/10%10), '0'+byte(n%10), '\r', '\n')
	}
	dst = append(dst, kind)
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\r', '\n')
}
