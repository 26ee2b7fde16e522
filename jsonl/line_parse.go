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
func (p *parser) parse(line []byte, namespace int, now int64) (keyLine, error) {
	found, err := p.split(line)
	if err != nil {
		return keyLine{}, err
	}
	l := keyLine{namespace: namespace}
	if err := p.readKey(&l, &found); err != nil {
		return keyLine{}, err
	}
	if err := p.readMeta(&l, &found, now); err != nil {
		return keyLine{}, err
	}
	return l, p.readValue(&l, &found)
}

// split takes the outer object apart and refuses an unknown member: a misspelt
// ttl_ms would otherwise be lost without a word. A member that appears twice is
// refused by the decoder.
func (p *parser) split(line []byte) (members, error) {
	var found members
	// jsontext would say so too, but not what to write instead.
	if !utf8.Valid(line) {
		return found, errors.New(`not valid UTF-8: write binary data as keyB64, valueB64 or {"b64":"..."}`)
	}
	d := &p.line
	d.reset(line, 0, lineOptions)
	err := d.object("an object", func(name string) error {
		i := slices.Index(memberNames[:], name)
		if i < 0 {
			return fmt.Errorf("unknown member %q (known: %s)", clip(name, 40), strings.Join(memberNames[:], ", "))
		}
		value, err := d.json.ReadValue()
		if err != nil {
			return d.syntax(err)
		}
		end := int(d.json.InputOffset())
		found[i] = member{line[end-len(value) : end], end - len(value)}
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

// readKey reads key or keyB64.
func (p *parser) readKey(l *keyLine, m *members) (err error) {
	plain, encoded := m[memberKey], m[memberKeyB64]
	switch {
	case plain.present() && encoded.present():
		return errors.New("key and keyB64 exclude each other")
	case plain.present():
		l.key, err = p.open(plain).bytes("key")
	case encoded.present():
		l.key, err = p.open(encoded).base64("keyB64")
	default:
		return errors.New("no key")
	}
	return err
}

// readMeta reads the type, the namespace and the deadline.
func (p *parser) readMeta(l *keyLine, m *members, now int64) error {
	if !m[memberType].present() {
		return errors.New("no type")
	}
	name, err := p.open(m[memberType]).text("a type as a string")
	if err != nil {
		return err
	}
	if !kinds[name] {
		return fmt.Errorf("type must be string, hash, list, set or zset, not %q", clip(name, 40))
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
		l.namespace = int(namespace)
	}
	return p.readDeadline(l, m, now)
}

// readDeadline reads ttl_ms (from now) or expire_at_ms (a Unix time).
func (p *parser) readDeadline(l *keyLine, m *members, now int64) error {
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
		l.expireAt = now + ms
	case at.present():
		ms, err := p.open(at).integer("expire_at_ms")
		if err != nil {
			return err
		}
		if ms <= 0 {
			return fmt.Errorf("expire_at_ms must be positive, not %d", ms)
		}
		l.expireAt = ms
	}
	return nil
}

// readValue reads value or valueB64, as the type demands, and the deadlines of fields.
func (p *parser) readValue(l *keyLine, m *members) (err error) {
	plain, encoded := m[memberValue], m[memberValueB64]
	switch {
	case plain.present() && encoded.present():
		return errors.New("value and valueB64 exclude each other")
	case encoded.present() && l.kind != "string":
		return fmt.Errorf("valueB64 is for strings: in a %s write {\"b64\":\"...\"} where a string stands", l.kind)
	case encoded.present():
		l.value, err = p.open(encoded).base64("valueB64")
	case !plain.present():
		return errors.New("no value")
	case l.kind == "string":
		l.value, err = p.open(plain).bytes("value")
	default:
		err = l.readElements(p.open(plain))
	}
	if err == nil && m[memberFieldExpireAt].present() {
		err = l.readFieldDeadlines(p.open(m[memberFieldExpireAt]))
	}
	return err
}

// readElements reads the value of a collection.
func (l *keyLine) readElements(d *decoder) (err error) {
	unique := false // An object, whose names are known to differ, needs no second look.
	add := func(e element, err error) error {
		if err == nil {
			l.elements = append(l.elements, e)
		}
		return err
	}
	what := "an array as the value of a " + l.kind
	switch l.kind {
	case "hash":
		what = "an object or an array of pairs as the value of a hash"
		if unique = d.json.PeekKind() != jsontext.KindBeginArray; unique {
			err = d.object(what, func(name string) error {
				value, err := d.bytes("a field's value")
				return add(element{name: name, value: value}, err)
			})
			break
		}
		err = d.array(what, func() error { return add(d.fieldAndValue()) })
	case "list":
		unique = true // or rather need not be
		err = d.array(what, func() error {
			value, err := d.bytes("a list element")
			return add(element{value: value}, err)
		})
	case "set":
		err = d.array(what, func() error {
			name, err := d.bytes("a set member")
			return add(element{name: name}, err)
		})
	case "zset":
		err = d.array(what, func() error { return add(d.memberAndScore()) })
	}
	if err != nil || unique {
		return err
	}
	return l.checkUnique()
}

// checkUnique refuses an element that appears twice: one of the two would be
// lost, and which one JSON does not define.
func (l *keyLine) checkUnique() error {
	if len(l.elements) < 2 {
		return nil
	}
	seen := make(map[string]struct{}, len(l.elements))
	for _, e := range l.elements {
		if _, ok := seen[e.name]; ok {
			return fmt.Errorf("%q appears twice in the %s", clip(e.name, 40), l.kind)
		}
		seen[e.name] = struct{}{}
	}
	return nil
}

// readFieldDeadlines reads an object, or an array of [field, deadline] pairs, of
// fields that the value has.
func (l *keyLine) readFieldDeadlines(d *decoder) (err error) {
	if l.kind != "hash" {
		return fmt.Errorf("field_expire_at_ms is for hashes, not for a %s", l.kind)
	}
	add := func(f fieldDeadline, err error) error {
		if err == nil && (f.expireAt <= 0 || f.expireAt > db.LastFieldDeadline.UnixMilli()) {
			err = fmt.Errorf("the deadline of a field must not be %d", f.expireAt)
		}
		if err == nil {
			l.deadlines = append(l.deadlines, f)
		}
		return err
	}
	const what = "an object or an array of pairs as field_expire_at_ms"
	if d.json.PeekKind() == jsontext.KindBeginArray {
		err = d.array(what, func() error { return add(d.fieldAndDeadline()) })
	} else {
		err = d.object(what, func(name string) error {
			ms, err := d.integer("the deadline of a field")
			return add(fieldDeadline{name, ms}, err)
		})
	}
	if err != nil || len(l.deadlines) == 0 {
		return err
	}
	fields := make(map[string]bool, len(l.elements))
	for _, e := range l.elements {
		fields[e.name] = true
	}
	for _, f := range l.deadlines {
		if !fields[f.field] {
			return fmt.Errorf("%q has a deadline, but is not in the hash, or has two", clip(f.field, 40))
		}
		delete(fields, f.field)
	}
	return nil
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

func (d *decoder) memberAndScore() (e element, err error) {
	err = d.pair("[member, score]", "a score",
		func() (err error) { e.name, err = d.bytes("a sorted-set member"); return err },
		func() (err error) { e.score, err = d.score(); return err })
	return e, err
}

func (d *decoder) fieldAndValue() (e element, err error) {
	err = d.pair("[field, value]", "a value",
		func() (err error) { e.name, err = d.bytes("a hash field"); return err },
		func() (err error) { e.value, err = d.bytes("a field's value"); return err })
	return e, err
}

func (d *decoder) fieldAndDeadline() (f fieldDeadline, err error) {
	err = d.pair("[field, deadline]", "a deadline",
		func() (err error) { f.field, err = d.bytes("a hash field"); return err },
		func() (err error) { f.expireAt, err = d.integer("the deadline of a field"); return err })
	return f, err
}
