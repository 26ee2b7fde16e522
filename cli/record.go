package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stavedb/stave/db"
)

// A record is one key as a line of JSON carries it, in both directions:
//
//	{"key":"greeting","type":"string","value":"hi"}
//	{"key":"user:1","type":"hash","value":{"name":"Ada"},"expire_at_ms":1900000000000}
//	{"key":"user:2","type":"hash","value":{"name":"Bob","code":"7"},"field_expire_at_ms":{"code":1900000000000}}
//	{"key":"jobs","type":"list","value":["a","b"]}
//	{"key":"tags","type":"set","value":["x","y"]}
//	{"key":"board","type":"zset","value":[["Ada",1.5],["Bob","inf"]]}
//	{"db":3,"keyB64":"//4=","type":"string","valueB64":"AAE="}
//
// Wherever a string within a value is not UTF-8 it is {"b64":"..."} instead. A
// hash with such a field name is an array of [field, value] pairs, since the
// name of a JSON member must be text, and so are the deadlines of its fields.
type record struct {
	db       int
	key      string
	kind     string // string, hash, list, set, zset
	value    string // string
	items    []item // the four collections
	expireAt int64  // deadline in Unix milliseconds; 0: none
	timed    []timedField
}

// A timedField is a field of a hash that has a deadline.
type timedField struct {
	name     string
	expireAt int64 // Unix milliseconds
}

// An item is one element of a collection: a hash field (name, value), a list
// element (value), a set member (name) or a sorted-set member (name, score).
type item struct {
	name, value string
	score       float64
}

// kinds are the types that a record can hold, by their names in JSON.
var kinds = map[string]bool{"string": true, "hash": true, "list": true, "set": true, "zset": true}

// parseRecord reads one line. db is the namespace for lines that name none; now
// (Unix ms) turns ttl_ms into a deadline. A collection without elements is
// legal: it means that the key does not exist.
func parseRecord(line []byte, db int, now int64) (record, error) {
	found, err := splitMembers(line)
	if err != nil {
		return record{}, err
	}
	rec := record{db: db}
	if err := rec.readKey(&found); err != nil {
		return record{}, err
	}
	if err := rec.readMeta(&found, now); err != nil {
		return record{}, err
	}
	return rec, rec.readValue(&found)
}

// The members that a line may carry.
const (
	memberDB = iota
	memberKey
	memberKeyB64
	memberType
	memberValue
	memberValueB64
	memberTTL
	memberExpireAt
	memberFieldExpireAt
	memberCount
)

var memberNames = [memberCount]string{"db", "key", "keyB64", "type", "value", "valueB64", "ttl_ms", "expire_at_ms", "field_expire_at_ms"}

// members are the members of one object, each as it was written; nil if it is
// not there.
type members [memberCount][]byte

// splitMembers takes the outer object apart and refuses a member that is
// unknown (a misspelt ttl would otherwise vanish silently) or stands twice.
func splitMembers(line []byte) (members, error) {
	var found members
	r, err := newJSONReader(line)
	if err != nil {
		return found, err
	}
	err = r.object("an object", func(name string) error {
		i := slices.Index(memberNames[:], name)
		if i < 0 {
			return fmt.Errorf("unknown member %q (known: %s)", clip(name, 40), strings.Join(memberNames[:], ", "))
		}
		if found[i] != nil {
			return fmt.Errorf("member %q stands twice", name)
		}
		raw, err := r.raw()
		found[i] = raw
		return err
	})
	if err == nil && r.next() != 0 {
		err = fmt.Errorf("JSON: something follows the object at byte %d", r.pos+1)
	}
	return found, err
}

// reader returns a reader over one member, or nil when it is not there.
func (m *members) reader(member int) *jsonReader {
	if m[member] == nil {
		return nil
	}
	return &jsonReader{data: m[member]}
}

// readKey reads key or keyB64.
func (rec *record) readKey(m *members) (err error) {
	plain, encoded := m.reader(memberKey), m.reader(memberKeyB64)
	switch {
	case plain != nil && encoded != nil:
		return errors.New("key and keyB64 exclude each other")
	case plain != nil:
		rec.key, err = plain.bytes("key")
	case encoded != nil:
		rec.key, err = encoded.base64("keyB64")
	default:
		return errors.New("no key")
	}
	return err
}

// readMeta reads the type, the namespace and the deadline.
func (rec *record) readMeta(m *members, now int64) error {
	kind := m.reader(memberType)
	if kind == nil {
		return errors.New("no type")
	}
	name, err := kind.text("a type as a string")
	if err != nil {
		return err
	}
	if !kinds[name] {
		return fmt.Errorf("type must be string, hash, list, set or zset, not %q", clip(name, 40))
	}
	rec.kind = name
	if r := m.reader(memberDB); r != nil {
		db, err := r.integer("db")
		if err != nil {
			return err
		}
		if db < 0 || db > math.MaxInt32 {
			return fmt.Errorf("db must not be %d", db)
		}
		rec.db = int(db)
	}
	return rec.readDeadline(m, now)
}

// readDeadline reads ttl_ms (from now) or expire_at_ms (a Unix time).
func (rec *record) readDeadline(m *members, now int64) error {
	ttl, at := m.reader(memberTTL), m.reader(memberExpireAt)
	if ttl != nil && at != nil {
		return errors.New("ttl_ms and expire_at_ms exclude each other")
	}
	if ttl != nil {
		ms, err := ttl.integer("ttl_ms")
		if err != nil {
			return err
		}
		if ms <= 0 || ms > math.MaxInt64-now {
			return fmt.Errorf("ttl_ms must be positive, not %d", ms)
		}
		rec.expireAt = now + ms
	}
	if at != nil {
		ms, err := at.integer("expire_at_ms")
		if err != nil {
			return err
		}
		if ms <= 0 {
			return fmt.Errorf("expire_at_ms must be positive, not %d", ms)
		}
		rec.expireAt = ms
	}
	return nil
}

// readValue reads value or valueB64, as the type demands.
func (rec *record) readValue(m *members) (err error) {
	plain, encoded := m.reader(memberValue), m.reader(memberValueB64)
	switch {
	case plain != nil && encoded != nil:
		return errors.New("value and valueB64 exclude each other")
	case encoded != nil && rec.kind != "string":
		return fmt.Errorf("valueB64 is for strings: in a %s write {\"b64\":\"...\"} where a string stands", rec.kind)
	case encoded != nil:
		rec.value, err = encoded.base64("valueB64")
		return err
	case plain == nil:
		return errors.New("no value")
	}
	switch rec.kind {
	case "string":
		rec.value, err = plain.bytes("value")
	case "hash":
		err = rec.readHash(plain)
	case "list":
		err = rec.readElements(plain, func() error { return rec.add(plain.listElement()) })
	case "set":
		err = rec.readElements(plain, func() error { return rec.add(plain.setMember()) })
	case "zset":
		err = rec.readElements(plain, func() error { return rec.add(plain.scoredMember()) })
	}
	if err == nil && rec.kind != "list" {
		err = rec.checkUnique()
	}
	if err == nil && m[memberFieldExpireAt] != nil {
		err = rec.readFieldDeadlines(m.reader(memberFieldExpireAt))
	}
	return err
}

// readFieldDeadlines reads an object, or an array of [field, deadline] pairs, of
// fields that the value has.
func (rec *record) readFieldDeadlines(r *jsonReader) (err error) {
	if rec.kind != "hash" {
		return fmt.Errorf("field_expire_at_ms is for hashes, not for a %s", rec.kind)
	}
	const what = "an object or an array of pairs as field_expire_at_ms"
	if r.next() == '[' {
		err = r.array(what, func() error { return rec.addTimed(r.deadlinePair()) })
	} else {
		err = r.object(what, func(name string) error {
			ms, err := r.integer("the deadline of a field")
			return rec.addTimed(timedField{name, ms}, err)
		})
	}
	if err != nil || len(rec.timed) == 0 {
		return err
	}
	fields := make(map[string]bool, len(rec.items))
	for _, it := range rec.items {
		fields[it.name] = true
	}
	for _, f := range rec.timed {
		if !fields[f.name] {
			return fmt.Errorf("%q has a deadline, but stands not in the hash, or has two", clip(f.name, 40))
		}
		delete(fields, f.name)
	}
	return nil
}

// addTimed appends one deadline unless reading it failed.
func (rec *record) addTimed(f timedField, err error) error {
	if err == nil && (f.expireAt <= 0 || f.expireAt > db.LastFieldDeadline.UnixMilli()) {
		err = fmt.Errorf("the deadline of a field must not be %d", f.expireAt)
	}
	if err == nil {
		rec.timed = append(rec.timed, f)
	}
	return err
}

func (r *jsonReader) deadlinePair() (f timedField, err error) {
	if err = r.take('[', "a [field, deadline] pair"); err != nil {
		return f, err
	}
	if f.name, err = r.bytes("a hash field"); err != nil {
		return f, err
	}
	if err = r.take(',', "',' and a deadline"); err != nil {
		return f, err
	}
	if f.expireAt, err = r.integer("the deadline of a field"); err != nil {
		return f, err
	}
	return f, r.take(']', "the end of a [field, deadline] pair")
}

// add appends one element unless reading it failed.
func (rec *record) add(it item, err error) error {
	if err == nil {
		rec.items = append(rec.items, it)
	}
	return err
}

// readElements reads the array of a list, a set or a sorted set.
func (rec *record) readElements(r *jsonReader, element func() error) error {
	return r.array("an array as the value of a "+rec.kind, element)
}

// readHash reads an object, or an array of [field, value] pairs.
func (rec *record) readHash(r *jsonReader) error {
	const what = "an object or an array of pairs as the value of a hash"
	if r.next() == '[' {
		return r.array(what, func() error { return rec.add(r.fieldPair()) })
	}
	return r.object(what, func(name string) error {
		value, err := r.bytes("a field's value")
		return rec.add(item{name: name, value: value}, err)
	})
}

func (r *jsonReader) listElement() (it item, err error) {
	it.value, err = r.bytes("a list element")
	return it, err
}

func (r *jsonReader) setMember() (it item, err error) {
	it.name, err = r.bytes("a set member")
	return it, err
}

func (r *jsonReader) scoredMember() (it item, err error) {
	if err = r.take('[', "a [member, score] pair"); err != nil {
		return it, err
	}
	if it.name, err = r.bytes("a sorted-set member"); err != nil {
		return it, err
	}
	if err = r.take(',', "',' and a score"); err != nil {
		return it, err
	}
	if it.score, err = r.score(); err != nil {
		return it, err
	}
	return it, r.take(']', "the end of a [member, score] pair")
}

func (r *jsonReader) fieldPair() (it item, err error) {
	if err = r.take('[', "a [field, value] pair"); err != nil {
		return it, err
	}
	if it.name, err = r.bytes("a hash field"); err != nil {
		return it, err
	}
	if err = r.take(',', "',' and a value"); err != nil {
		return it, err
	}
	if it.value, err = r.bytes("a field's value"); err != nil {
		return it, err
	}
	return it, r.take(']', "the end of a [field, value] pair")
}

// checkUnique refuses an element that stands twice: one of the two would be
// lost, and which one is nothing that JSON defines.
func (rec *record) checkUnique() error {
	if len(rec.items) < 2 {
		return nil
	}
	seen := make(map[string]struct{}, len(rec.items))
	for _, it := range rec.items {
		if _, ok := seen[it.name]; ok {
			return fmt.Errorf("%q stands twice in the %s", clip(it.name, 40), rec.kind)
		}
		seen[it.name] = struct{}{}
	}
	return nil
}

// appendHead appends the line up to its value.
func (rec *record) appendHead(dst []byte) []byte {
	dst = append(dst, '{')
	if rec.db != 0 {
		dst = append(dst, `"db":`...)
		dst = strconv.AppendInt(dst, int64(rec.db), 10)
		dst = append(dst, ',')
	}
	if utf8.ValidString(rec.key) {
		dst = appendText(append(dst, `"key":`...), rec.key)
	} else {
		dst = append(dst, `"keyB64":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, []byte(rec.key))
		dst = append(dst, '"')
	}
	dst = append(dst, `,"type":"`...)
	dst = append(dst, rec.kind...)
	dst = append(dst, '"')
	if rec.expireAt != 0 {
		dst = append(dst, `,"expire_at_ms":`...)
		dst = strconv.AppendInt(dst, rec.expireAt, 10)
	}
	return dst
}

// appendStringValue appends the value member of a string.
func appendStringValue(dst, value []byte) []byte {
	if utf8.Valid(value) {
		return appendText(append(dst, `,"value":`...), string(value))
	}
	dst = append(dst, `,"valueB64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, value)
	return append(dst, '"')
}
