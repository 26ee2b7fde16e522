package rdb

import (
	"errors"
	"strings"
)

// opcodeFunction2 precedes the text of a library of functions, opcodeFunction that of the release candidates of
// Redis 7.0.
const (
	opcodeFunction2 = 245
	opcodeFunction  = 246
)

// The errors of DecodeFunctions besides ErrPayload.
var (
	ErrPreRelease  = errors.New("rdb: libraries of a release candidate of Redis 7.0")
	ErrNoFunctions = errors.New("rdb: the payload holds something else than libraries")
	ErrLibraryData = errors.New("rdb: the text of a library is not whole")
)

// EncodeFunctions makes the payload of FUNCTION DUMP of the texts of libraries.
func EncodeFunctions(libraries []string) []byte {
	var w Writer
	for _, text := range libraries {
		w.buf = append(w.buf, opcodeFunction2)
		w.Bytes([]byte(text))
	}
	return w.Seal()
}

// DecodeFunctions returns the texts of the libraries of a payload of FUNCTION DUMP, in its order.
func DecodeFunctions(payload []byte) (libraries []string, err error) {
	body, _, err := open(payload)
	if err != nil {
		return nil, err
	}
	r := reader{rest: body, inflate: maxInflated}
	for len(r.rest) > 0 {
		switch r.byte() {
		case opcodeFunction2:
		case opcodeFunction:
			return nil, ErrPreRelease
		default:
			return nil, ErrNoFunctions
		}
		text := r.string()
		if r.failed {
			return nil, ErrLibraryData
		}
		libraries = append(libraries, string(text))
	}
	return libraries, nil
}

// LibraryName returns the name that the first line of a library states, as in "#!lua name=mylib"; "" if it does not.
func LibraryName(text string) string {
	line, _, ended := strings.Cut(text, "\n")
	words := strings.Fields(line)
	if !ended || !strings.HasPrefix(line, "#!") {
		return ""
	}
	name := ""
	for _, word := range words[1:] {
		word = strings.Trim(word, `"'`)
		if len(word) < len("name=") || !strings.EqualFold(word[:len("name=")], "name=") || name != "" {
			return ""
		}
		name = word[len("name="):]
	}
	if strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_'
	}) {
		return ""
	}
	return name
}
