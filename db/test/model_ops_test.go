package db_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// The operations of the model test on strings, hashes and keys.

// modelNames are the names of keys and of elements: few, so that they collide,
// and all that a careless encoding could take for something else.
var modelNames = []string{
	"", "a", "b", "a:b", "a:", ":", "\x00", "__len__", "__head__", "s:", "s:bff0000000000000:a", "string:a", "hash:a:b",
	"\xff\xfe", "ключ", "8000000000000000", strings.Repeat("long ", 60),
}

func (x *modelOp) name() string { return modelNames[x.rng.IntN(len(modelNames))] }

// key is a name, one of a few more often.
func (x *modelOp) key() string {
	if x.rng.IntN(2) == 0 {
		return modelNames[x.rng.IntN(4)]
	}
	return x.name()
}

func (x *modelOp) names() []string {
	list := make([]string, x.rng.IntN(5))
	for i := range list {
		list[i] = x.name()
	}
	return list
}

// value is the payload of something.
func (x *modelOp) value() string {
	switch x.rng.IntN(12) {
	case 0:
		return ""
	case 1, 2, 3:
		return strconv.Itoa(x.rng.IntN(40) - 20)
	case 4:
		return strconv.FormatInt(math.MaxInt64-x.rng.Int64N(3), 10)
	case 5:
		return "007"
	case 6:
		if x.rng.IntN(20) == 0 {
			return strings.Repeat("larger than a segment ", 500)
		}
	case 7:
		return x.name()
	}
	b := make([]byte, x.rng.IntN(120))
	for i := range b {
		b[i] = byte(x.rng.Uint32())
	}
	return string(b)
}

// deadline is a moment, mostly soon.
func (x *modelOp) deadline() int64 {
	switch x.rng.IntN(10) {
	case 0:
		return x.now - x.rng.Int64N(1000)
	case 1:
		return x.now + x.rng.Int64N(1<<40)
	}
	return x.now + 1 + x.rng.Int64N(5000)
}

func (x *modelOp) position() int64 { return x.rng.Int64N(14) - 6 }

func some(b bool) error {
	if b {
		return nil
	}
	return db.ErrNotFound
}

var modelReads = []func(*modelOp){
	opGet, opGet, opStringLen, opStringRange, opHashGet, opHashGet, opHashMany, opHashHas, opHashAll, opHashScan, opFieldDeadlines, opType, opExists, opDeadline,
	opGetMany, opKeys, opScanKeys, opRandomKey, opReadOnly,
	opListAt, opListRange, opListRange, opSetHas, opSetMembers, opSetRandom, opSetCombine, opScore, opRank, opCount, opZRange, opZRange, opZScan,
	opXRange, opXRange, opXInfo, opXPending,
}

var modelWrites = []func(*modelOp){
	opPut, opPut, opSet, opSet, opAppend, opIncr, opPutMany, opPutIfNone,
	opHashPut, opHashPut, opHashPut, opHashPutAll, opHashPutAll, opHashIfAbsent, opHashDelete, opHashDelete, opHashIncr,
	opExpireFields, opExpireFields, opExpireFields, opPersistFields, opGetAndExpire, opPutWith, opPutWith,
	opDelete, opDelete, opDeleteMany, opExpire, opExpire, opExpire, opPersist, opRename, opRename, opRenameIfAbsent,
	opPush, opPush, opPush, opPushIfPresent, opPop, opPop, opListSet, opListSet, opTrim, opInsert, opInsert, opRemove, opRemove, opLongList,
	opSetAdd, opSetAdd, opSetAdd, opSetRemove, opSetRemove, opSetPop,
	opZAdd, opZAdd, opZAdd, opZAdd, opZIncr, opZRemove, opZRemove, opZRemoveRange, opZPop,
	opListMove, opListMove, opSetMove, opZCombine, opZPutRange,
	opXAdd, opXAdd, opXAdd, opXAdd, opXAdd, opXDel, opXDel, opXTrim, opXTrim, opXSetID, opXCreate,
	opXGroupCreate, opXGroupCreate, opXGroupChange, opXReadGroup, opXReadGroup, opXReadGroup, opXHistory, opXAck, opXAckDel, opXClaim, opXAutoClaim, opXClaimIdle,
}

func opGet(x *modelOp) {
	key := x.key()
	x.begin("GET %q", key)
	v, want := x.get(key, db.TypeString)
	if want == nil {
		want = some(v != nil)
	}
	got, err := x.keys.String(key).Get()
	x.result(string(got), err, v.string(), want)
}

func (v *modelValue) string() string {
	if v == nil {
		return ""
	}
	return v.str
}

func opStringLen(x *modelOp) {
	key := x.key()
	x.begin("STRLEN %q", key)
	v, want := x.get(key, db.TypeString)
	got, err := x.keys.String(key).Len()
	x.result(got, err, len(v.string()), want)
}

func opStringRange(x *modelOp) {
	key, start, end := x.key(), x.position(), x.position()
	x.begin("GETRANGE %q %d %d", key, start, end)
	v, want := x.get(key, db.TypeString)
	s, first, last := v.string(), start, end
	n := int64(len(s))
	if first < 0 {
		first = max(first+n, 0)
	}
	if last < 0 {
		last = max(last+n, 0)
	}
	part := ""
	if last = min(last, n-1); first <= last && (start >= 0 || end >= 0 || start <= end) {
		part = s[first : last+1]
	}
	got, err := x.keys.String(key).Range([]byte("x"), start, end)
	x.result(string(got), err, "x"+part, want)
}

func opPut(x *modelOp) {
	key, value := x.key(), x.value()
	v := &modelValue{typ: db.TypeString, str: value}
	var options []db.WriteOption
	switch x.rng.IntN(4) {
	case 0:
		ms := 1 + x.rng.Int64N(4000)
		v.deadline = x.now + ms
		options = append(options, db.TTL(time.Duration(ms)*time.Millisecond))
	case 1:
		v.deadline = x.deadline()
		options = append(options, db.ExpireAt(time.UnixMilli(v.deadline)))
	}
	x.begin("SET %q %q until %d", key, value, v.deadline)
	x.result(nil, x.keys.String(key).Put([]byte(value), options...), nil, nil)
	x.space[key] = v
}

func opSet(x *modelOp) {
	key, value := x.key(), x.value()
	var options []db.WriteOption
	get, condition, ttl, deadline := x.rng.IntN(3) == 0, x.rng.IntN(6), x.rng.IntN(3), int64(0)
	if get {
		options = append(options, db.ReturnOld)
	}
	old, expected := x.space[key], x.value()
	if old != nil && x.rng.IntN(2) == 0 {
		expected = old.str
	}
	switch condition {
	case 0:
		options = append(options, db.IfAbsent)
	case 1:
		options = append(options, db.IfPresent)
	case 4:
		options = append(options, db.IfEqual([]byte(expected)))
	case 5:
		options = append(options, db.IfNotEqual([]byte(expected)))
	}
	switch ttl {
	case 0:
		options = append(options, db.KeepTTL)
	case 1:
		deadline = x.deadline()
		options = append(options, db.ExpireAt(time.UnixMilli(deadline)))
	}
	x.begin("SET %q %q %+v (%d, %q)", key, value, options, condition, expected)
	var res db.SetResult
	var want error
	isString := old != nil && old.typ == db.TypeString
	if get && isString {
		res.Existed, res.Old = true, []byte(old.str)
	}
	if (get || condition >= 4) && old != nil && !isString {
		want = db.ErrWrongType
	}
	equal := isString && old.str == expected
	res.Done = !(condition == 0 && old != nil || condition == 1 && old == nil || condition == 4 && !equal || condition == 5 && equal)
	got, err := x.keys.String(key).Set([]byte(value), options...)
	if len(got.Old) == 0 && res.Existed {
		got.Old = []byte{}
	}
	x.result(got, err, res, want)
	if want != nil || !res.Done {
		return
	}
	v := &modelValue{typ: db.TypeString, str: value, deadline: deadline}
	if ttl == 0 && old != nil {
		v.deadline = old.deadline
	}
	x.space[key] = v
}

func opAppend(x *modelOp) {
	key, value := x.key(), x.value()
	x.begin("APPEND %q %q", key, value)
	v, want := x.get(key, db.TypeString)
	if len(v.string()) > 20_000 {
		return
	}
	got, err := x.keys.String(key).Append([]byte(value))
	x.result(got, err, len(v.string()+value), want)
	if want == nil {
		v, _ = x.make(key, db.TypeString)
		v.str += value
	}
}

// sum is old + delta in decimal, if both allow.
func sum(old string, exists bool, delta int64, notInteger error) (int64, error) {
	n := int64(0)
	if exists {
		var err error
		if n, err = strconv.ParseInt(old, 10, 64); err != nil || strconv.FormatInt(n, 10) != old {
			return 0, notInteger
		}
	}
	if delta > 0 && n > math.MaxInt64-delta || delta < 0 && n < math.MinInt64-delta {
		return 0, structures.ErrOverflow
	}
	return n + delta, nil
}

func opIncr(x *modelOp) {
	key, delta := x.key(), x.rng.Int64N(9)-4
	x.begin("INCRBY %q %d", key, delta)
	v, want := x.get(key, db.TypeString)
	var n int64
	if want == nil {
		n, want = sum(v.string(), v != nil, delta, structures.ErrNotInteger)
	}
	got, err := x.keys.String(key).Incr(delta)
	x.result(got, err, n, want)
	if want == nil {
		v, _ = x.make(key, db.TypeString)
		v.str = strconv.FormatInt(n, 10)
	}
}

func (x *modelOp) pairs() []db.Pair {
	list := make([]db.Pair, 1+x.rng.IntN(4))
	for i := range list {
		list[i] = db.Pair{Key: x.key(), Value: []byte(x.value())}
	}
	return list
}

func (x *modelOp) putPairs(pairs []db.Pair) {
	for _, p := range pairs {
		x.space[p.Key] = &modelValue{typ: db.TypeString, str: string(p.Value)}
	}
}

func opPutMany(x *modelOp) {
	pairs := x.pairs()
	x.begin("MSET %q", pairs)
	x.result(nil, x.keys.Keyspace().Put(pairs...), nil, nil)
	x.putPairs(pairs)
}

func opPutIfNone(x *modelOp) {
	pairs := x.pairs()
	x.begin("MSETNX %q", pairs)
	var want error
	if slices.ContainsFunc(pairs, func(p db.Pair) bool { return x.space[p.Key] != nil }) {
		want = db.ErrExists
	}
	x.result(nil, x.keys.Keyspace().PutWith(pairs, db.IfAbsent), nil, want)
	if want == nil {
		x.putPairs(pairs)
	}
}

func opGetMany(x *modelOp) {
	names := x.names()
	x.begin("MGET %q", names)
	want := make([][]byte, len(names))
	for i, name := range names {
		if v := x.space[name]; v != nil && v.typ == db.TypeString {
			want[i] = []byte(v.str)
		}
	}
	got, err := x.keys.Keyspace().Get(names...)
	x.result(got, err, want, nil)
}

// opReadOnly tries to write in a View.
func opReadOnly(x *modelOp) {
	tx, ok := x.keys.(*db.Tx)
	if !ok || tx.Writable() {
		return
	}
	key := x.key()
	x.begin("write %q in a View", key)
	_, err := tx.Hash(key).Put("f", nil)
	x.result(nil, err, nil, bitcask.ErrReadOnly)
	x.result(nil, tx.String(key).Put(nil), nil, bitcask.ErrReadOnly)
}

func opHashGet(x *modelOp) {
	key, field := x.key(), x.name()
	x.begin("HGET %q %q", key, field)
	v, want := x.get(key, db.TypeHash)
	var value string
	if want == nil {
		has := false
		if v != nil {
			value, has = v.hash[field]
		}
		want = some(has)
	}
	got, err := x.keys.Hash(key).Get(field)
	x.result(string(got), err, value, want)
}

func opHashMany(x *modelOp) {
	key, fields := x.key(), x.names()
	x.begin("HMGET %q %q", key, fields)
	v, want := x.get(key, db.TypeHash)
	values := make([][]byte, len(fields))
	if want == nil && v != nil {
		for i, field := range fields {
			if value, ok := v.hash[field]; ok {
				values[i] = []byte(value)
			}
		}
	}
	got, err := x.keys.Hash(key).GetMany(fields...)
	x.result(got, err, values, want)
}

func opHashHas(x *modelOp) {
	key, field := x.key(), x.name()
	x.begin("HEXISTS and HLEN %q %q", key, field)
	v, want := x.get(key, db.TypeHash)
	has := false
	if want == nil && v != nil {
		_, has = v.hash[field]
	}
	got, err := x.keys.Hash(key).Has(field)
	x.result(got, err, has, want)
	n, err := x.keys.Hash(key).Len()
	x.result(n, err, v.len(), want)
}

func opHashAll(x *modelOp) {
	key := x.key()
	x.begin("HGETALL %q", key)
	v, want := x.get(key, db.TypeHash)
	fields := map[string]string{}
	if want == nil && v != nil {
		fields = v.hash
	}
	entries, err := x.keys.Hash(key).Entries()
	got := map[string]string{}
	for _, e := range entries {
		got[e.Name] = string(e.Value)
	}
	x.result(got, err, fields, want)
	if want == nil && len(entries) != len(fields) {
		x.failf("%s: %d entries, want %d", x.what, len(entries), len(fields))
	}
	names, err := x.keys.Hash(key).Fields()
	slices.Sort(names)
	x.result(append([]string{}, names...), err, append([]string{}, slices.Sorted(maps.Keys(fields))...), want)
}

func opHashScan(x *modelOp) {
	key, count := x.key(), 1+x.rng.IntN(20)
	x.begin("HSCAN %q count %d", key, count)
	v, want := x.get(key, db.TypeHash)
	fields := map[string]string{}
	if want == nil && v != nil {
		fields = v.hash
	}
	got := map[string]string{}
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		page, next, err := x.keys.Hash(key).Scan(cursor, db.ScanOptions{Count: count})
		if err != nil {
			x.result(nil, err, nil, want)
			return
		}
		for _, f := range page {
			if _, twice := got[f.Name]; twice {
				x.failf("%s: field %q twice", x.what, f.Name)
			}
			got[f.Name] = string(f.Value)
		}
		cursor = next
	}
	x.result(got, nil, fields, want)
}

func (x *modelOp) putField(key, field, value string) (isNew bool) {
	v, _ := x.make(key, db.TypeHash)
	_, had := v.hash[field]
	v.hash[field] = value
	delete(v.until, field)
	return !had
}

func opHashPut(x *modelOp) {
	key, field, value := x.key(), x.name(), x.value()
	x.begin("HSET %q %q %q", key, field, value)
	_, want := x.get(key, db.TypeHash)
	isNew := want == nil && x.putField(key, field, value)
	got, err := x.keys.Hash(key).Put(field, []byte(value))
	x.result(got, err, isNew, want)
}

// many is how many elements to write at once: sometimes so many that a collection outgrows its
// smallest form.
func (x *modelOp) many() int {
	if x.rng.IntN(25) == 0 {
		return 50 + x.rng.IntN(150)
	}
	return 1 + x.rng.IntN(6)
}

// elem is the name of one of so many elements.
func (x *modelOp) elem(many int) string {
	if many > 20 {
		return fmt.Sprint("e", x.rng.IntN(200))
	}
	return x.name()
}

func opHashPutAll(x *modelOp) {
	key, many := x.key(), x.many()
	fields := make([]db.Field, many)
	for i := range fields {
		fields[i] = db.Field{Name: x.elem(many), Value: []byte(x.value())}
		if many > 20 {
			fields[i].Value = []byte(strconv.Itoa(i))
		}
	}
	x.begin("HSET %q %q", key, fields)
	_, want := x.get(key, db.TypeHash)
	n := 0
	if want == nil {
		for _, f := range fields {
			if x.putField(key, f.Name, string(f.Value)) {
				n++
			}
		}
	}
	got, err := x.keys.Hash(key).PutAll(fields...)
	x.result(got, err, n, want)
}

func opHashIfAbsent(x *modelOp) {
	key, field, value := x.key(), x.name(), x.value()
	x.begin("HSETNX %q %q %q", key, field, value)
	v, want := x.get(key, db.TypeHash)
	done := false
	if want == nil {
		had := false
		if v != nil {
			_, had = v.hash[field]
		}
		done = !had && x.putField(key, field, value)
	}
	if want == nil && !done {
		want = db.ErrExists
	}
	got, err := x.keys.Hash(key).Put(field, []byte(value), db.IfAbsent)
	x.result(got, err, done, want)
}

func opHashDelete(x *modelOp) {
	key, fields := x.key(), x.names()
	x.begin("HDEL %q %q", key, fields)
	v, want := x.get(key, db.TypeHash)
	n := 0
	if want == nil && v != nil {
		n = len(v.hash)
		for _, field := range fields {
			delete(v.hash, field)
			delete(v.until, field)
		}
		n -= len(v.hash)
	}
	got, err := x.keys.Hash(key).Delete(fields...)
	x.result(got, err, n, want)
	x.settle(key)
}

func opHashIncr(x *modelOp) {
	key, field, delta := x.key(), x.name(), x.rng.Int64N(9)-4
	x.begin("HINCRBY %q %q %d", key, field, delta)
	v, want := x.get(key, db.TypeHash)
	var n int64
	if want == nil {
		old, had := "", false
		if v != nil {
			old, had = v.hash[field]
		}
		n, want = sum(old, had, delta, structures.ErrHashNotInteger)
	}
	if want == nil {
		at, timed := int64(0), false
		if v != nil {
			at, timed = v.until[field]
		}
		x.putField(key, field, strconv.FormatInt(n, 10))
		if timed {
			v.until[field] = at
		}
	}
	got, err := x.keys.Hash(key).Incr(field, delta)
	x.result(got, err, n, want)
}

func opDelete(x *modelOp) {
	key := x.key()
	x.begin("DEL %q", key)
	got, err := x.keys.Key(key).Delete()
	x.result(got, err, x.space[key] != nil, nil)
	delete(x.space, key)
}

func opDeleteMany(x *modelOp) {
	names := x.names()
	x.begin("DEL %q", names)
	n := len(x.space)
	for _, name := range names {
		delete(x.space, name)
	}
	got, err := x.keys.Keyspace().Delete(names...)
	x.result(got, err, n-len(x.space), nil)
}

func opType(x *modelOp) {
	key := x.key()
	x.begin("TYPE %q", key)
	want := db.TypeNone
	if v := x.space[key]; v != nil {
		want = v.typ
	}
	got, err := x.keys.Key(key).Type()
	x.result(got, err, want, nil)
}

func opExists(x *modelOp) {
	names := x.names()
	x.begin("EXISTS %q", names)
	n := 0
	for _, name := range names {
		if x.space[name] != nil {
			n++
		}
	}
	got, err := x.keys.Keyspace().Exists(names...)
	x.result(got, err, n, nil)
}

func opDeadline(x *modelOp) {
	key := x.key()
	x.begin("TTL %q", key)
	v := x.space[key]
	at, left := int64(0), db.NoTTL
	if v != nil && v.deadline != 0 {
		at, left = v.deadline, time.Duration(v.deadline-x.now)*time.Millisecond
	}
	got, err := x.keys.Key(key).Deadline()
	ms := int64(0)
	if !got.IsZero() {
		ms = got.UnixMilli()
	}
	x.result(ms, err, at, some(v != nil))
	d, err := x.keys.Key(key).TTL()
	x.result(d, err, left, some(v != nil))
}

func opExpire(x *modelOp) {
	key, at := x.key(), x.deadline()
	condition := x.addCondition()
	x.begin("PEXPIREAT %q %d %v", key, at, condition)
	v, done := x.space[key], false
	if v != nil {
		set := v.deadline != 0
		switch condition {
		case db.IfAbsent:
			done = !set
		case db.IfPresent:
			done = set
		case db.IfGreater:
			done = set && at > v.deadline
		case db.IfLess:
			done = !set || at < v.deadline
		default:
			done = true
		}
	}
	if done {
		v.deadline = at // the key goes at the end of the operation if that has passed
	}
	got, err := x.keys.Key(key).ExpireAt(time.UnixMilli(at), condition)
	x.result(got, err, done, nil)
}

func opPersist(x *modelOp) {
	key := x.key()
	x.begin("PERSIST %q", key)
	v := x.space[key]
	got, err := x.keys.Key(key).Persist()
	x.result(got, err, v != nil && v.deadline != 0, nil)
	if v != nil {
		v.deadline = 0
	}
}

func opRename(x *modelOp) {
	from, to := x.key(), x.key()
	x.begin("RENAME %q %q", from, to)
	v := x.space[from]
	x.result(nil, x.keys.Key(from).Rename(to), nil, some(v != nil))
	if v != nil {
		delete(x.space, from)
		x.space[to] = v
	}
}

func opRenameIfAbsent(x *modelOp) {
	from, to := x.key(), x.key()
	x.begin("RENAMENX %q %q", from, to)
	v := x.space[from]
	want := some(v != nil)
	if want == nil && x.space[to] != nil {
		want = db.ErrExists
	}
	x.result(nil, x.keys.Key(from).Rename(to, db.IfAbsent), nil, want)
	if want == nil {
		delete(x.space, from)
		x.space[to] = v
	}
}

func opKeys(x *modelOp) {
	if x.narrow {
		return // other keys are out of bounds
	}
	x.begin("KEYS a*")
	got, err := x.keys.Keyspace().Keys("a*")
	slices.Sort(got)
	want := []string{}
	for key := range x.space {
		if strings.HasPrefix(key, "a") {
			want = append(want, key)
		}
	}
	slices.Sort(want)
	x.result(append([]string{}, got...), err, want, nil)
}

var modelTypes = []db.Type{db.TypeNone, db.TypeString, db.TypeHash, db.TypeList, db.TypeSet, db.TypeSortedSet, db.TypeStream}

func opScanKeys(x *modelOp) {
	if x.narrow {
		return
	}
	o := db.KeyScanOptions{Count: 1 + x.rng.IntN(8), Type: modelTypes[x.rng.IntN(len(modelTypes))]}
	x.begin("SCAN %+v", o)
	want := map[string]db.Type{}
	for key, v := range x.space {
		if o.Type == db.TypeNone || v.typ == o.Type {
			want[key] = v.typ
		}
	}
	got := map[string]db.Type{}
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		page, next, err := x.keys.Keyspace().Scan(cursor, o)
		x.result(nil, err, nil, nil)
		for _, info := range page {
			if got[info.Key] != db.TypeNone {
				x.failf("%s: key %q twice", x.what, info.Key)
			}
			got[info.Key] = info.Type
		}
		cursor = next
	}
	x.result(got, nil, want, nil)
}

func opRandomKey(x *modelOp) {
	s, ok := x.keys.(*db.Store)
	if !ok {
		return
	}
	x.begin("RANDOMKEY")
	key, err := s.Keyspace().RandomKey()
	x.result(nil, err, nil, some(len(x.space) > 0))
	if err == nil && x.space[key] == nil {
		x.failf("%s = %q, which does not exist", x.what, key)
	}
}
