package db_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stavedb/stave/db"
)

// The operations of the model test on deadlines of fields.

func (v *modelValue) expireFields(now int64) {
	maps.DeleteFunc(v.until, func(field string, ms int64) bool {
		if ms <= now {
			delete(v.hash, field)
		}
		return ms <= now
	})
}

// readFieldDeadlines reads the deadlines of the fields of a hash.
func readFieldDeadlines(h db.Hash, hash map[string]string) (map[string]int64, error) {
	until := map[string]int64{}
	fields := slices.Collect(maps.Keys(hash))
	list, err := h.FieldDeadlines(fields...)
	for i, d := range list {
		if !d.Exists {
			return nil, fmt.Errorf("field %q does not exist", fields[i])
		}
		if !d.At.IsZero() {
			until[fields[i]] = d.At.UnixMilli()
		}
	}
	return until, err
}

// fields are names, sometimes as many as large hashes have.
func (x *modelOp) fields() []string {
	list := make([]string, 1+x.rng.IntN(4))
	if x.rng.IntN(30) == 0 {
		list = make([]string, 100)
	}
	for i := range list {
		list[i] = x.elem(len(list))
	}
	return list
}

// expireField is ExpireFields of one field in the model.
func (x *modelOp) expireField(v *modelValue, field string, ms int64, c db.WriteOption) db.FieldResult {
	if v == nil {
		return db.FieldMissing
	}
	if _, ok := v.hash[field]; !ok {
		return db.FieldMissing
	}
	current, set := v.until[field]
	allowed := true
	switch c {
	case db.IfAbsent:
		allowed = !set
	case db.IfPresent:
		allowed = set
	case db.IfGreater:
		allowed = set && ms > current
	case db.IfLess:
		allowed = !set || ms < current
	}
	switch {
	case !allowed:
		return db.FieldUnchanged
	case ms <= x.now:
		delete(v.hash, field)
		delete(v.until, field)
		return db.FieldDeleted
	}
	v.until[field] = ms
	return db.FieldChanged
}

func opExpireFields(x *modelOp) {
	key, fields, ms := x.key(), x.fields(), x.deadline()
	c := x.addCondition()
	x.begin("HPEXPIREAT %q %d %v %q", key, ms, c, fields)
	v, want := x.get(key, db.TypeHash)
	results := make([]db.FieldResult, len(fields))
	for i, field := range fields {
		if want == nil {
			results[i] = x.expireField(v, field, ms, c)
		}
	}
	got, err := x.keys.Hash(key).ExpireFieldsAt(time.UnixMilli(ms), fields, c)
	x.result(got, err, results, want)
	x.settle(key)
}

func opPersistFields(x *modelOp) {
	key, fields := x.key(), x.fields()
	x.begin("HPERSIST %q %q", key, fields)
	v, want := x.get(key, db.TypeHash)
	results := make([]db.FieldResult, len(fields))
	for i, field := range fields {
		results[i] = db.FieldMissing
		if want != nil || v == nil {
			continue
		}
		if _, ok := v.hash[field]; ok {
			results[i] = db.FieldWithoutTTL
		}
		if _, ok := v.until[field]; ok {
			results[i] = db.FieldChanged
			delete(v.until, field)
		}
	}
	got, err := x.keys.Hash(key).PersistFields(fields...)
	x.result(got, err, results, want)
}

func opFieldDeadlines(x *modelOp) {
	key, fields := x.key(), x.fields()
	x.begin("HPTTL %q %q", key, fields)
	v, want := x.get(key, db.TypeHash)
	list := make([]time.Duration, len(fields))
	for i, field := range fields {
		list[i] = db.NoField
		if want != nil || v == nil {
			continue
		}
		if _, ok := v.hash[field]; ok {
			list[i] = db.NoTTL
		}
		if ms, ok := v.until[field]; ok {
			list[i] = time.Duration(ms-x.now) * time.Millisecond
		}
	}
	got, err := x.keys.Hash(key).FieldTTLs(fields...)
	x.result(got, err, list, want)
}

func opGetAndExpire(x *modelOp) {
	key, fields, ms := x.key(), x.fields(), x.deadline()
	persist := x.rng.IntN(3) == 0
	x.begin("HGETEX %q %d persist %v %q", key, ms, persist, fields)
	v, want := x.get(key, db.TypeHash)
	values := make([][]byte, len(fields))
	for i, field := range fields {
		if want != nil || v == nil {
			continue
		}
		value, ok := v.hash[field]
		if !ok {
			continue
		}
		values[i] = []byte(value)
		if persist {
			delete(v.until, field)
		} else {
			x.expireField(v, field, ms, db.WriteOption{})
		}
	}
	h := x.keys.Hash(key)
	var got [][]byte
	var err error
	if persist {
		got, err = h.GetAndPersist(fields...)
	} else {
		got, err = h.GetAndExpireAt(time.UnixMilli(ms), fields...)
	}
	x.result(got, err, values, want)
	x.settle(key)
}

func opPutWith(x *modelOp) {
	key, names, ms := x.key(), x.fields(), x.deadline()
	var options []db.WriteOption
	change, condition := x.rng.IntN(3), x.rng.IntN(4)
	switch change {
	case 1:
		options = append(options, db.KeepTTL)
	case 2:
		options = append(options, db.ExpireAt(time.UnixMilli(ms)))
	}
	switch condition {
	case 1:
		options = append(options, db.IfAbsent)
	case 2:
		options = append(options, db.IfPresent)
	}
	fields := make([]db.Field, len(names))
	for i, name := range names {
		fields[i] = db.Field{Name: name, Value: []byte(x.value())}
	}
	x.begin("HSETEX %q %q until %d, %d, %d", key, names, ms, change, condition)
	v, want := x.get(key, db.TypeHash)
	for _, name := range names {
		has := false
		if v != nil {
			_, has = v.hash[name]
		}
		switch {
		case want != nil:
		case condition == 1 && has:
			want = db.ErrExists
		case condition == 2 && !has:
			want = db.ErrNotFound
		}
	}
	for _, f := range fields {
		if want != nil {
			break
		}
		at, timed := int64(0), false
		if v = x.space[key]; v != nil {
			at, timed = v.until[f.Name]
		}
		x.putField(key, f.Name, string(f.Value))
		v = x.space[key]
		if change == 1 && timed {
			v.until[f.Name] = at
		}
		if change == 2 {
			x.expireField(v, f.Name, ms, db.WriteOption{})
		}
	}
	x.result(nil, x.keys.Hash(key).PutWith(fields, options...), nil, want)
	x.settle(key)
}
