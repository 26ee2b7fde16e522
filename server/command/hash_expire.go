package command

import (
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// Eleven commands share FIELDS, and some of them NX, XX, GT and LT; their error texts differ, and
// the constants below keep Redis's. What a deadline of a field is
// on disk and in memory, structures/hash_expire.go says.
//
// The number of fields must agree with the arguments that follow it, and FIELDS must stand where
// the syntax has it, except in HSETEX. A field that is named twice is treated twice. Each reply but
// HSETEX's is an array with an element for each field, in the order of the arguments, also if the
// key does not exist: then each is -2, or null.
//
// Writes take effect together: either all fields that the condition admits have their new deadline,
// in one commit, or the command failed.

// hashExpireCommands give fields deadlines of their own. They are Redis 7.4's, and HGETDEL, HGETEX
// and HSETEX 8.0's. Their replies have one number for each field, whose meaning FieldResult has.
var hashExpireCommands = InGroup(GroupHash, []*Command{
	hexpireRow("hexpire", time.Second, true),
	hexpireRow("hpexpire", time.Millisecond, true),
	hexpireRow("hexpireat", time.Second, false),
	hexpireRow("hpexpireat", time.Millisecond, false),
	httlRow("httl", time.Second, true),
	httlRow("hpttl", time.Millisecond, true),
	httlRow("hexpiretime", time.Second, false),
	httlRow("hpexpiretime", time.Millisecond, false),
	{Name: "hpersist", Arity: -5, Flags: Write | Fast, Keys: OneKey("RW update"), Run: hpersistCommand},
	{Name: "hgetex", Arity: -5, Flags: Write | Fast, Keys: OneKey("RW access update"), Run: hgetexCommand},
	{Name: "hsetex", Arity: -6, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW update"), Run: hsetexCommand},
})

// hexpireRow is the row of HEXPIRE and its relatives, which differ in the unit and in what the
// number counts from.
func hexpireRow(name string, unit time.Duration, relative bool) *Command {
	return &Command{
		Name: name, Arity: -6, Flags: Write | Fast, Group: GroupHash, Keys: OneKey("RW update"), // no DenyOOM since 8.0
		Run: func(c *Call) error { return hexpire(c, unit.Milliseconds(), relative) },
	}
}

// httlRow is the row of HTTL and its relatives.
func httlRow(name string, unit time.Duration, relative bool) *Command {
	return &Command{
		Name: name, Arity: -5, Flags: ReadOnly | Fast, Group: GroupHash, Keys: OneKey("RO access"),
		Run: func(c *Call) error { return httl(c, unit.Milliseconds(), relative) },
	}
}

// The refusals of counts of fields: the commands do not agree on the words.
const (
	errFieldsWord   Error = "ERR Mandatory argument FIELDS is missing or not at the right position"
	errFieldsCount  Error = "ERR Number of fields must be a positive integer"
	errFieldsLeast  Error = "ERR Parameter `numFields` should be greater than 0"
	errFieldsNumber Error = "ERR The `numfields` parameter must match the number of arguments"
	errFieldsMany   Error = "ERR invalid number of fields"
)

// fieldList reads FIELDS numfields field [field ...], to the end of the arguments. count is how a
// number that is none is refused. Redis checks in this order: the word, the number, then whether
// both agree.
func (c *Call) fieldList(i int, count Error) ([]string, error) {
	if !c.Args.Is(i, "fields") {
		return nil, errFieldsWord
	}
	if i+1 >= len(c.Args) {
		return nil, ArityError(c.Command.Name)
	}
	n, err := c.Args.parseLeast(i+1, 1, count)
	if err != nil {
		return nil, err
	}
	if n != int64(len(c.Args)-i-2) {
		return nil, errFieldsNumber
	}
	return c.Args.Strings(i + 2), nil
}

// hashOf is the hash that the first key names. Most commands on fields check the key's type before
// they parse their options. A key that does not exist is an empty hash here; only another type is
// an error.
func (c *Call) hashOf() (db.Hash, error) {
	h := c.Tx.Hash(c.Key(1))
	_, err := h.Len()
	return h, err
}

// hashFields is what commands begin with that know no other words: the hash, then FIELDS.
func (c *Call) hashFields() (h db.Hash, fields []string, err error) {
	if h, err = c.hashOf(); err == nil {
		fields, err = c.fieldList(2, errFieldsCount)
	}
	return h, fields, err
}

// fieldDeadline reads a number of units from now or, absolute, from 1970 on. The result is in
// milliseconds. The last moment is Redis's, 2^46-1 ms. Zero is allowed: it is in the past and
// deletes the field.
func (c *Call) fieldDeadline(i int, unit int64, relative bool) (time.Time, error) {
	n, err := c.Args.parseFrom(i, 0, "ERR invalid expire time, must be >= 0")
	if err != nil {
		return time.Time{}, err
	}
	base := int64(0)
	if relative {
		base = c.now()
	}
	if n > structures.LastFieldDeadline/unit || n*unit > structures.LastFieldDeadline-base {
		return time.Time{}, Errorf("ERR invalid expire time in '%s' command", c.Command.Name)
	}
	return time.UnixMilli(n*unit + base), nil
}

// fieldConditions are the words before FIELDS in HEXPIRE and its relatives. Valkey takes XX with GT or
// LT besides, as EXPIRE does, and sends its replicas both.
var fieldConditions = words[db.WriteOption]{{"nx", db.IfAbsent}, {"xx", db.IfPresent}, {"gt", db.IfGreater}, {"lt", db.IfLess}}

// hexpire is HEXPIRE and its relatives. A moment in the past deletes the field, which replies 2.
// The other results are 1 for a deadline that was set, 0 for a condition that does not hold, -2 for
// a field that does not exist. For GT a field without a deadline counts as one that never expires,
// so GT never changes it and LT always does.
func hexpire(c *Call, unit int64, relative bool) error {
	h, err := c.hashOf()
	if err != nil {
		return err
	}
	at, err := c.fieldDeadline(2, unit, relative)
	if err != nil {
		return err
	}
	conditions := c.fieldConditions(3)
	fields, err := c.fieldList(3+len(conditions), errFieldsLeast)
	if err != nil {
		return err
	}
	return c.fieldResults(h.ExpireFieldsAt(at, fields, conditions...))
}

// fieldConditions are those from an argument on: one, or two that go together.
func (c *Call) fieldConditions(i int) (conditions []db.WriteOption) {
	first, ok := fieldConditions.find(c.Args[i])
	if !ok {
		return nil
	}
	conditions = append(conditions, first)
	other, ok := fieldConditions.find(c.Args[i+1])
	if isXX := c.Args.Is(i, "xx"); ok && isXX != c.Args.Is(i+1, "xx") && !c.Args.Is(i, "nx") && !c.Args.Is(i+1, "nx") {
		conditions = append(conditions, other)
	}
	return conditions
}

// hpersistCommand is HPERSIST: -1 for a field without a deadline, -2 for one that does not exist.
func hpersistCommand(c *Call) error {
	h, fields, err := c.hashFields()
	if err != nil {
		return err
	}
	return c.fieldResults(h.PersistFields(fields...))
}

// fieldResults replies with one number for each field. The numbers are those of
// structures.FieldResult, which are Redis's.
func (c *Call) fieldResults(results []db.FieldResult, err error) error {
	if err != nil {
		return err
	}
	c.Out.Array(len(results))
	for _, r := range results {
		c.Out.Int(int64(r))
	}
	return nil
}

// httl replies -2 for a field that does not exist and -1 for one without a deadline. Unlike TTL it
// rounds up. A field with half a second left replies 1, where a key replies 1 from half a second on
// and 0 below.
func httl(c *Call, unit int64, relative bool) error {
	h, fields, err := c.hashFields()
	if err != nil {
		return err
	}
	deadlines, err := h.FieldDeadlines(fields...)
	if err != nil {
		return err
	}
	base := int64(0)
	if relative {
		base = c.now()
	}
	c.Out.Array(len(deadlines))
	for _, d := range deadlines {
		switch {
		case !d.Exists:
			c.Out.Int(-2)
		case d.At.IsZero():
			c.Out.Int(-1)
		default:
			c.Out.Int((d.At.UnixMilli() - base + unit - 1) / unit)
		}
	}
	return nil
}

// hgetexCommand is HGETEX. Only the first word after the key may change deadlines. Without one it
// reads, and writes nothing.
func hgetexCommand(c *Call) error {
	h, err := c.hashOf()
	if err != nil {
		return err
	}
	var at time.Time
	word := 2
	persist := c.Args.Is(2, "persist")
	switch {
	case persist:
		word = 3
	case isDeadline(c.Args[2]):
		word = 4
		if at, err = c.fieldDeadlineOption(2); err != nil {
			return err
		}
	}
	fields, err := c.fieldList(word, errFieldsCount)
	switch {
	case err != nil:
		return err
	case persist:
		c.Out.Array(len(fields))
		return h.VisitAndPersist(fields, c.eachOrNull)
	case word == 4:
		c.Out.Array(len(fields))
		return h.VisitAndExpireAt(at, fields, c.eachOrNull)
	}
	return c.fieldValues(h, fields)
}

// fieldDeadlineOption reads "EX 10" and its relatives. Two letters count from now, four from 1970.
func (c *Call) fieldDeadlineOption(i int) (time.Time, error) {
	unit := int64(1)
	if word := c.Args[i]; equalFold(word, "ex") || equalFold(word, "exat") {
		unit = 1000
	}
	return c.fieldDeadline(i+1, unit, len(c.Args[i]) == 2)
}

// hsetexOptions are the arguments of HSETEX after the key.
type hsetexOptions struct {
	fields    []db.Field
	options   []db.WriteOption
	condition bool // FNX or FXX has been met
	ifAbsent  bool // NX: the key must not exist
	ifPresent bool // XX: it must
	deadline  bool // EX, KEEPTTL or one of their like
}

// hsetexCommand is HSETEX. The words come in any order, after the fields too, and are checked
// before what the key holds. A condition that does not hold is 0 and changes no field: FNX and FXX
// speak of all fields together, NX and XX, which are Valkey's, of the key.
func hsetexCommand(c *Call) error {
	var w hsetexOptions
	for i := 2; i < len(c.Args); {
		taken, err := w.option(c, i)
		if err != nil {
			return err
		}
		i += taken
	}
	if w.fields == nil {
		return ArityError(c.Command.Name)
	}
	h := c.Tx.Hash(c.Key(1))
	if w.ifAbsent || w.ifPresent {
		if n, err := h.Len(); err != nil || w.ifAbsent == (n > 0) {
			return c.Int(0, err)
		}
	}
	return c.written(h.PutWith(w.fields, w.options...))
}

// option reads one word, with what belongs to it, and returns how many arguments that were.
func (w *hsetexOptions) option(c *Call, i int) (int, error) {
	word := c.Args[i]
	switch {
	case equalFold(word, "fields"):
		return w.fieldsOption(c, i)
	case equalFold(word, "fnx") || equalFold(word, "fxx"):
		if w.condition {
			return 0, Error("ERR Only one of FXX or FNX arguments can be specified")
		}
		w.condition = true
		if equalFold(word, "fnx") {
			w.options = append(w.options, db.IfAbsent)
		} else {
			w.options = append(w.options, db.IfPresent)
		}
		return 1, nil
	case isExistence(word):
		w.ifAbsent, w.ifPresent = w.ifAbsent || equalFold(word, "nx"), w.ifPresent || equalFold(word, "xx")
		if w.ifAbsent && w.ifPresent {
			return 0, Error("ERR Only one of NX or XX arguments can be specified")
		}
		return 1, nil
	case !equalFold(word, "keepttl") && !isDeadline(word):
		return 0, Errorf("ERR unknown argument: %s", Quoted(word))
	case w.deadline:
		return 0, Error("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified")
	}
	w.deadline = true
	if equalFold(word, "keepttl") {
		w.options = append(w.options, db.KeepTTL)
		return 1, nil
	}
	if i+1 == len(c.Args) {
		return 0, Error("ERR missing expire time")
	}
	at, err := c.fieldDeadlineOption(i)
	w.options = append(w.options, db.ExpireAt(at))
	return 2, err
}

// fieldsOption reads FIELDS numfields field value [field value ...]. The number must agree with
// what follows. It is checked against the rest of the line only: more words may follow the fields.
func (w *hsetexOptions) fieldsOption(c *Call, i int) (int, error) {
	if i >= len(c.Args)-3 {
		return 0, ArityError(c.Command.Name)
	}
	n, err := c.Args.parseLeast(i+1, 1, errFieldsMany)
	if err != nil {
		return 0, err
	}
	if n > int64(len(c.Args)-i-2)/2 {
		return 0, ArityError(c.Command.Name)
	}
	w.fields = make([]db.Field, 0, n)
	for k := i + 2; k < i+2+2*int(n); k += 2 {
		w.fields = append(w.fields, db.Field{Name: c.Key(k), Value: c.Arg(k + 1)})
	}
	return 2 + 2*int(n), nil
}
