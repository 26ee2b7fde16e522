package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestParseStatus(t *testing.T) {
	const text = "\n" +
		"Package: a\nStatus: install ok installed\nVersion: 1:2-3\nSection: libs\nArchitecture: amd64\nInstalled-Size: 12\n" +
		"Pre-Depends: libc6 (>= 2.36)\nDepends: b | c:any,\n d:amd64 [linux-any] <!nocheck>, b\n" +
		"Description: first: line\n second line\n .\n third: line\n" +
		"\n \n" +
		"Package: gone\nStatus: deinstall ok config-files\n\n" +
		"Package: half\nStatus: install ok half-installed\n\n" +
		"Package: a\r\nArchitecture: i386\r\n"
	packages, err := parseStatus(iotest.OneByteReader(strings.NewReader(text)), "status")
	if err != nil {
		t.Fatal(err)
	}
	want := []Package{
		{
			Name: "a", Version: "1:2-3", Section: "libs", Architecture: "amd64", Description: "first: line", Size: 12,
			Depends: "libc6 (>= 2.36), b | c:any,\n d:amd64 [linux-any] <!nocheck>, b",
		},
		{Name: "a:i386", Architecture: "i386"},
	}
	if !slices.Equal(packages, want) {
		t.Fatalf("packages\n%+v, want\n%+v", packages, want)
	}
	if got, want := packages[0].Needs(), []string{"b", "c", "d", "libc6"}; !slices.Equal(got, want) {
		t.Errorf("needs %q, want %q", got, want)
	}
	if got := packages[1].Needs(); len(got) != 0 {
		t.Errorf("a package without dependencies needs %q", got)
	}
}

// TestParseStatusLongLines has lines beyond the 64 KiB that a bufio.Scanner takes.
func TestParseStatusLongLines(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	depends := strings.Repeat("some-library (>= 1.0), ", 10_000) + "last"
	text := "Package: a\nDescription: " + long + "\n " + long + "\nDepends: " + depends + "\n\nPackage: b"
	packages, err := parseStatus(strings.NewReader(text), "status")
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) != 2 || packages[0].Description != long || packages[1].Name != "b" {
		t.Fatalf("%d packages", len(packages))
	}
	if got, want := packages[0].Needs(), []string{"last", "some-library"}; !slices.Equal(got, want) {
		t.Errorf("needs %q, want %q", got, want)
	}
}

func TestParseStatusErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no field", "Package: a\nnonsense\n", `status:2: not a field: "nonsense"`},
		{"no name of a field", "Package: a\n: x\n", "status:2: not a field"},
		{"space in a name", "Package: a\nSome Field: x\n", "status:2: not a field"},
		{"continues nothing", " x\n", "status:1: a continuation line that continues nothing"},
		{"continues nothing after a blank line", "Package: a\n\n x\n", "status:3: a continuation line"},
		{"field twice", "Package: a\nVersion: 1\nVersion: 2\n", "status:3: field Version is there twice"},
		{"no package", "\n\nVersion: 1\nSection: x\n", "status:3: a paragraph without the field Package"},
		{"empty name", "Package:\n", `status:1: "" is no name of a package`},
		{"bad name", "Package: a b\n", `status:1: "a b" is no name of a package`},
		{"package twice", "Package: a\n\nPackage: a\nArchitecture: i386\n\nPackage: a\nArchitecture: i386\n",
			"status:6: package a:i386 is there twice"},
		{"size no number", "Package: a\nInstalled-Size: big\n", `status:2: Installed-Size "big" is no number of KiB`},
		{"size negative", "Package: a\nInstalled-Size: -1\n", "status:2: Installed-Size"},
		{"bad dependency", "Package: a\nVersion: 1\nDepends: b, c |\n", `status:3: Depends: "" is no dependency`},
		{"bad early dependency", "Package: a\nPre-Depends: (>= 1)\n", `status:2: Pre-Depends: "(>= 1)" is no dependency`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			packages, err := parseStatus(strings.NewReader(test.text), "status")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%d packages, error %v, want %s", len(packages), err, test.want)
			}
		})
	}
}

func TestParseStatusReadError(t *testing.T) {
	broken := errors.New("broken")
	in := iotest.DataErrReader(strings.NewReader("Package: a\nVer"))
	_, err := parseStatus(&failing{in, broken}, "status")
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "status:2: ") {
		t.Errorf("error %v, want one of line 2", err)
	}
}

// failing ends with an error where its reader just ends.
type failing struct {
	in interface{ Read([]byte) (int, error) }
	at error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.in.Read(p)
	if err != nil {
		err = f.at
	}
	return n, err
}
