package structures

import "github.com/stavedb/stave/keydir"

// String is a key that holds a byte string. Unlike Redis's, a value has one encoding on disk, its
// bytes; whether it is a number is decided when it is used as one.
type String struct {
	Txn StringTxn
	Key string
}

// Get appends the value to dst. It returns dst as it was, and false, if the key
// does not exist. O(length).
func (s String) Get(dst []byte) ([]byte, bool, error) {
	c, err := s.find()
	if err != nil || !c.exists {
		return dst, false, err
	}
	value, err := s.whole(dst, &c)
	if err != nil {
		return dst, false, err
	}
	return value, true, nil
}

// whole appends all of a string that exists.
func (s String) whole(dst []byte, c *stringValue) ([]byte, error) {
	if !c.cut() {
		return s.Txn.Value(dst, s.Key, "", keydir.String, c.loc)
	}
	n, err := s.len(c)
	if err != nil {
		return dst, err
	}
	return s.appendTo(dst, c, 0, n)
}

// Len returns the length of the value in bytes, 0 if the key does not exist.
// O(1).
func (s String) Len() (int, error) {
	c, err := s.find()
	if err != nil {
		return 0, err
	}
	return s.len(&c)
}

// SetOptions are the conditions and the deadline of String.Set. The zero value
// writes unconditionally and clears the deadline.
type SetOptions struct {
	// If is about the key, whatever it holds: IfAbsent or IfPresent.
	If Condition
	// Compare, if set, is about the value. A key that holds no string is then
	// refused. It contradicts If.
	Compare *Comparison
	// KeepTTL leaves the deadline as it is. It contradicts Deadline.
	KeepTTL bool
	// Get asks for the value that was there, written or not. A key that holds
	// no string is then refused.
	Get bool
	// Deadline is the Unix millisecond from which the key is gone. Default:
	// none.
	Deadline int64
}

// SetResult is what String.Set did and found.
type SetResult struct {
	// Done says that the value was written.
	Done bool
	// Existed says, if SetOptions.Get asked, that there was a string.
	Existed bool
	// Old is, if SetOptions.Get asked, the value of that string.
	Old []byte
}

// Set makes the key hold value, whatever it held, if the conditions allow.
// O(length).
func (s String) Set(value []byte, o SetOptions) (SetResult, error) {
	var res SetResult
	switch {
	case o.If > IfPresent, o.If != 0 && o.Compare != nil, o.KeepTTL && o.Deadline != 0:
		return res, ErrSyntax
	case o.Deadline < 0:
		return res, ErrExpireTime
	case len(value) > MaxString:
		return res, ErrTooLong
	}
	if ok, err := s.allows(o, &res); err != nil || !ok {
		return res, err
	}
	res.Done = true
	if err := s.put(value); err != nil {
		return res, err
	}
	s.Txn.Notify(EventSet, s.Key)
	switch {
	case o.Deadline != 0:
		return res, notifyUnless(s.Txn, EventExpire, s.Key, s.Txn.SetDeadline(s.Key, o.Deadline))
	case !o.KeepTTL:
		_, err := s.Txn.ClearDeadline(s.Key)
		return res, err
	}
	return res, nil
}

// allows says whether the conditions of Set hold. It puts into res what is asked for.
func (s String) allows(o SetOptions, res *SetResult) (bool, error) {
	switch {
	case o.Get:
	case o.Compare != nil:
		holds, _, err := s.compares(o.Compare)
		return holds, err
	case o.If == 0:
		return true, nil
	}
	slot, _, err := s.Txn.Find(s.Key)
	if err != nil {
		return false, err
	}
	if o.Get {
		value, exists, err := s.Get(nil)
		if err != nil {
			return false, err
		}
		res.Old, res.Existed = value, exists
		if o.Compare != nil && !o.Compare.holds(value, exists) {
			return false, nil
		}
	}
	return o.If.Holds(slot.Type != keydir.None), nil
}

// compares says whether a comparison holds, and whether the key exists. A value of another length is not read.
func (s String) compares(c *Comparison) (holds, exists bool, err error) {
	v, err := s.find()
	if err != nil || !v.exists {
		return err == nil && c.holds(nil, false), false, err
	}
	n, err := s.len(&v)
	if err != nil || n != len(c.Value) {
		return err == nil && c.Unequal, true, err
	}
	value, err := s.whole(nil, &v)
	return err == nil && c.holds(value, true), true, err
}

// DeleteIf deletes the key if it holds a string and the comparison holds, and
// says whether it did; another type is refused. O(length), O(1) if the length
// differs.
func (s String) DeleteIf(c Comparison) (bool, error) {
	if holds, exists, err := s.compares(&c); err != nil || !exists || !holds {
		return false, err
	}
	return deleteKey(s.Txn, s.Key)
}

// Range appends the bytes from start to end, both inclusive, to dst; positions
// count from the end if negative and are cut to the value. A key that does not
// exist is an empty string. O(length of the range), of a short string O(length).
func (s String) Range(dst []byte, start, end int64) ([]byte, error) {
	c, err := s.find()
	if err != nil || !c.exists {
		return dst, err
	}
	n, err := s.len(&c)
	if err != nil {
		return dst, err
	}
	first, count := byteWindow(start, end, n)
	if count == 0 {
		return dst, nil
	}
	return s.appendTo(dst, &c, first, first+count)
}

// byteWindow is window with GETRANGE's two quirks: two negative positions in the
// wrong order give nothing, and an end before the first byte means the first
// byte.
func byteWindow(start, end int64, n int) (first, count int) {
	if start < 0 && end < 0 && start > end {
		return 0, 0
	}
	if end < -int64(n) {
		end = -int64(n)
	}
	return window(start, end, n)
}

// Append extends the value and returns its new length; the deadline stays. O(length of the added
// bytes), of a short string O(length).
func (s String) Append(value []byte) (int, error) {
	c, err := s.find()
	if err != nil {
		return 0, err
	}
	n, err := s.len(&c)
	switch {
	case err != nil:
		return 0, err
	case n+len(value) > MaxString:
		return 0, ErrTooLong
	case !c.exists:
		err = s.put(value)
	case len(value) > 0:
		err = s.edit(&c, n, n, value)
	}
	// As in Redis also if there is nothing new.
	return n + len(value), notifyUnless(s.Txn, EventAppend, s.Key, err)
}

// GetMany calls visit with the value of each of several strings, in the order of the keys, until it
// returns false. nil stands for a key that does not exist or has another type. The slice is valid
// during the call only. O(length) a key.
func GetMany(t StringTxn, keys []string, visit func(i int, value []byte) bool) error {
	buf := make([]byte, 0, 64) // never nil: an empty value is not a missing one
	for i, key := range keys {
		s := String{Txn: t, Key: key}
		c, err := s.find()
		if err != nil && err != ErrWrongType {
			return err
		}
		var value []byte
		if c.exists {
			if buf, err = s.whole(buf[:0], &c); err != nil {
				return err
			}
			value = buf
		}
		if !visit(i, value) {
			return nil
		}
	}
	return nil
}

// GetAndDelete returns the value and deletes the key; ok is false if the key
// does not exist. O(length).
func (s String) GetAndDelete() (value []byte, ok bool, err error) {
	if value, ok, err = s.Get(nil); err != nil || !ok {
		return nil, false, err
	}
	_, err = deleteKey(s.Txn, s.Key)
	return value, true, err
}

// GetAndExpire appends the value to dst and gives the key a deadline in Unix
// milliseconds, which deletes it if it is not after now. It returns dst as it
// was, and false, if the key does not exist. O(length).
func (s String) GetAndExpire(dst []byte, deadline, now int64) ([]byte, bool, error) {
	if deadline <= 0 {
		return dst, false, ErrExpireTime
	}
	value, ok, err := s.Get(dst)
	if err != nil || !ok {
		return dst, false, err
	}
	if deadline <= now {
		_, err = deleteKey(s.Txn, s.Key)
	} else {
		err = notifyUnless(s.Txn, EventExpire, s.Key, s.Txn.SetDeadline(s.Key, deadline))
	}
	return value, true, err
}

// GetAndPersist appends the value to dst and takes the deadline of the key away.
// It returns dst as it was, and false, if the key does not exist. O(length).
func (s String) GetAndPersist(dst []byte) ([]byte, bool, error) {
	value, ok, err := s.Get(dst)
	if err != nil || !ok {
		return dst, false, err
	}
	_, err = persist(s.Txn, s.Key)
	return value, true, err
}

// SetRange overwrites the bytes of the value from offset on, with zeros before
// them where the value was shorter, and returns the new length; the deadline
// stays. Nothing is written for an empty part. O(length of the part), of a short
// string O(length).
func (s String) SetRange(offset int64, part []byte) (int, error) {
	if offset < 0 {
		return 0, ErrOffset
	}
	c, err := s.find()
	if err != nil {
		return 0, err
	}
	n, err := s.len(&c)
	switch {
	case err != nil:
		return 0, err
	case len(part) == 0:
		return n, nil
	case offset > MaxString-int64(len(part)):
		return 0, ErrTooLong
	}
	return max(n, int(offset)+len(part)), notifyUnless(s.Txn, EventSetRange, s.Key, s.edit(&c, n, int(offset), part))
}
