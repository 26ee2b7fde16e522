package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A record is one key as a line of JSON carries it, in both directions:
//
//	{"key":"greeting","type":"string","value":"hi"}
//	{"key":"user:1","type":"hash","value":{"name":"Ada"},"expire_at_ms":1900000000000}
//	{"key":"jobs","type":"list","value":["a","b"]}
//	{"key":"tags","type":"set","value":["x","y"]}
//	{"key":"board","type":"zset","value":[["Ada",1.5],["Bob","inf"]]}
//	{"db":3,"keyB64":"//4=","type":"string","valueB64":"AAE="}
//
// Wherever a string within a value is not UTF-8 it is {"b64":"..."} instead. A
// hash with such a field name is an array of [field, value] pairs, since the
// name of a JSON member must be text.
type record struct {
	db       int
	key      string
	kind     string // string, hash, list, set, zset
	value    string // string
	items    []item // the four collections
	expireAt int64  // deadline in Unix milliseconds; 0: none
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
	members, err := splitMembers(line)
	if err != nil {
		return record{}, err
	}
	rec := record{db: db}
	if err := rec.readKey(members); err != nil {
		return record{}, err
	}
	if err := rec.readMeta(members, now); err != nil {
		return record{}, err
	}
	return rec, rec.readValue(members)
}

// members are the members of one object by name, each as it was written.
type members map[string]json.RawMessage

// memberNames are all that a line may carry, in the order they are documented.
const memberNames = "db, key, keyB64, type, value, valueB64, ttl_ms, expire_at_ms"

// splitMembers takes the outer object apart and refuses a member that is
// unknown (a misspelt ttl would otherwise vanish silently) or stands twice.
func splitMembers(line []byte) (members, error) {
	r, err := newJSONReader(line)
	if err != nil {
		return nil, err
	}
	if err := r.delim('{', "an object"); err != nil {
		return nil, err
	}
	found := make(members, 4)
	err = r.object(func(name string) error {
		if !slices.Contains(strings.Split(memberNames, ", "), name) {
			return fmt.Errorf("unknown member %q (known: %s)", clip(name, 40), memberNames)
		}
		if _, ok := found[name]; ok {
			return fmt.Errorf("member %q stands twice", name)
		}
		var raw json.RawMessage
		if err := r.dec.Decode(&raw); err != nil {
			return syntaxError(err)
		}
		found[name] = raw
		return nil
	})
	if err != nil {
		return nil, err
	}
	if r.dec.More() {
		return nil, errors.New("JSON: something follows the object")
	}
	return found, nil
}

// reader returns a reader over one member, or nil when it is not there.
func (m members) reader(name string) *jsonReader {
	raw, ok := m[name]
	if !ok {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return &jsonReader{dec: dec}
}

// readKey reads key or keyB64.
func (rec *record) readKey(m members) (err error) {
	plain, encoded := m.reader("key"), m.reader("keyB64")
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
func (rec *record) readMeta(m members, now int64) error {
	kind := m.reader("type")
	if kind == nil {
		return errors.New("no type")
	}
	t, err := kind.token()
	if err != nil {
		return err
	}
	name, _ := t.(string)
	if !kinds[name] {
		return fmt.Errorf("type must be string, hash, list, set or zset, not %s", describe(t))
	}
	rec.kind = name
	if r := m.reader("db"); r != nil {
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
func (rec *record) readDeadline(m members, now int64) error {
	ttl, at := m.reader("ttl_ms"), m.reader("expire_at_ms")
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
func (rec *record) readValue(m members) (err error) {
	plain, encoded := m.reader("value"), m.reader("valueB64")
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
	return err
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
	if err := r.delim('[', "an array as the value of a "+rec.kind); err != nil {
		return err
	}
	return r.array(element)
}

// readHash reads an object, or an array of [field, value] pairs.
func (rec *record) readHash(r *jsonReader) error {
	t, err := r.token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('{'):
		return r.object(func(name string) error {
			value, err := r.bytes("a field's value")
			return rec.add(item{name: name, value: value}, err)
		})
	case json.Delim('['):
		return r.array(func() error { return rec.add(r.fieldPair()) })
	}
	return fmt.Errorf("the value of a hash must be an object or an array of pairs, not %s", describe(t))
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
	if err = r.delim('[', "a [member, score] pair"); err != nil {
		return it, err
	}
	if it.name, err = r.bytes("a sorted-set member"); err != nil {
		return it, err
	}
	if it.score, err = r.score(); err != nil {
		return it, err
	}
	return it, r.delim(']', "the end of a [member, score] pair")
}

func (r *jsonReader) fieldPair() (it item, err error) {
	if err = r.delim('[', "a [field, value] pair"); err != nil {
		return it, err
	}
	if it.name, err = r.bytes("a hash field"); err != nil {
		return it, err
	}
	if it.value, err = r.bytes("a field's value"); err != nil {
		return it, err
	}
	return it, r.delim(']', "the end of a [field, value] pair")
}

// checkUnique refuses an element that stands twice: one of the two would be
// lost, and which one is nothing that JSON defines.
func (rec *record) checkUnique() error {
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
