package fileimport

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// maxManifest is the length of a manifest in bytes; Redis's own has a line for each part.
const maxManifest = 1 << 20

// Parts are the paths of the parts of an AOF, in order: the base, and what came after it. Parts that Redis has replaced
// and not yet removed are left out. Names must be of files in the manifest's directory, so it can name no other file of
// the machine. It does not look whether they are there.
func (s *Source) Parts() (parts []string, err error) {
	defer func() { err = s.named(err) }()
	text, err := io.ReadAll(io.LimitReader(s.in, maxManifest))
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		part := map[string]string{}
		for j := 0; j+1 < len(words); j += 2 {
			part[words[j]] = words[j+1]
		}
		name := strings.Trim(part["file"], `"`)
		if name == "" || name != filepath.Base(name) || part["type"] == "" {
			return nil, fmt.Errorf("line %d is not one of a manifest: file NAME seq N type T", i+1)
		}
		if part["type"] != "h" {
			parts = append(parts, filepath.Join(filepath.Dir(s.Name), name))
		}
	}
	if len(parts) == 0 {
		err = errors.New("the manifest lists no files")
	}
	return parts, err
}
