package jsonl

import (
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"
)

// appendHead appends the line up to its value. expireAt is the deadline in Unix milliseconds; 0 is none.
func appendHead(dst []byte, namespace int, key, kind string, expireAt int64) []byte {
	dst = append(dst, '{')
	if namespace != 0 {
		dst = append(dst, `"db":`...)
		dst = strconv.AppendInt(dst, int64(namespace), 10)
		dst = append(dst, ',')
	}
	if utf8.ValidString(key) {
		dst = appendText(append(dst, `"key":`...), key)
	} else {
		dst = append(dst, `"keyB64":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, []byte(key))
		dst = append(dst, '"')
	}
	dst = append(dst, `,"type":"`...)
	dst = append(dst, kind...)
	dst = append(dst, '"')
	if expireAt != 0 {
		dst = append(dst, `,"expire_at_ms":`...)
		dst = strconv.AppendInt(dst, expireAt, 10)
	}
	return dst
}

// appendStringValue appends the value member of a string.
func appendStringValue(dst, value []byte) []byte {
	if utf8.Valid(value) {
		if s := string(value); shorterAsText(s) {
			return appendText(append(dst, `,"value":`...), s)
		}
	}
	dst = append(dst, `,"valueB64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, value)
	return append(dst, '"')
}

// AppendBytes appends any bytes as a line of this format has them within a
// collection: as a JSON string if they are UTF-8, and as {"b64":"..."} otherwise. No
// other object can stand where a string is expected, so the two never clash.
func AppendBytes[T string | []byte](dst []byte, data T) []byte {
	if s := string(data); utf8.ValidString(s) {
		return appendText(dst, s)
	}
	return appendBase64(dst, []byte(data))
}

// appendElement is AppendBytes for an export.
func appendElement[T string | []byte](dst []byte, data T) []byte {
	if s := string(data); utf8.ValidString(s) && shorterAsText(s) {
		return appendText(dst, s)
	}
	return appendBase64(dst, []byte(data))
}

func appendBase64(dst, data []byte) []byte {
	dst = append(dst, `{"b64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, data)
	return append(dst, `"}`...)
}

// longText is the length in bytes from which an export writes a text as base64 if that is shorter. A bitmap of zeros is
// valid UTF-8, and as text six times as long, which can be more than the line that an import takes.
const longText = 64 << 10

func shorterAsText(s string) bool { return len(s) < longText || escapes(s) <= len(s)/3 }

// escapes is how many bytes longer a text is as a JSON string.
func escapes(s string) (n int) {
	for i := range len(s) {
		switch b := s[i]; {
		case b == '"', b == '\\', b == '\n', b == '\r', b == '\t':
			n++
		case b < 0x20, b == 0x7f:
			n += len(`\u0000`) - 1
		case b == 0xc2 && s[i+1] < 0xa0: // U+0080 to U+009F
			n += len(`\u0000`) - 2
		}
	}
	return n
}

// appendText appends s as a JSON string. Only what JSON demands is escaped,
// plus DEL and the C1 controls: an export read on a terminal must not be able
// to move its cursor. s must be valid UTF-8.
func appendText(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		b := s[i]
		size := 1
		switch {
		case b == '"' || b == '\\':
			dst = append(dst, s[start:i]...)
			dst = append(dst, '\\', b)
		case b == '\n', b == '\r', b == '\t':
			dst = append(dst, s[start:i]...)
			dst = append(dst, '\\', map[byte]byte{'\n': 'n', '\r': 'r', '\t': 't'}[b])
		case b < 0x20 || b == 0x7f:
			dst = append(dst, s[start:i]...)
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		case b == 0xc2 && i+1 < len(s) && s[i+1] < 0xa0: // U+0080 to U+009F
			dst = append(dst, s[start:i]...)
			dst = append(dst, '\\', 'u', '0', '0', hex[s[i+1]>>4], hex[s[i+1]&15])
			size = 2
		default:
			i++
			continue
		}
		i += size
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// AppendScore appends a sorted-set score with the fewest digits that read back
// as the same float64. JSON has no infinity, so that becomes a string.
func AppendScore(dst []byte, score float64) []byte {
	switch {
	case math.IsInf(score, 1):
		return append(dst, `"inf"`...)
	case math.IsInf(score, -1):
		return append(dst, `"-inf"`...)
	case score == math.Trunc(score) && math.Abs(score) < 1e17:
		return strconv.AppendFloat(dst, score, 'f', -1, 64)
	}
	return strconv.AppendFloat(dst, score, 'g', -1, 64)
}
