package jsonl

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/rdb"
)

// A parser turns lines into keys, one after the other.
type parser struct {
	line  decoder // over the line
	value decoder // over one of its members
}

// A member is the value of a member as it was written; empty if it is not there.
type member struct {
	text []byte
	at   int // where it begins in the line
}

func (m member) present() bool { return len(m.text) > 0 }

// members are the members of one line.
type members [memberCount]member

// parse reads one line. namespace is that of lines that name none; now (Unix ms)
// turns ttl_ms into a deadline. A collection without elements is legal: it means
// that the key does not exist.
func (p *parser) parse(text []byte, namespace int, now int64) (l line, err error) {
	found, err := p.split(text)
	if err != nil {
		return l, err
	}
	l.First, l.Last = true, true
	if found[memberLibrary].present() {
		return l, p.readLibrary(&l, &found)
	}
	l.Database = uint64(namespace)
	if l.Name, err = p.readText(&found, memberKey, memberKeyB64); err != nil {
		return l, err
	}
	if err := p.readMeta(&l, &found, now); err != nil {
		return l, err
	}
	return l, p.readValue(&l, &found)
}

// split takes the outer object apart and refuses an unknown member: a misspelt
// ttl_ms would otherwise be lost without a word. A member that appears twice is
// refused by the decoder.
func (p *parser) split(text []byte) (members, error) {
	var found members
	// jsontext would say so too, but not what to write instead.
	if !utf8.Valid(text) {
		return found, errors.New(`not valid UTF-8: write binary data as keyB64, valueB64 or {"b64":"..."}`)
	}
	d := &p.line
	d.reset(text, 0, lineOptions)
	err := d.object("an object", func(name []byte) error {
		i := slices.Index(memberNames[:], string(name))
		if i < 0 {
			return fmt.Errorf("unknown member %q (known: %s)", clip(name, 40), strings.Join(memberNames[:], ", "))
		}
		value, err := d.json.ReadValue()
		if err != nil {
			return d.syntax(err)
		}
		end := int(d.json.InputOffset())
		found[i] = member{text[end-len(value) : end], end - len(value)}
		return nil
	})
	if err != nil {
		return found, err
	}
	if _, err := d.json.ReadToken(); err != io.EOF {
		return found, fmt.Errorf("JSON: something follows the object at byte %d", d.start()+1)
	}
	return found, nil
}

// open returns a decoder over one member, or nil when it is not there.
func (p *parser) open(m member) *decoder {
	if !m.present() {
		return nil
	}
	p.value.reset(m.text, m.at, valueOptions)
	return &p.value
}

// readText reads a member that may stand in base64 under another name.
func (p *parser) readText(m *members, plain, encoded int) ([]byte, error) {
	switch {
	case m[plain].present() && m[encoded].present():
		return nil, fmt.Errorf("%s and %s exclude each other", memberNames[plain], memberNames[encoded])
	case m[plain].present():
		return p.open(m[plain]).bytes(memberNames[plain])
	case m[encoded].present():
		return p.open(m[encoded]).base64(memberNames[encoded])
	}
	return nil, errors.New("no " + memberNames[plain])
}

// readLibrary reads a library of functions: its name and its text.
func (p *parser) readLibrary(l *line, m *members) (err error) {
	for i, one := range m {
		if one.present() && i != memberLibrary && i != memberValue && i != memberValueB64 {
			return fmt.Errorf("a library has no %s", memberNames[i])
		}
	}
	l.Library, l.kind = true, "string"
	if l.Name, err = p.open(m[memberLibrary]).bytes("library"); err != nil {
		return err
	}
	if err = p.readValue(l, m); err == nil && (len(l.Name) == 0 || len(l.Value.Elements[0]) == 0) {
		err = errors.New("a library needs a name and a text")
	}
	return err
}

// readMeta reads the type, the namespace and the deadline.
func (p *parser) readMeta(l *line, m *members, now int64) error {
	if !m[memberType].present() {
		return errors.New("no type")
	}
	name, err := p.open(m[memberType]).text("a type as a string")
	if err != nil {
		return err
	}
	var known bool
	if l.Value.Kind, known = kinds[name]; !known {
		return fmt.Errorf("type must be string, hash, list, set, zset or stream, not %q", clip(name, 40))
	}
	l.kind = name
	if d := p.open(m[memberDB]); d != nil {
		namespace, err := d.integer("db")
		if err != nil {
			return err
		}
		if namespace < 0 || namespace > math.MaxInt32 {
			return fmt.Errorf("db must not be %d", namespace)
		}
		l.Database = uint64(namespace)
	}
	return p.readDeadline(l, m, now)
}

// readDeadline reads ttl_ms (from now) or expire_at_ms (a Unix time).
func (p *parser) readDeadline(l *line, m *members, now int64) error {
	ttl, at := m[memberTTL], m[memberExpireAt]
	switch {
	case ttl.present() && at.present():
		return errors.New("ttl_ms and expire_at_ms exclude each other")
	case ttl.present():
		ms, err := p.open(ttl).integer("ttl_ms")
		if err != nil {
			return err
		}
		if ms <= 0 || ms > math.MaxInt64-now {
			return fmt.Errorf("ttl_ms must be positive, not %d", ms)
		}
		l.Deadline = now + ms
	case at.present():
		ms, err := p.open(at).integer("expire_at_ms")
		if err != nil {
			return err
		}
		if ms <= 0 {
			return fmt.Errorf("expire_at_ms must be positive, not %d", ms)
		}
		l.Deadline = ms
	}
	return nil
}

// readValue reads value or valueB64, as the type demands, and the deadlines of fields.
func (p *parser) readValue(l *line, m *members) (err error) {
	plain, encoded := m[memberValue].present(), m[memberValueB64].present()
	switch {
	case encoded && !plain && l.Value.Kind != rdb.String:
		return fmt.Errorf("valueB64 is for strings: in a %s write {\"b64\":\"...\"} where a string stands", l.kind)
	case encoded || !plain || l.Value.Kind == rdb.String:
		var value []byte
		value, err = p.readText(m, memberValue, memberValueB64)
		l.Value.Elements = [][]byte{value}
	default:
		err = l.readElements(p.open(m[memberValue]))
	}
	if err == nil && m[memberFieldExpireAt].present() {
		err = l.readFieldDeadlines(p.open(m[memberFieldExpireAt]))
	}
	return err
}

// readElements reads the value of a collection.
func (l *line) readElements(d *decoder) (err error) {
	v := &l.Value
	add := func(what string) (err error) {
		element, err := d.bytes(what)
		v.Elements = append(v.Elements, element)
		return err
	}
	what := "an array as the value of a " + l.kind
	switch v.Kind {
	case rdb.StreamKind:
		return l.readStream(d)
	case rdb.Hash:
		what = "an object or an array of pairs as the value of a hash"
		if d.json.PeekKind() != jsontext.KindBeginArray {
			return d.object(what, func(name []byte) error { // whose names are known to differ
				v.Elements = append(v.Elements, name)
				return add("a field's value")
			})
		}
		err = d.array(what, func() error {
			return d.pair("[field, value]", "a value",
				func() error { return add("a hash field") }, func() error { return add("a field's value") })
		})
	case rdb.List:
		return d.array(what, func() error { return add("a list element") })
	case rdb.Set:
		err = d.array(what, func() error { return add("a set member") })
	case rdb.SortedSet:
		err = d.array(what, func() error {
			return d.pair("[member, score]", "a score", func() error { return add("a sorted-set member") }, func() error {
				score, err := d.score()
				v.Scores = append(v.Scores, score)
				return err
			})
		})
	}
	if err != nil {
		return err
	}
	_, err = l.names()
	return err
}

// names are the fields or members of a collection, with their numbers. One that appears twice is refused: one of the
// two would be lost, and which one JSON does not define.
func (l *line) names() (map[string]int, error) {
	width := 1
	if l.Value.Kind == rdb.Hash {
		width = 2
	}
	seen := make(map[string]int, len(l.Value.Elements)/width)
	for i := 0; i < len(l.Value.Elements); i += width {
		name := string(l.Value.Elements[i])
		if _, ok := seen[name]; ok {
			return nil, fmt.Errorf("%q appears twice in the %s", clip(name, 40), l.kind)
		}
		seen[name] = i / width
	}
	return seen, nil
}

// readFieldDeadlines reads an object, or an array of [field, deadline] pairs, of
// fields that the value has.
func (l *line) readFieldDeadlines(d *decoder) error {
	if l.Value.Kind != rdb.Hash {
		return fmt.Errorf("field_expire_at_ms is for hashes, not for a %s", l.kind)
	}
	fields, err := l.names()
	if err != nil {
		return err
	}
	deadlines := make([]int64, len(fields))
	set := func(field []byte) error {
		ms, err := d.integer("the deadline of a field")
		if err != nil {
			return err
		}
		if ms <= 0 || ms > db.LastFieldDeadline.UnixMilli() {
			return fmt.Errorf("the deadline of a field must not be %d", ms)
		}
		i, there := fields[string(field)]
		if !there || deadlines[i] != 0 {
			return fmt.Errorf("%q has a deadline, but is not in the hash, or has two", clip(field, 40))
		}
		deadlines[i], l.Value.Deadlines = ms, deadlines
		return nil
	}
	const what = "an object or an array of pairs as field_expire_at_ms"
	if d.json.PeekKind() != jsontext.KindBeginArray {
		return d.object(what, set)
	}
	return d.array(what, func() error {
		var field []byte
		return d.pair("[field, deadline]", "a deadline",
			func() (err error) { field, err = d.bytes("a hash field"); return err }, func() error { return set(field) })
	})
}

// pair consumes an array of two values.
func (d *decoder) pair(what, second string, readFirst, readSecond func() error) error {
	if err := d.take(jsontext.KindBeginArray, "a "+what+" pair"); err != nil {
		return err
	}
	if err := readFirst(); err != nil {
		return err
	}
	if d.json.PeekKind() == jsontext.KindEndArray {
		return d.expected("',' and " + second)
	}
	if err := readSecond(); err != nil {
		return err
	}
	return d.take(jsontext.KindEndArray, "the end of a "+what+" pair")
}
